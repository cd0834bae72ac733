"""Text models of LIBSVM and LIBLINEAR."""
