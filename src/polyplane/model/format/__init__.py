"""What model files hold: tables of records, and checks of what comes from a file."""
