"""NumPy's npy and npz, and IDX: readers and writers."""
