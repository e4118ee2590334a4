"""Measures of an evaluation: each file that defines ``MEASURE`` is one, under the name of the file."""
