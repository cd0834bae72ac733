"""What model files hold: tables of records, checks of what comes from a file, migrations."""
