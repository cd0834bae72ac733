"""What each verb does: one file a verb."""
