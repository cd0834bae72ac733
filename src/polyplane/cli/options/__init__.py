"""What can stand on the command line: verbs, options, help."""
