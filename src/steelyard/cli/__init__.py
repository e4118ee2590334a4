"""Floor 6: the command line and other ways in."""
