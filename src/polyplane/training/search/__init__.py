"""Searches for settings, by trials on rows that are left out."""
