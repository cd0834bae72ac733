"""Progress, interruptions, threads and memory of long work."""
