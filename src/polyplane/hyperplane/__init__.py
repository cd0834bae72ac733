"""One file per algorithm whose classes are maxima of hyperplanes."""
