"""The train verb."""
