"""Differences and ranks of models by human labels of few prompts and a judge's of many, from their items."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import Integers
from steelyard.core.types import Run
from steelyard.evaluation.few_labels import JUDGED
from steelyard.evaluation.items import Item, read_items
from steelyard.evaluation.labelled_prompts import Resampling, SplitPrompts, split_prompts
from steelyard.evaluation.prediction_powered import LabelledPair, difference_of_models, draws_of_accuracy
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.statistics.prediction_powered import PPIEstimate
from steelyard.statistics.significance import Standings, holm, standings_of


class LabelledEvaluations(NamedTuple):
    """The statistics of every model, (prompt, 4) each: of the human-labelled prompts, and of all by the judge."""

    prompts: SplitPrompts
    human: tuple[Integers, ...]
    judged: tuple[Integers, ...]


def read_labelled_evaluations(
    folders: Sequence[Path], runs: Sequence[Run[EvaluationSummary]]
) -> LabelledEvaluations | None:
    """Read the items by both kinds of labels; None unless every evaluation has both.

    Raises EvidenceError for different labels of the judge.
    """
    if not all(run.summary.prediction_powered is not None for run in runs):
        return None
    files = [{role: file.sha256 for role, file in run.inputs.items() if role.startswith("judged.")} for run in runs]
    for folder, judged_files in zip(folders, files, strict=True):
        if judged_files != files[0]:
            raise EvidenceError(
                f"the judge's labels are not those of {folders[0]}",
                where=str(folder),
                do="evaluate both models with the same files of human labels and of the judge's",
            )
    human, judged = (
        [{item.key: item for item in read_items(folder, name=f"{prefix}items.jsonl")} for folder in folders]
        for prefix in ("", JUDGED)
    )
    keys = list(judged[0])
    units = [item.unit or item.prompt for item in judged[0].values()]
    cells = [item.cell for item in judged[0].values()]
    is_labelled = np.array([key in human[0] for key in keys], bool)
    labelled = [key for key in keys if key in human[0]]
    return LabelledEvaluations(
        split_prompts(cells, units, is_labelled),
        tuple(_statistics([items[key] for key in labelled]) for items in human),
        tuple(_statistics([items[key] for key in keys]) for items in judged),
    )


def compare_labelled(
    evaluations: LabelledEvaluations, pairs: Sequence[tuple[int, int]], *, num_resamples: int, seed: int
) -> list[PPIEstimate]:
    """Return the difference in accuracy of each pair of models; p-values are corrected by Holm."""
    differences = _differences(evaluations, pairs, num_resamples=num_resamples, seed=seed)
    corrected = holm([1.0 if difference.p is None else difference.p for difference in differences])
    return [replace(difference, p=p) for difference, p in zip(differences, corrected, strict=True)]


def rank_labelled(
    folders: Sequence[Path], runs: Sequence[Run[EvaluationSummary]], *, num_resamples: int, seed: int
) -> Standings | None:
    """Return the ranks of models by their accuracy from both kinds of labels.

    None unless every evaluation has such a value, and where the benchmark ranks by a headline of its own. Raises
    EvidenceError for different labels of the judge.
    """
    powered = [run.summary.prediction_powered for run in runs]
    values = [None if each is None or each.headline else each.accuracy.estimate.value for each in powered]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or (labelled := read_labelled_evaluations(folders, runs)) is None:
        return None
    how = Resampling(num_resamples, seed)
    draws = [
        draws_of_accuracy(labelled.prompts, human, judged, how)
        for human, judged in zip(labelled.human, labelled.judged, strict=True)
    ]
    pairs = list(combinations(range(len(runs)), 2))
    p_values = [
        1.0 if difference.p is None else difference.p
        for difference in _differences(labelled, pairs, num_resamples=num_resamples, seed=seed)
    ]
    return standings_of(np.array(known), np.stack(draws, axis=1), dict(zip(pairs, p_values, strict=True)), p_values)


def _differences(
    evaluations: LabelledEvaluations, pairs: Sequence[tuple[int, int]], *, num_resamples: int, seed: int
) -> list[PPIEstimate]:
    human, judged = evaluations.human, evaluations.judged
    return [
        difference_of_models(
            evaluations.prompts,
            LabelledPair(human[first], human[second]),
            LabelledPair(judged[first], judged[second]),
            Resampling(num_resamples, seed),
        )
        for first, second in pairs
    ]


def _statistics(items: Sequence[Item]) -> Integers:
    """Return pairs, right pairs, prompts and exact matches; zeros for an item that is not counted."""
    rows = [
        (0, 0, 0, 0) if item.exact_match is None else (item.num_pairs, item.num_correct, 1, item.exact_match)
        for item in items
    ]
    return np.array(rows, np.int64).reshape(len(rows), 4)
