"""Floor 3: replaceable parts, one file each, found by their file name."""
