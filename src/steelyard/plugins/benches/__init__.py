"""Benchmarks: sections, weights, and how they sum to the published headline."""
