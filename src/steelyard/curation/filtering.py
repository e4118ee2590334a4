"""Ways to keep some of a judge's verdicts, and how often what each keeps is what people say: precision by coverage.

The reward model's filters stand beside controls that know nothing of its training: length, and chance.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.arrays import Floats, Integers
from steelyard.core.seeds import generator
from steelyard.curation.calibration import is_kept
from steelyard.statistics.unit_bootstrap import SelectionShares, area, selection_shares

Kept = NDArray[np.bool_]
EVERY, AGREES, NOT_AGAINST, LONGER = "all", "agrees", "not confidently against", "longer"


class Asked(NamedTuple):
    """One entry a strict verdict: the supervisor's margin for it, by how many characters the preferred one is longer.

    The margin is NaN where a score is missing: such a verdict is never kept for agreeing, and never dropped for not.
    """

    prompt: Integers
    margin: Floats
    longer: Floats

    def where(self, chosen: Kept) -> "Asked":
        """The chosen entries."""
        return Asked(self.prompt[chosen], self.margin[chosen], self.longer[chosen])


def filters(asked: Asked, quantiles: Sequence[float]) -> dict[str, Kept]:
    """Which verdicts each filter keeps, by its name; labels have no part in it.

    ``agrees``: the margin is positive (and at least that quantile of all absolute margins). ``not confidently
    against``: all but those whose margin is below minus the median. ``longer``: the preferred answer is the longer one.
    """
    size = np.abs(asked.margin[~np.isnan(asked.margin)])
    found = {EVERY: np.ones(len(asked.margin), bool)}
    found[NOT_AGAINST] = ~(asked.margin < -_quantile(size, 0.5))
    for quantile in sorted(set(quantiles)):
        name = AGREES if quantile == 0 else f"{AGREES}, margin above {quantile:.0%}"
        found[name] = is_kept(asked.margin, _quantile(size, quantile) if quantile else 0.0)
    found[LONGER] = asked.longer > 0
    return found


def random_kept(num_kept: int, num_all: int, *names: str | int) -> Kept:
    """So many of all, drawn by a seed and names."""
    kept = np.zeros(num_all, bool)
    kept[generator(0, *names).permutation(num_all)[:num_kept]] = True
    return kept


def longest_kept(asked: Asked, num_kept: int) -> Kept:
    """The so many verdicts whose preferred answer is longer than the other by most: length at an equal coverage."""
    kept = np.zeros(len(asked.longer), bool)
    shuffled = generator(0, "ties in length").permutation(len(asked.longer))
    kept[shuffled[np.argsort(-asked.longer[shuffled], kind="stable")[:num_kept]]] = True
    return kept


def precision_table(asked: Asked, is_right: Kept, kept: dict[str, Kept], *, seed: int) -> list[dict[str, Any]]:
    """A row a filter: coverage, precision of what it keeps and drops, and paired differences of precision.

    ``gain`` is over all verdicts, ``over_random`` over as many drawn at random, ``over_length`` over as many of those
    whose preferred answer is longer by most. Intervals: a bootstrap over prompts, the filters taken as fixed.
    """
    names = list(kept)
    columns = [column for name in names for column in _with_controls(asked, kept[name], name, seed)]
    found = selection_shares(asked.prompt, np.stack(columns, axis=1), is_right, seed=seed)
    every = names.index(EVERY)
    return [_row(name, kept[name], found, 4 * place, 4 * every) for place, name in enumerate(names)]


def discrimination(asked: Asked, is_right: Kept, *, seed: int) -> dict[str, Any]:
    """The area under the ROC curve of the margin, and of the difference in length, for "the verdict is right"."""
    known = ~np.isnan(asked.margin)
    own = asked.where(known)
    of_margin, of_length = (area(own.prompt, column, is_right[known], seed=seed) for column in (own.margin, own.longer))
    return {"margin": of_margin.record(), "length": of_length.record()}


def by_preference(asked: Asked, is_right: Kept, agrees: Kept, *, seed: int) -> list[dict[str, Any]]:
    """Precision before and after agreement, apart for verdicts that prefer the longer answer and those that do not."""
    is_longer = asked.longer > 0
    rows = []
    for name, group in (("prefers the longer", is_longer), ("prefers one not longer", ~is_longer)):
        found = selection_shares(asked.prompt, np.stack([group, group & agrees], axis=1), is_right, seed=seed)
        before, after, gain = found.of(0), found.of(1), found.minus(1, 0)
        rows.append({"group": name, "all": before.record(), "agrees": after.record(), "gain": gain.record()})
    return rows


def _with_controls(asked: Asked, kept: Kept, name: str, seed: int) -> tuple[Kept, Kept, Kept, Kept]:
    number = int(kept.sum())
    return kept, ~kept, random_kept(number, len(kept), seed, "as many", name), longest_kept(asked, number)


def _row(name: str, kept: Kept, found: SelectionShares, own: int, every: int) -> dict[str, Any]:
    return {
        "filter": name,
        "num_kept": int(kept.sum()),
        "coverage": float(kept.mean()),
        "precision": found.of(own).record(),
        "gain": found.minus(own, every).record(),
        "precision_of_dropped": found.of(own + 1).record(),
        "over_random": found.minus(own, own + 2).record(),
        "over_length": found.minus(own, own + 3).record(),
    }


def _quantile(values: Floats, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else 0.0
