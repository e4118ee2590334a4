"""Floor 5: compositions of stages."""
