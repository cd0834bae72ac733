"""A folder for each format, and which of them a source is in."""
