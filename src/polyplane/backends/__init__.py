"""Training that runs elsewhere than in one process; each backend is an extra to install."""
