"""Trained kernel models: formulas of kernels, their values, and what scores rows."""
