"""CSV text: the reader, blocks of nothing but numbers, and the writer."""
