"""Parts of SoftPlanesClassifier: first planes, weights of columns, and compression."""
