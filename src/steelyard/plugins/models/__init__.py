"""Reward models: cases in, a number for each response out."""
