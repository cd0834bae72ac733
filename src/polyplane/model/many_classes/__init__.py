"""More than two classes: problems of a few each, and how these decide."""
