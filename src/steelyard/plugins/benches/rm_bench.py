"""RM-Bench: three styles of right answer against three of wrong ones, as easy, normal and hard accuracy by domain."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError, choices
from steelyard.core.types import Case, Scores
from steelyard.methods.measures import aggregation
from steelyard.methods.measures.accuracy import NUM_COLUMNS, Floats, Integers
from steelyard.methods.measures.resampling import Items, Totals, resample

STYLES = ("concise", "detailed", "markdown")
DOMAINS = {
    "chat": ("chat",),
    "math": ("math",),
    "code": ("code",),
    "safety": ("safety-refuse", "safety-response"),
}
"""The four domains and the subsets of each; safety is the plain mean of two."""
_PROMPTS = len(STYLES) ** 2
_PLACES = np.arange(_PROMPTS).reshape(len(STYLES), len(STYLES))
PARTS = {
    "easy": _PLACES[np.tril_indices(len(STYLES), -1)],
    "normal": np.diag(_PLACES),
    "hard": _PLACES[np.triu_indices(len(STYLES), 1)],
}
"""The cells of the matrix (rows: the right answer's style, columns: the wrong one's) that each part is the mean of."""


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Bench:
    """A pair is right when the right answer's score is strictly greater; the mean of all nine is a domain's value."""

    foreign: str | None = "rm_bench"

    def subset_of(self, file_name: str) -> str | None:
        """A file's name says nothing here."""
        return None

    def prepared(self, case: Case, file_name: str) -> Case:
        """The case itself. Raises EvidenceError for another domain, or answers that are not three styles a side."""
        known = [name for names in DOMAINS.values() for name in names]
        if case.prompt.subset not in known:
            raise EvidenceError(
                f"prompt {case.prompt.id!r} is of domain {case.prompt.subset!r}, which RM-Bench does not have",
                where=file_name,
                allowed=choices(case.prompt.subset or "", known),
            )
        if _by_style(case) is None:
            found = f"prompt {case.prompt.id!r} has not one right and one wrong answer of each style"
            raise EvidenceError(found, where=file_name, allowed=f"two tiers of three, meta.style: {', '.join(STYLES)}")
        return case

    def unit_of(self, case: Case) -> str:
        """Each prompt is drawn for itself."""
        return case.prompt.id

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """Which of the nine pairs are right, row by row of the matrix, and a column of ones: shape (case, 10)."""
        table = np.ones((len(cases), _PROMPTS + 1), dtype=np.int64)
        for row, (case, line) in enumerate(zip(cases, lines, strict=True)):
            sides = _by_style(case)
            assert sides is not None, "prepared cases have the shape"
            right, wrong = (
                np.array([np.nan if (score := line.scores[name]) is None else score for name in side]) for side in sides
            )
            unscored = np.isnan(right)[:, None] | np.isnan(wrong)[None]
            table[row, :_PROMPTS] = np.where(unscored, unscored_is_right, right[:, None] > wrong[None]).ravel()
        return table

    def pair_columns(self, cases: Sequence[Case], right: Sequence[Mapping[tuple[str, str], bool]]) -> Integers:
        """The same from verdicts on the nine pairs."""
        table = np.ones((len(cases), _PROMPTS + 1), dtype=np.int64)
        for row, (case, own) in enumerate(zip(cases, right, strict=True)):
            sides = _by_style(case)
            assert sides is not None, "prepared cases have the shape"
            better, worse = sides
            table[row, :_PROMPTS] = [own[one, other] for one in better for other in worse]
        return table

    def summarise(self, items: Items, *, seed: int) -> dict[str, Any]:
        """``sections``: each domain and each of easy, normal and hard; ``overall``: the mean of four domains."""
        totals = resample(items, seed=seed)
        point, resampled = (_shares(sums, totals) for sums in (totals.point, totals.resampled))
        present = [name for name in DOMAINS if name in point]
        sums = totals.point[:, NUM_COLUMNS:]
        n = {name: _number(sums, totals, DOMAINS[name]) for name in present}
        sections = {
            name: aggregation.interval(float(point[name].mean()), resampled[name].mean(axis=-1), n[name]).record()
            for name in present
        }
        absent = [name for name in DOMAINS if name not in point]
        if absent:
            return {"sections": sections, "missing": dict.fromkeys(absent, "no cases of it, or of a half of it")}
        whole, drawn = (np.mean([shares[name] for name in DOMAINS], axis=0) for shares in (point, resampled))
        number = sum(n.values())
        parts = {
            name: aggregation.interval(float(whole[places].mean()), drawn[..., places].mean(axis=-1), number).record()
            for name, places in PARTS.items()
        }
        overall = aggregation.interval(float(whole.mean()), drawn.mean(axis=-1), number)
        return {"sections": sections | parts, "overall": overall.record()}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench()


def _by_style(case: Case) -> tuple[list[str], list[str]] | None:
    """The ids of the right and of the wrong answers, by style; null where one is absent or stands twice."""
    styles = {response.id: (response.meta or {}).get("style") for response in case.responses}
    tiers = case.ranking or ()
    found = [{styles[name]: name for name in tier} for tier in tiers]
    if [len(tier) for tier in tiers] != [3, 3] or any(set(own) != set(STYLES) for own in found):
        return None
    right, wrong = ([own[style] for style in STYLES] for own in found)
    return right, wrong


def _shares(sums: Floats, totals: Totals) -> dict[str, Floats]:
    """The nine shares of each domain all of whose subsets are there: (…, 9)."""
    own = sums[..., NUM_COLUMNS:]
    found = {}
    for domain, subsets in DOMAINS.items():
        parts = []
        for subset in subsets:
            cells = [index for index, cell in enumerate(totals.cells) if cell.subset == subset]
            if cells:
                summed = own[..., cells, :].sum(axis=-2)
                parts.append(summed[..., :_PROMPTS] / summed[..., _PROMPTS:])
        if len(parts) == len(subsets):
            found[domain] = np.mean(parts, axis=0)
    return found


def _number(sums: Floats, totals: Totals, subsets: Sequence[str]) -> int:
    return int(sum(own[_PROMPTS] for own, cell in zip(sums, totals.cells, strict=True) if cell.subset in subsets))
