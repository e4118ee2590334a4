"""Prompts before anything is asked of them: which are nearly the same."""
