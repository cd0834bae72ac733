"""What happens around any work: progress, interruptions, threads, memory."""
