"""Tables and figures as values."""
