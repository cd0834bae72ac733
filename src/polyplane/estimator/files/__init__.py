"""Model files: saved, loaded, checked, imported, exported."""
