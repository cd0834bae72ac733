"""Support vectors: the set, kernel blocks by tiles, and the cache of kernel values."""
