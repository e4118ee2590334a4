"""One model in many languages: the drop from English, agreement with itself in English, and means over kin.

Parallel items share a prompt id and are drawn together, so that every interval is clustered by item.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.methods.measures.accuracy import EXACT, NUM_COLUMNS, PAIRS, Floats, Integers
from steelyard.methods.measures.aggregation import (
    ACCURACY,
    Estimate,
    Groups,
    estimate_macro,
    group_cells,
    interval,
    macro,
)
from steelyard.methods.measures.agreement import FIRST, NUM_CELLS, SECOND, TIED, kappa
from steelyard.methods.measures.resampling import Items, Totals, resample
from steelyard.methods.measures.strata import Label, layout_of


class Kin(NamedTuple):
    """What a language is: family, script, resource level, and class after Joshi et al. (2020); null is not known."""

    family: str | None = None
    script: str | None = None
    resource: str | None = None
    resource_class: int | None = None


class Parallel(NamedTuple):
    """Prompts in several languages: where each counts (``prompt`` is what parallel items share), and its statistics.

    ``statistics`` has the columns of `statistics_table`; ``num_tied`` counts tied pairs; both by prompt.
    """

    labels: Sequence[Label]
    statistics: Integers
    num_tied: Integers


def languages_report(
    parallel: Parallel, english: str, kin: Mapping[str, Kin], *, num_resamples: int, seed: int
) -> dict[str, Any]:
    """Everything that the languages tell of a model, with intervals (M-RewardBench, sections 4 and 5).

    ``english`` is the language that the others are held against. ``languages``: accuracy, drop from English overall and
    per category, and kappa with English over the items that both have. ``mean`` and ``standard_deviation`` are over
    the languages without English; so are those of ``kin`` (family, script, resource). The deviation has no interval.
    """
    layout = layout_of(parallel.labels)
    table = np.concatenate([parallel.statistics, _confusions(parallel, english)], axis=1)
    totals = resample(Items(layout, table, num_resamples), seed=seed)
    names = sorted({cell.language for cell in layout.cells if cell.language is not None})
    accuracies = {name: _accuracy_of(totals, name) for name in names}
    others = [name for name in names if name != english]
    measured = {name: _language(totals, name, english, accuracies) for name in names}
    return {
        "english": english,
        "languages": measured,
        **_over(totals, [accuracies[name] for name in others]),
        "kappa": _mean_kappa(totals, others),
        "kin": _by_kin(totals, accuracies, others, kin),
    }


Formula = Callable[[Floats], Floats]


def _confusions(parallel: Parallel, english: str) -> Integers:
    """The place of each prompt in the confusion matrix of its language with English: one-hot, shape (prompt, 9)."""
    outcome = _outcomes(parallel)
    in_english = {
        label.prompt: int(own)
        for label, own in zip(parallel.labels, outcome, strict=True)
        if label.cell.language == english
    }
    table = np.zeros((len(outcome), NUM_CELLS), dtype=np.int64)
    for row, (label, own) in enumerate(zip(parallel.labels, outcome, strict=True)):
        beside = in_english.get(label.prompt)
        if beside is not None and label.cell.language != english:
            table[row, beside * 3 + int(own)] = 1
    return table


def _outcomes(parallel: Parallel) -> Integers:
    """What the model said of each prompt: of one pair, which answer it prefers; of several, if it has all right."""
    exact, single = parallel.statistics[:, EXACT] == 1, parallel.statistics[:, PAIRS] == 1
    return np.where(exact, FIRST, np.where(single & (parallel.num_tied > 0), TIED, SECOND))


def _cells_of(totals: Totals, language: str) -> Groups:
    """The categories of one language."""
    return group_cells(totals.cells, lambda cell: cell.category if cell.language == language else None)


def _accuracy_of(totals: Totals, language: str) -> Formula:
    groups = _cells_of(totals, language)
    return lambda sums: macro(sums, groups, ACCURACY)


def _estimate(totals: Totals, formula: Formula, n: float) -> Estimate:
    value = float(formula(totals.point))
    if np.isnan(value):
        return Estimate(None, None, None, int(n))
    return interval(value, np.asarray(formula(totals.resampled)), n)


def _language(totals: Totals, name: str, english: str, accuracies: Mapping[str, Formula]) -> dict[str, Any]:
    groups = _cells_of(totals, name)
    n = (groups.members @ totals.point)[:, PAIRS].sum()
    found: dict[str, Any] = {"accuracy": estimate_macro(totals, groups, ACCURACY).record()}
    if name == english:
        return found
    own = accuracies[name]
    found["drop"] = _estimate(totals, lambda sums: accuracies[english](sums) - own(sums), n).record()
    found["drop_by_category"] = _category_drops(totals, groups, _cells_of(totals, english))
    confusion = _confusion_of(totals, name)
    found["kappa"] = _estimate(totals, lambda sums: kappa(confusion(sums)), confusion(totals.point).sum()).record()
    return found


def _category_drops(totals: Totals, own: Groups, english: Groups) -> dict[str, Any]:
    """English minus the language in each category that both have."""
    drops = {}
    for name in own.names:
        if name not in english.names:
            continue
        here, there = own.only(name), english.only(name)
        n = (here.members @ totals.point)[:, PAIRS].sum()
        drops[name] = _estimate(
            totals,
            lambda sums, here=here, there=there: macro(sums, there, ACCURACY) - macro(sums, here, ACCURACY),
            n,
        ).record()
    return drops


def _confusion_of(totals: Totals, language: str) -> Formula:
    cells = [index for index, cell in enumerate(totals.cells) if cell.language == language]
    return lambda sums: sums[..., cells, NUM_COLUMNS : NUM_COLUMNS + NUM_CELLS].sum(axis=-2)


def _over(totals: Totals, formulas: Sequence[Formula]) -> dict[str, Any]:
    """Mean and standard deviation over languages; n counts languages."""
    if not formulas:
        return {}

    def stacked(sums: Floats) -> Floats:
        return np.stack([formula(sums) for formula in formulas], axis=-1)

    found = {"mean": _estimate(totals, lambda sums: stacked(sums).mean(axis=-1), len(formulas)).record()}
    if len(formulas) > 1:
        # Without an interval: a resample adds its own noise to a spread, and its percentiles would lie above it.
        spread = float(stacked(totals.point).std(ddof=1))
        found["standard_deviation"] = Estimate(spread, None, None, len(formulas)).record()
    return found


def _mean_kappa(totals: Totals, others: Sequence[str]) -> dict[str, Any] | None:
    """The mean over languages of the agreement with English, where it is defined for each."""
    confusions = [_confusion_of(totals, name) for name in others]
    confusions = [one for one in confusions if one(totals.point).sum() > 0]
    if not confusions:
        return None
    found = _estimate(totals, lambda sums: np.mean([kappa(one(sums)) for one in confusions], axis=0), len(confusions))
    return found.record()


def _by_kin(
    totals: Totals, accuracies: Mapping[str, Formula], others: Sequence[str], kin: Mapping[str, Kin]
) -> dict[str, Any]:
    """The mean over the languages of each family, script, level and class. Class 0 is left out, as in the paper."""
    found: dict[str, Any] = {}
    for field in Kin._fields:
        members: dict[str, list[str]] = {}
        for name in others:
            value = getattr(kin.get(name, Kin()), field)
            if value is not None and value != 0:
                members.setdefault(str(value), []).append(name)
        found[field] = {
            value: {"languages": names, **_over(totals, [accuracies[name] for name in names])}
            for value, names in sorted(members.items())
        }
    return found
