"""Outputs of verbs, for users and for programs."""
