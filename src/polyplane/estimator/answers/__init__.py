"""Answers of fitted estimators of planes about their planes and about rows."""
