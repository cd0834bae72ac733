"""What happens around any fit: progress, looks, interruptions, threads, memory, streams."""
