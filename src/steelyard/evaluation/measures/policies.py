"""Three policies for tied scores side by side, and what each category weighs in the two kinds of mean."""

from typing import Any

import numpy as np

from steelyard.evaluation.config import Config
from steelyard.evaluation.questions import Questions, items_of
from steelyard.statistics.aggregation import means
from steelyard.statistics.bootstrap import Totals, resample
from steelyard.statistics.pair_counts import CORRECT, PromptStatistics, half_credit, with_policy


def tie_policies(
    questions: Questions, found: PromptStatistics, measured: dict[str, Any], config: Config, bench: Any
) -> dict[str, Any]:
    """Compute accuracy with a tied score wrong, half and right, and exact match with it wrong and right.

    ``measured`` has the means and the bench's own part as they are, which stand for every policy where no score is
    tied. ``half`` has the bench's own part too, where the bench counts so.
    """
    if not found.num_tied.any():
        strict = _policy_of(measured, bench)
        return {"wrong": strict, "half": without_exact_match(strict), "right": strict}
    policies = {"half": half_points(questions, found, config, bench)}
    for policy in ("wrong", "right"):
        items = items_of(questions, with_policy(found, policy), num_resamples=config.num_resamples)
        policies[policy] = _measured(resample(items, seed=config.seed), questions, bench)
    return {policy: _policy_of(policies[policy], bench) for policy in ("wrong", "half", "right")}


def half_points(questions: Questions, found: PromptStatistics, config: Config, bench: Any) -> dict[str, Any]:
    """Compute the means with half a point for a tie and for a missing score or verdict.

    Half a point goes through the sections and weights of a bench whose published scores count so.
    """
    totals = half_totals(questions, found, num_resamples=config.num_resamples, seed=config.seed)
    return without_exact_match(_measured(totals, questions, bench))


def half_totals(questions: Questions, found: PromptStatistics, *, num_resamples: int, seed: int) -> Totals:
    """Totals in which a tie and a missing verdict count as half a correct pair; exact match is not defined by them."""
    items = items_of(questions, with_policy(found, "wrong"), num_resamples=num_resamples)
    # Resampling draws whole numbers: twice the credit first, and half of its sums afterwards.
    items.statistics[:, CORRECT] = half_credit(found)[questions.columns.included, 0]
    totals = resample(items, seed=seed)
    for sums in (totals.point, totals.resampled):
        sums[..., CORRECT] /= 2
    return totals


def without_exact_match(tree: dict[str, Any]) -> dict[str, Any]:
    """A summary without exact match, of which half credits say nothing."""
    return {
        name: without_exact_match(inner) if isinstance(inner, dict) else inner
        for name, inner in tree.items()
        if not name.startswith("exact_match")
    }


def _measured(totals: Totals, questions: Questions, bench: Any) -> dict[str, Any]:
    # Other benches have columns of their own, which no tie policy is defined for.
    own = bench.summarise(totals, questions.left_out) if bench.counts_halves else {}
    return means(totals) | own


def _policy_of(measured: dict[str, Any], bench: Any) -> dict[str, Any]:
    """The part of a summary that every policy has: the means, and the bench's own part where it counts half points."""
    names = ("accuracy", "exact_match", "accuracy_micro", "exact_match_micro", "by_category")
    is_whole = bench.counts_halves
    return {name: own for name, own in measured.items() if name in names or (is_whole and name != "by_language")}


def category_weights(questions: Questions, found: PromptStatistics) -> dict[str, dict[str, float]]:
    """What each category weighs in the means: in ``macro`` alike, in ``micro`` by its pairs, or by its prompts."""
    layout = questions.layout
    names = sorted({cell.category for cell in layout.cells})
    place = np.array([names.index(cell.category) for cell in layout.cells], np.int64)[layout.cell]
    pairs, prompts = (
        np.bincount(place, weights, len(names))
        for weights in (found.num_pairs[questions.columns.included], np.ones(len(place)))
    )
    weights = {"macro": np.ones(len(names)), "accuracy_micro": pairs, "exact_match_micro": prompts}
    return {kind: dict(zip(names, (own / own.sum()).tolist(), strict=True)) for kind, own in weights.items()}
