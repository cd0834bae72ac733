"""A training under watch, here or on a cluster."""
