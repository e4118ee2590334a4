"""The triple design, simulated annotators, and worse answers made by code."""
