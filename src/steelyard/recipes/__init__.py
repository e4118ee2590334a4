"""Compositions of stages: `recipe` (reading), `preconditions`, `run`, `experiments`, `ablate`, `sweep`."""
