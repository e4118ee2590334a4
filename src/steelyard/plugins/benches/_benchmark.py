"""A benchmark as a value, with what several kinds share: the headline over sections, and the check of a subset."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.core.errors import EvidenceError, choices
from steelyard.core.numerics import Integers
from steelyard.core.types import Case, JsonObject, Scores
from steelyard.statistics.aggregation import NONE_LEFT_OUT, Breakdown, Headline, LeftOut
from steelyard.statistics.bootstrap import Totals
from steelyard.statistics.groups import prompt_names


def no_columns(cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
    """Return a table without columns, shape (case, 0): accuracy and exact match are all that the headline needs."""
    return np.zeros((len(cases), 0), dtype=np.int64)


class Benchmark(NamedTuple):
    """A benchmark, as the protocol of that name in `core.protocols` describes its fields.

    ``breakdown``, ``headline`` and ``summarise`` take totals and, optionally, the counts of prompts left out.
    ``resample_ids`` defaults to a prompt's id and text: parallel items and rows of equal text are drawn together.
    """

    breakdown: Callable[..., Breakdown]
    headline: Callable[..., Headline]
    summarise: Callable[..., JsonObject]
    source_format: str | None = None
    counts_halves: bool = False
    counts_unwinnable: bool = True
    subset_of: Callable[[str], str | None] = lambda file_name: None
    normalize: Callable[[Case, str], Case] = lambda case, file_name: case
    resample_ids: Callable[[Case], tuple[str, ...]] = prompt_names
    columns: Callable[..., Integers] = no_columns
    pair_columns: Callable[[Sequence[Case], Sequence[Mapping[tuple[str, str], bool]]], Any] | None = None


def overall(breakdown: Callable[[Totals, LeftOut], Breakdown], about: str) -> Callable[..., Headline]:
    """Return the headline ``overall``: the number over the sections of a breakdown, withheld while parts are missing.

    ``about`` describes the mean.
    """

    def headline(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Headline:
        parts = breakdown(totals, left_out)
        return Headline("overall", about, *parts.overall, parts.missing)

    return headline


def check_subset(case: Case, known: Collection[str], file_name: str, *, bench: str, word: str = "subset") -> Case:
    """Return the case itself. Raises EvidenceError for a subset that the benchmark does not have."""
    subset = case.prompt.subset
    if subset not in known:
        problem = f"prompt {case.prompt.id!r} is of {word} {subset!r}, which {bench} does not have"
        raise EvidenceError(problem, where=file_name, allowed=choices(subset or "", known))
    return case
