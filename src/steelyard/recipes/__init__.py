"""Compositions of stages: `recipe` (reading), `preconditions`, `run`; `experiments`, `measured_arms`, and the kinds."""
