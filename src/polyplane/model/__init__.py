"""What training leaves: frozen planes that score rows."""
