"""What users and programs get to see."""
