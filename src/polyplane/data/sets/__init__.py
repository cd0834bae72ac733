"""Data sets by name, digits without end, and generated problems."""
