"""What users hand in: matrices, tables, labels and weights, checked once."""
