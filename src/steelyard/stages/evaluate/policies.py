"""Three policies for tied scores side by side, and what each category weighs in the two kinds of mean."""

from typing import Any

import numpy as np

from steelyard.methods.measures.accuracy import PromptStatistics, half_credit, with_policy
from steelyard.methods.measures.aggregation import half_accuracy, means
from steelyard.methods.measures.resampling import resample
from steelyard.stages.evaluate.questions import Questions, items_of
from steelyard.stages.evaluate.settings import Config


def tie_policies(
    questions: Questions, found: PromptStatistics, measured: dict[str, Any], config: Config
) -> dict[str, Any]:
    """Accuracy with a tied score wrong, half and right, and exact match with it wrong and right.

    ``measured`` has the means as they are, which stand for every policy where no score is tied.
    """
    if not found.num_tied.any():
        half = {name: measured[name] for name in ("accuracy", "accuracy_micro")}
        half["by_category"] = {name: {"accuracy": own["accuracy"]} for name, own in measured["by_category"].items()}
        return {"wrong": _means_of(measured), "half": half, "right": _means_of(measured)}
    seed, num_resamples = config.seed, config.num_resamples
    wrong, right = (
        items_of(questions, with_policy(found, policy), num_resamples=num_resamples) for policy in ("wrong", "right")
    )
    half = items_of(questions, with_policy(found, "wrong"), num_resamples=num_resamples, columns=half_credit(found))
    return {
        "wrong": _means_of(means(resample(wrong, seed=seed))),
        "half": half_accuracy(resample(half, seed=seed)),
        "right": _means_of(means(resample(right, seed=seed))),
    }


def _means_of(measured: dict[str, Any]) -> dict[str, Any]:
    """The part of the means that every policy has."""
    names = ("accuracy", "exact_match", "accuracy_micro", "exact_match_micro", "by_category")
    return {name: measured[name] for name in names}


def category_weights(questions: Questions, found: PromptStatistics) -> dict[str, dict[str, float]]:
    """What each category weighs in the means: in ``macro`` alike, in ``micro`` by its pairs, or by its prompts."""
    layout = questions.layout
    names = sorted({cell.category for cell in layout.cells})
    place = np.array([names.index(cell.category) for cell in layout.cells], np.int64)[layout.cell]
    pairs, prompts = (
        np.bincount(place, weights, len(names))
        for weights in (found.num_pairs[questions.included], np.ones(len(place)))
    )
    weights = {"macro": np.ones(len(names)), "accuracy_micro": pairs, "exact_match_micro": prompts}
    return {kind: dict(zip(names, (own / own.sum()).tolist(), strict=True)) for kind, own in weights.items()}
