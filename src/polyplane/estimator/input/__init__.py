"""Checks of the input of users: matrices, tables, labels and weights."""
