"""What kernel machines share: fit, support rows in training, prediction."""
