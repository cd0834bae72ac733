"""Several learners that make one model: rounds of planes, cascades of kernels."""
