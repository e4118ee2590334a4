"""From judgments to tiers, and the quality of the judges. Pure functions on integer columns of many cases at once.

In reading order: `judgment_table` (judgments as columns, preference graphs), `tiers` (CHEEMS, algorithm 1; compiled in
`tiers_numba`), `resolution` (rankings and the summary of a run), `conflicts`, `annotation_features` (authors, lengths
and the order shown, with the biases by them), `judge_quality` (counts of a batch), `judge_summary` (measures with
intervals), `author_strength`, `dawid_skene` (the rater model of `resolve`), and `pairs` (the pairs of a ranked case
for training and testing).
"""
