"""What hyperplane machines share: fit, passes, models in training, prediction."""
