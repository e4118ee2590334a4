"""Annotation designs, psychometrics and simulation: which responses annotators see, and what their answers tell.

`plackett_luce` is the model of a ranking with ties, `psychometrics` fits strengths and raters; `case_answers`
reads answers from cases.
`corruptions` and `simulated_annotators` make the built-in simulation; `derived_judgments` makes judgments of ratings.
"""
