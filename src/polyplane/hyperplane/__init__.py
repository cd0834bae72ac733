"""One file per machine whose classes are maxima of hyperplanes."""
