"""The scikit-learn face: validation, fit, partial_fit, predict, and the registry."""
