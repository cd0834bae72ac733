"""Planes: how they are kept, scored, assigned to rows, and the steps of each loss."""
