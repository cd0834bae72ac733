"""Models that training leaves: frozen planes and kernels that score rows."""
