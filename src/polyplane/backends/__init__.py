"""The same training, run elsewhere than in one process; each backend is an extra to install."""
