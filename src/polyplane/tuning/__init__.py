"""Machines on held-out rows: trials, and the diagnosis that follows from them."""
