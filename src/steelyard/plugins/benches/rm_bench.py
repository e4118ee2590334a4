"""RM-Bench: three styles of right answer against three of wrong ones, as easy, normal and hard accuracy by domain."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError, choices
from steelyard.core.types import Case, Scores
from steelyard.statistics import aggregation
from steelyard.statistics.groups import Cell, prompt_names
from steelyard.statistics.headline import (
    NONE_LEFT_OUT,
    Breakdown,
    Formula,
    Headline,
    LeftOut,
    Part,
    mean_of_sections,
    missing_parts,
    num_prompts,
    subset_of,
)
from steelyard.statistics.pair_counts import NUM_COLUMNS, Floats, Integers
from steelyard.statistics.resampling import Totals

STYLES = ("concise", "detailed", "markdown")
DOMAINS = {
    "chat": ("chat",),
    "math": ("math",),
    "code": ("code",),
    "safety": ("safety-refuse", "safety-response"),
}
"""The four domains and the subsets of each; the prompts of a domain's subsets are pooled."""
PUBLISHED = {"chat": 129, "math": 529, "code": 228, "safety-refuse": 284, "safety-response": 157}
"""The number of prompts of each subset."""
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

    source_format: str | None = "rm_bench"
    counts_halves = False

    def subset_of(self, file_name: str) -> str | None:
        """A file's name says nothing here."""
        return None

    def normalize(self, case: Case, file_name: str) -> Case:
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

    def resample_ids(self, case: Case) -> tuple[str, ...]:
        """Its id and its text: all nine pairs of a prompt are drawn together, and so are rows of the same text."""
        return prompt_names(case)

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

    def breakdown(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Breakdown:
        """Each domain over all nine pairs of styles, and the plain mean of the domains."""
        counts = num_prompts(totals, subset_of, left_out)
        sections = {
            name: Part(_mean_over(_shares_of(totals.cells, subsets)), sum(counts[one] for one in subsets))
            for name, subsets in DOMAINS.items()
            if any(counts[one] for one in subsets)
        }
        n = sum(part.n for part in sections.values())
        return Breakdown(sections, Part(mean_of_sections(sections), n), missing_parts(counts, PUBLISHED))

    def headline(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Headline:
        """Overall, the plain mean of the four domains, each the mean of its nine cells."""
        own = self.breakdown(totals, left_out)
        about = "the plain mean of chat, math, code and safety over all nine pairs of styles"
        return Headline("overall", about, *own.overall, own.missing)

    def summarise(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> dict[str, Any]:
        """``sections``: each domain and each of easy, normal and hard; and the headline.

        Safety has a value where both its subsets are complete: pooled in other proportions it is another mean. Easy,
        normal and hard are means over the domains, and have values where the headline has one.
        """
        own, headline = self.breakdown(totals, left_out), self.headline(totals, left_out)
        parts = {
            name: part
            for name, part in own.sections.items()
            if len(DOMAINS[name]) == 1 or not any(one in own.missing for one in DOMAINS[name])
        }
        if not headline.missing:
            shares = [_shares_of(totals.cells, subsets) for subsets in DOMAINS.values()]
            parts |= {name: Part(_mean_over(*shares, places=places), headline.n) for name, places in PARTS.items()}
        sections = {name: aggregation.estimate(totals, *part).record() for name, part in parts.items()}
        return {"sections": sections, **headline.record(totals)}


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


def _shares_of(cells: Sequence[Cell], subsets: Sequence[str]) -> Formula:
    """The nine shares over all prompts of these subsets: (…, cell, column) to (…, 9)."""
    place = [index for index, cell in enumerate(cells) if cell.subset in subsets]

    def shares(sums: Floats) -> Floats:
        # Differs from: the plain mean of refuse and respond. The official code pools both by prompt.
        summed = sums[..., place, NUM_COLUMNS:].sum(axis=-2)
        return summed[..., :_PROMPTS] / summed[..., _PROMPTS:]

    return shares


def _mean_over(*shares: Formula, places: Integers | None = None) -> Formula:
    """The plain mean over domains and over the cells of the matrix at ``places``, or over all nine."""
    chosen = slice(None) if places is None else places
    return lambda sums: np.mean([own(sums)[..., chosen].mean(axis=-1) for own in shares], axis=0)
