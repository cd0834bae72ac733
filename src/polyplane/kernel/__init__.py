"""One file per machine: online kernel SVMs and the kernel perceptron."""
