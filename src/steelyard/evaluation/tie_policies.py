"""The headline under three policies for tied scores, and the weight of each category in macro and micro means."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from steelyard.core.types import JsonObject
from steelyard.evaluation.bench_pairs import BenchPairs, items_of
from steelyard.evaluation.config import Config
from steelyard.evaluation.measures.accuracy import BenchAccuracy
from steelyard.evaluation.tables import PERCENT, Table, category_word, percent, table, word
from steelyard.statistics.aggregation import means
from steelyard.statistics.bootstrap import Totals, resample
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.pair_counts import CORRECT, PromptStatistics, half_credit, with_policy

_WEIGHTS = ("macro", "accuracy_micro", "exact_match_micro")


class Policy(BenchAccuracy[Estimate], frozen=True, kw_only=True):
    """The headline under one tie policy; ``weights`` names the bench's published weight set."""

    weights: str | None = None


Policies = dict[str, Policy]
"""Ties counted ``wrong``, ``half`` and ``right``."""
CategoryWeights = dict[str, dict[str, float]]
"""The weight of each category, by kind of mean."""


def tie_policies(
    bench_pairs: BenchPairs, statistics: PromptStatistics, measured: JsonObject, config: Config, bench: Any
) -> Policies:
    """Compute accuracy with a tied score wrong, half and right, and exact match with a tied score wrong and right.

    ``measured`` has the means and the bench's own part, which equal those of every policy if no score is tied. ``half``
    includes the bench's own part if its published scores count half points.
    """
    strict = _policy_of(measured, bench)
    if not statistics.num_tied.any():
        return {"wrong": policy(strict), "half": policy(without_exact_match(strict)), "right": policy(strict)}
    resampled = {}
    for name in ("wrong", "right"):
        items = items_of(bench_pairs, with_policy(statistics, name), num_resamples=config.num_resamples)
        resampled[name] = _policy_of(_measured(resample(items, seed=config.seed), bench_pairs, bench), bench)
    half = _policy_of(half_points(bench_pairs, statistics, config, bench), bench)
    return {"wrong": policy(resampled["wrong"]), "half": policy(half), "right": policy(resampled["right"])}


def policy(measured: JsonObject) -> Policy:
    """Convert means and a bench's own part to a policy."""
    return msgspec.convert(measured, Policy)


def half_points(bench_pairs: BenchPairs, statistics: PromptStatistics, config: Config, bench: Any) -> JsonObject:
    """Compute the means with half a point for a tie and for a missing score or verdict.

    It includes the sections and weights of a bench whose published scores count half points.
    """
    totals = half_totals(bench_pairs, statistics, num_resamples=config.num_resamples, seed=config.seed)
    return without_exact_match(_measured(totals, bench_pairs, bench))


def half_totals(bench_pairs: BenchPairs, statistics: PromptStatistics, *, num_resamples: int, seed: int) -> Totals:
    """Compute totals that count a tie or a missing verdict as half a correct pair; exact match is undefined."""
    items = items_of(bench_pairs, with_policy(statistics, "wrong"), num_resamples=num_resamples)
    # Resampling adds integers: the credit is doubled before, and its sums are halved after.
    items.statistics[:, CORRECT] = half_credit(statistics)[bench_pairs.columns.included, 0]
    totals = resample(items, seed=seed)
    for sums in (totals.point, totals.resampled):
        sums[..., CORRECT] /= 2
    return totals


def without_exact_match(tree: JsonObject) -> JsonObject:
    """Return a summary without exact match, which is undefined with half credits."""
    return {
        name: without_exact_match(inner) if isinstance(inner, dict) else inner
        for name, inner in tree.items()
        if not name.startswith("exact_match")
    }


def _measured(totals: Totals, bench_pairs: BenchPairs, bench: Any) -> JsonObject:
    # The own columns of other benches have no definition under a tie policy.
    part = bench.summarise(totals, bench_pairs.left_out) if bench.counts_halves else {}
    return means(totals) | part


def _policy_of(measured: JsonObject, bench: Any) -> JsonObject:
    """Return the part of a summary that every policy has: means, and the bench's part if it counts half points."""
    names = ("accuracy", "exact_match", "accuracy_micro", "exact_match_micro", "by_category")
    is_whole = bench.counts_halves
    return {name: value for name, value in measured.items() if name in names or (is_whole and name != "by_language")}


def category_weights(bench_pairs: BenchPairs, statistics: PromptStatistics) -> CategoryWeights:
    """Compute the weight of each category: equal in ``macro``; by pairs or prompts in ``micro``."""
    layout = bench_pairs.layout
    names = sorted({cell.category for cell in layout.cells})
    place = np.array([names.index(cell.category) for cell in layout.cells], np.int64)[layout.cell]
    pairs, prompts = (
        np.bincount(place, weights, len(names))
        for weights in (statistics.num_pairs[bench_pairs.columns.included], np.ones(len(place)))
    )
    weights = zip(_WEIGHTS, (np.ones(len(names)), pairs, prompts), strict=True)
    return {kind: dict(zip(names, (column / column.sum()).tolist(), strict=True)) for kind, column in weights}


def policy_table(policies: Mapping[str, Policy]) -> Table | None:
    """Return accuracy and exact match with ties counted wrong, half and right; null without policies."""
    has_overall = any(policy.overall is not None for policy in policies.values())
    rows = [
        (
            word(f"policy_{name}"),
            *(PERCENT.cells(policies[name].overall) if has_overall else ()),
            *PERCENT.cells(policies[name].accuracy),
            *PERCENT.cells(policies[name].accuracy_micro),
            *PERCENT.cells(policies[name].exact_match),
            PERCENT.cells(policies[name].exact_match_micro)[0],
        )
        for name in ("wrong", "half", "right")
        if name in policies
    ]
    headline = ("bench_overall", "interval") if has_overall else ()
    columns = (
        "policy", *headline, "accuracy", "interval", "accuracy_micro", "interval", "exact_match", "interval",
        "exact_match_micro",
    )  # fmt: skip
    return table(columns, rows) if rows else None


def weight_table(weights: CategoryWeights) -> Table | None:
    """Return the weight of each category in each kind of mean; null for a single category."""
    kinds = [name for name in _WEIGHTS if name in weights]
    categories = weights.get("macro", {})
    rows = [(category_word(name), *(percent(weights[kind].get(name)) for kind in kinds)) for name in categories]
    columns = ("category", *(f"weight_{kind}" for kind in kinds))
    return table(columns, rows) if len(rows) > 1 else None
