"""Inputs of verbs: rows, scaled columns, estimators and models."""
