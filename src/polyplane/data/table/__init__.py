"""Tables: what each column is, and text values as columns of their own."""
