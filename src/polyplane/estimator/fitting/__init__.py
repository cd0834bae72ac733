"""Parts around any fit: progress, looks, interruptions, threads, memory, streams."""
