"""Planes: how they are kept, scored, assigned to rows and mixed."""
