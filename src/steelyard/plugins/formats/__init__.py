"""Foreign data formats, rows in and rows out."""
