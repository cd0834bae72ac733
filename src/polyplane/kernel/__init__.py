"""One file per algorithm: online kernel SVMs and the kernel perceptron."""
