"""Models as one SELECT statement over a table."""
