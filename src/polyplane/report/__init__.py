"""Models and rows turned into numbers and words."""
