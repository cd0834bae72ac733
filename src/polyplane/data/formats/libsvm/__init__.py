"""LIBSVM text: the reader, from its plain rules to its fastest loop, and the writer."""
