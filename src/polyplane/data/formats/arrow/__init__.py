"""Parquet and Arrow IPC: files, record batches, the cache of parsed rows, and the writer."""
