"""Rows behind one set of words: storages, columns mapped on the way, products of two columns."""
