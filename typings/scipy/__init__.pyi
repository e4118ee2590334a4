"""Types of the functions of SciPy that Steelyard calls.

SciPy has none, so that the type checker would infer them from its source at every run.
"""
