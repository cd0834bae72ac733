"""Bytes to rows: readers of every format, streams, and real and generated data sets."""
