"""Engines: a pure function mapped over batches of serialised cases."""
