"""Trackers: where the figures of a training are shown while it runs."""
