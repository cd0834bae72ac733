"""Rounds of several learners: learning apart, and being one again."""
