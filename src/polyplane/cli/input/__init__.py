"""What verbs work on: rows, scaled columns, estimators and models."""
