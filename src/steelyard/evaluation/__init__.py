"""Evaluation: the agreement of a model's scores or verdicts with the rankings of a benchmark, with intervals.

In reading order:

- `config`, `benches`, `columns`, `bench_pairs`: settings; cases of a bench, as columns of numbers, and as pairs.
- `external_scores`, `pair_verdicts`, `model_self_tests`: scores from a file, verdicts of a judge, self-tests.
- `batches`, `items`: evaluation batch by batch; one line per case in ``items.jsonl``.
- `measures/accuracy`, `tie_policies`, `coverage`, `summary`: the headline and the type of ``run.json``.
- `measure`, `measures/`: every other measure, one per file.
- `failures`, `disagreements`: wrong pairs with their confidence, groups of errors, and two models on the same pairs.
- `evaluations`, `comparison`, `leaderboard`: several evaluations compared.
- `language_groups`, `languages`, `parallel_items`: one evaluation of parallel items by language.
- `language_table`, `parallel_runs`, `parallel_draws`, `published_languages`: several by language, or printed numbers.
- `bench_table`, `published_benches`, `printed_tables`, `printed_numbers`: several benches, or tables of others.
- `tables`, `vega`: tables and figures as values.

Reading and writing of run folders is in `stages/evaluate`; pages are in `report`.
"""
