"""Compiled functions over arrays: no files, no scikit-learn, no classes with methods."""
