"""Qualification before real work: its tasks, its rounds, and what came of them."""
