"""Rows and columns of X on their way to planes and kernels: checked, scaled, mapped."""
