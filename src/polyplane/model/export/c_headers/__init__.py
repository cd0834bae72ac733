"""Models as headers of C, for rows of numbers and for tables."""
