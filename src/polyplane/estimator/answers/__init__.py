"""What fitted estimators of planes tell of their planes and of rows."""
