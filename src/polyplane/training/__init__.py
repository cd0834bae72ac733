"""Trainings: states, families of algorithms and searches, without estimators and files."""
