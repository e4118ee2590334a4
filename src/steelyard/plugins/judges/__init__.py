"""Judges: ways of asking a language model for verdicts; comparisons to questions, replies to verdicts."""
