"""The type of a measure: an estimate from a model's scores, its rows, figures and panels, and its words.

Each file of `measures/` that defines ``MEASURE`` is one measure, and the name of the file is its name in ``run.json``.
No table lists them: an evaluation's summary, its report, the comparison of two models and the terminal iterate over
`measures()`.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from math import isnan
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np

from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.core.types import Record
from steelyard.evaluation.bench_pairs import PairValues
from steelyard.evaluation.columns import BenchColumns, ScoreColumns
from steelyard.evaluation.relabelled import RelabelledPairs
from steelyard.evaluation.tables import PERCENT, Form, Panel, Sentence
from steelyard.statistics.bootstrap import Blocks
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.prompt_means import Ratio, mean_of, summarise
from steelyard.statistics.stated_label_error import StatedLabelError

MATCHED_RATIO = 1.1
"""The default of the largest ratio of two matching lengths, the longer over the shorter."""
_PACKAGE = "steelyard.evaluation.measures"
SummaryT = TypeVar("SummaryT", bound=Record)


class Means(Record, frozen=True, kw_only=True):
    """The mean over first-tier categories (``macro``) and over all pairs or prompts (``micro``)."""

    macro: Estimate
    micro: Estimate


class GroupedMeans(Means, frozen=True, kw_only=True):
    """Macro and micro means, and the mean of each category and language."""

    by_category: dict[str, Estimate]
    by_language: dict[str, Estimate]


class BenchCeiling(Record, frozen=True, kw_only=True):
    """Values that a perfect model reaches on a bench, some of whose labels are wrong: means over categories.

    ``least``: the accuracy if people's errors gather on hard pairs; null where better judges made labels again, which
    needs no assumption. ``exact_match``: null where prompts have one pair, or nothing tells it.
    """

    accuracy: Estimate
    least: Estimate | None = None
    exact_match: Estimate | None = None


class Needs(NamedTuple):
    """The requirements of a measure.

    ``scores``: a score for each response, not only verdicts on pairs. ``rewards``: these scores are rewards, not the
    ratings or choices of a prompted model. ``complete``: a reward model has scored both responses of every pair.
    """

    scores: bool = False
    rewards: bool = False
    complete: bool = True


class ScoredBench(NamedTuple):
    """A bench, or a batch of its cases, with the scores or verdicts of a model.

    ``relabelled``: what better judges said of a random part of its labels; ``stated``: the label error that it states.
    """

    columns: BenchColumns
    scores: ScoreColumns
    values: PairValues
    has_scores: bool = True
    has_rewards: bool = True
    matched_ratio: float = MATCHED_RATIO
    relabelled: RelabelledPairs | None = None
    stated: StatedLabelError | None = None

    def meets(self, needs: Needs) -> bool:
        """Return whether a measure with these needs applies."""
        if (needs.scores and not self.has_scores) or (needs.rewards and not self.has_rewards):
            return False
        return not (needs.complete and self.has_rewards and np.isnan(self.values.better + self.values.worse).any())


class ResampledBench(NamedTuple):
    """A scored bench with the resamples of its included prompts, which all measures share.

    ``accuracy`` is the headline, and ``exact_match`` that of prompts: a measure that repeats one has the same interval.
    """

    bench: ScoredBench
    blocks: Blocks
    accuracy: GroupedMeans
    seed: int
    exact_match: Means | None = None

    @property
    def included(self) -> Booleans:
        """True for cases that count; shape (case,)."""
        return self.bench.columns.included

    @property
    def rows(self) -> Integers:
        """The position of each included case among the included ones, arbitrary for others; shape (case,)."""
        return np.cumsum(self.included) - 1


def grouped_means(blocks: Blocks, ratios: Mapping[str, Ratio]) -> dict[str, GroupedMeans]:
    """Estimate the means of each ratio, whose terms have shape (prompt,)."""
    return msgspec.convert(summarise(blocks, ratios), dict[str, GroupedMeans])


def ungrouped_means(blocks: Blocks, ratios: Mapping[str, Ratio]) -> dict[str, Means]:
    """Estimate the means of each ratio without categories and languages."""
    if not ratios:
        return {}
    return msgspec.convert(summarise(blocks, ratios, with_groups=False), dict[str, Means])


class MeasureRow(NamedTuple):
    """A row of the table of measures; ``chance`` is the value of a random choice. Null means no value."""

    title: str
    macro: Estimate | None
    micro: Estimate | None
    form: Form = PERCENT
    chance: Estimate | None = None


def means_row(title: str, means: Means, form: Form = PERCENT, chance: Means | None = None) -> MeasureRow:
    """Return the row of a mean."""
    return MeasureRow(title, means.macro, means.micro, form, None if chance is None else chance.macro)


class GroupColumn(NamedTuple):
    """A column of the table of categories and of the table of languages; ``title`` is a word."""

    title: str
    means: GroupedMeans
    form: Form = PERCENT


Columns = Mapping[str, Sequence[float | None]]
"""Columns of ``items.jsonl`` by name, one value per case; null where the measure is undefined."""


def _nothing(summary: Any) -> tuple[Any, ...]:
    return ()


def _none(summary: Any) -> None:
    return None


def _no_sentences(model: str, summary: Any) -> tuple[Sentence, ...]:
    return ()


def _no_columns(bench: ScoredBench) -> Columns:
    return {}


def paired_means(columns: Mapping[str, Floats]) -> dict[str, Ratio]:
    """Return the mean of every column: the paired comparison of most measures."""
    return {name: mean_of(values) for name, values in columns.items()}


class Measure(NamedTuple, Generic[SummaryT]):
    """One measure. Only ``order``, ``summary``, ``estimate`` and ``text`` are required."""

    order: int
    """The position of the measure in tables and on the terminal."""
    summary: type[SummaryT]
    """The type of its part of ``run.json``."""
    estimate: Callable[[ResampledBench], SummaryT | None]
    """Compute the summary; null if the bench lacks the data."""
    text: Mapping[str, Mapping[str, str]]
    """Its words in each language; those with the prefix ``define_`` are under "How to read the numbers"."""
    needs: Needs = Needs()
    rows: Callable[[SummaryT], Iterable[MeasureRow]] = _nothing
    """Rows of the table of measures."""
    group_column: Callable[[SummaryT], GroupColumn | None] = _none
    """Its column in the table of categories and in that of languages."""
    panels: Callable[[SummaryT], Iterable[Panel]] = _nothing
    """Panels of its own for one model."""
    shared_panel: Callable[[Mapping[str, SummaryT]], Panel | None] = _none
    """A panel of all models, by name."""
    sentences: Callable[[str, SummaryT], Iterable[Sentence]] = _no_sentences
    """Its result in words, for the model of this name."""
    ceiling: Callable[[SummaryT], BenchCeiling | None] = _none
    """Values that a perfect model reaches on the bench, where it states them."""
    columns: Callable[[ScoredBench], Columns] = _no_columns
    """Columns of ``items.jsonl``, from which models are compared; not called where ``needs`` lack scores."""
    column_names: tuple[str, ...] = ()
    paired: Callable[[Mapping[str, Floats]], Mapping[str, Ratio]] = paired_means
    """The ratios whose paired difference `compare` estimates, from these columns; NaN for null."""
    paired_titles: tuple[tuple[str, str], ...] = ()
    """The name of each of these ratios with its title on the terminal."""


@cache
def measures() -> Mapping[str, Measure[Any]]:
    """Return the measures by name, in their order."""
    package = importlib.import_module(_PACKAGE)
    modules = {
        name: vars(importlib.import_module(f"{_PACKAGE}.{name}"))
        for _, name, _ in pkgutil.iter_modules(package.__path__)
    }
    values = {name: module["MEASURE"] for name, module in modules.items() if "MEASURE" in module}
    return dict(sorted(values.items(), key=lambda item: (item[1].order, item[0])))


def measure_texts() -> dict[str, Mapping[str, str]]:
    """Return the words of all measures, by key."""
    return {key: words for measure in measures().values() for key, words in measure.text.items()}


def paired_titles() -> dict[str, str]:
    """Return the title on the terminal of every ratio by which models are compared."""
    return {name: title for measure in measures().values() for name, title in measure.paired_titles}


def item_columns(bench: ScoredBench) -> dict[str, Sequence[float | None]]:
    """Return the columns of ``items.jsonl`` of all measures, for a batch of cases."""
    columns: dict[str, Sequence[float | None]] = {}
    for measure in measures().values():
        if measure.needs.scores and not bench.has_scores:
            columns |= {name: [None] * len(bench.columns.start) for name in measure.column_names}
        else:
            columns |= measure.columns(bench)
    return columns


def null_where_nan(values: Floats) -> list[float | None]:
    """Return an array as a list with null for NaN."""
    return [None if isnan(value) else value for value in values.tolist()]
