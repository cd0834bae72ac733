"""Kernel machines once trained: formulas of kernels, their values, and what scores rows."""
