"""Annotation designs and simulation: which responses annotators see, and simulated answers and verdicts.

`worse_answers` and `simulated_annotators` make the built-in simulation; `derived_judgments` makes judgments of ratings.
"""
