"""Evaluation: a model's scores or verdicts against the orderings of a bench, with intervals.

In reading order:

- `benches`, `columns`, `questions`: cases of a bench, as columns of numbers, and their comparable pairs.
- `external_scores`, `pair_verdicts`, `model_self_tests`: scores made elsewhere, judges, tests of a reward model.
- `batches`, `items`: evaluate batch by batch; a line a case in ``items.jsonl``.
- `measures/accuracy`, `tie_policies`, `coverage`, `summary`: the headline and the type of ``run.json``.
- `measure`, `measures/`: every other measure, one file each.
- `evaluations`, `alike`, `comparison`, `leaderboard`, `languages`: evaluations side by side.
- `tables`, `marks`: tables and figures as values.

Reading and writing of run folders is in `stages/evaluate`; pages are in `report`.
"""
