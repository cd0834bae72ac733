"""What each verb does: one file a verb, and what only one of them needs."""
