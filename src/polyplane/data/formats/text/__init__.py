"""What readers of text share: numbers in bytes, files as blocks of whole lines."""
