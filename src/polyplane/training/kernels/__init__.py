"""Algorithms of kernels: their state, their record, and what is done with them."""
