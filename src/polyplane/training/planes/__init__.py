"""Algorithms of planes: their state, their record, and what is done with them."""
