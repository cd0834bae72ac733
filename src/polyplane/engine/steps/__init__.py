"""Steps of training, one file a loss: what they make smaller, and by what update."""
