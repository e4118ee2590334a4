"""Annotation designs and simulation: which responses annotators see, and simulated answers and verdicts.

`task_design` is the triple design; `derived_judgments` makes judgments of ratings. `corpus`, `worse_answers` and
`simulated_annotators` make the built-in simulation.
"""
