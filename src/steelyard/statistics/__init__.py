"""Statistics of evaluations and judgments: what is counted, how it is resampled, and how certain a number is.

In reading order:

- `pair_counts`: the outcomes of a prompt's pairs, accuracy and exact match.
- `groups`: cells, strata and units of a bench's prompts.
- `bootstrap`: the bootstrap over prompts within strata; `unit_bootstrap`: without strata, for judgments and pairs;
  `unique_rows`: why it is fast.
- `intervals`: `Estimate`, and how an interval and a p-value follow from resamples.
- `linearised`: ratios in many groups at once, without resamples.
- `aggregation`, `prompt_means`: from sums to the numbers of an evaluation, and the headline of a bench.
- `significance`: differences between models, and their ranks.
- `agreement`: agreement of raters beyond chance.
- `tolerance`: equality of scores up to rounding.

The measures of an evaluation (rank correlation, calibration, regret) are in `evaluation.measures`.
"""
