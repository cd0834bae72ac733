"""Content of model files: tables of records, and checks of what comes from a file."""
