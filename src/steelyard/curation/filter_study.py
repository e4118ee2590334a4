"""The study of filters: the pairs of people and of a judge, and the precision of the verdicts that each filter keeps.

The reward model's filters are compared with controls that use none of its training: length, and chance.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from steelyard.core.checks import checked_scores
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError, choices
from steelyard.core.numerics import Booleans, Floats, Integers, generator
from steelyard.core.protocols import TrainableModel
from steelyard.core.remedies import CASES, Advice, Command, Remedy
from steelyard.core.text import num_characters
from steelyard.core.types import Case, Meta, Pair, Record
from steelyard.curation.calibration import is_kept
from steelyard.curation.splits import root_text
from steelyard.ranking.judgment_table import NONE, TIE, Only, Verdicts, judgment_table, majority
from steelyard.ranking.pairs import pairs_of
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unique_rows import find_codes
from steelyard.statistics.unit_bootstrap import area, number_units, selection_shares


class Config(BaseConfig, frozen=True):
    """``judge``: the judge whose verdicts are filtered.

    ``train_on``: the people's pairs that models learn from, those with a strict ``majority`` or ``unanimous`` ones;
    tests are on every strict majority. ``quantiles`` of the absolute margin are the filters' thresholds.

    ``max_pairs``: the largest number of verdicts per prompt, drawn by the ``seed``. ``model``: settings of the reward
    model's own Config.
    """

    judge: str = ""
    """The judge whose verdicts are filtered, as named in the file."""
    train_on: Literal["majority", "unanimous"] = "majority"
    """Which pairs of people models learn from: those with a strict majority, or unanimous ones."""
    quantiles: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)
    """The thresholds of the filters, as quantiles of the absolute margin."""
    max_pairs: int | None = None
    """The largest number of verdicts a prompt, drawn at random. Default: all."""
    model: Meta = msgspec.field(default_factory=dict)
    """Settings of the model's kind."""
    seed: int = 0
    """The seed of draws and resamples."""


class PairColumns(NamedTuple):
    """Pairs of responses: the case, and the positions of its better and its worse response."""

    case: Integers
    better: Integers
    worse: Integers

    def where(self, chosen: Booleans | Integers) -> "PairColumns":
        """Return the chosen pairs."""
        return PairColumns(*(column[chosen] for column in self))


class Study(NamedTuple):
    """All pairs of all cases. ``prompt`` numbers each case by the text of its first turn: equal texts are one prompt.

    ``human``: the pairs with a strict majority of people; ``trains``: those that models may learn from. ``judged``: the
    pair of each strict verdict; ``longer``: by how many characters its preferred answer is longer; ``has_key``: people
    have a strict majority on it; ``is_right``: the verdict agrees with them.
    """

    cases: tuple[Case, ...]
    prompt: Integers
    human: PairColumns
    trains: Booleans
    judged: PairColumns
    longer: Floats
    has_key: Booleans
    is_right: Booleans


def read_study(cases: Sequence[Case], config: Config, *, where: str) -> Study:
    """Return the pairs. Raises ConfigError for an unknown judge, EvidenceError without verdicts of people or judge."""
    # One width for both tables, so that the keys of their pairs are comparable.
    span = max((len(case.responses) for case in cases), default=0) + 1
    people = judgment_table(cases, Only(kind=("human",))).verdicts
    people = people.where(people.verdict != NONE)
    voted = majority(people)
    strict = voted.where(voted.verdict != TIE)
    if not len(strict.graph):
        raise EvidenceError(
            f"people prefer no answer in any of {len(cases)} cases: there is nothing to learn from or to test on",
            where=where,
            do=Advice("bring people's judgments into the file: ", Command("merge", (CASES, CASES))),
        )
    verdicts = _verdicts_of(cases, config, where)
    judged = PairColumns(verdicts.graph, verdicts.better, verdicts.worse)
    place, has_key = find_codes(strict.pair_keys(span), verdicts.pair_keys(span))
    size = [[num_characters(response) for response in case.responses] for case in cases]
    trains = np.ones(len(strict.graph), bool)
    if config.train_on == "unanimous":
        # One number for a pair and its preferred response; -1 makes a tie differ from either.
        votes = np.where(people.is_strict, people.better, -1) + people.pair_keys(span) * span
        keys = strict.pair_keys(span)
        is_against = np.isin(votes, strict.better + keys * span, invert=True)
        trains = np.isin(keys, people.pair_keys(span)[is_against], invert=True)
    return Study(
        cases=tuple(cases),
        prompt=number_units([root_text(case) for case in cases]),
        human=PairColumns(strict.graph, strict.better, strict.worse),
        trains=trains,
        judged=judged,
        longer=np.array(
            [size[case][better] - size[case][worse] for case, better, worse in zip(*judged, strict=True)], np.float64
        ),
        has_key=has_key,
        is_right=has_key & (strict.better[place] == judged.better),
    )


def num_unlisted(study: Study) -> int:
    """Count the judge's strict verdicts on pairs that their case, which lists pairs, does not list either way."""
    listed = [
        None if case.pairs is None else {frozenset(pair[:2]) for pair in pairs_of(case, "listed")}
        for case in study.cases
    ]
    return sum(
        ends is not None and frozenset((better, worse)) not in ends
        for case, better, worse in zip(*(column.tolist() for column in study.judged), strict=True)
        for ends in (listed[case],)
    )


def _verdicts_of(cases: Sequence[Case], config: Config, where: str) -> Verdicts:
    """Return the judge's strict verdicts, at most ``max_pairs`` of each prompt."""
    judges = {judgment.judge for case in cases for judgment in case.judgments if judgment.kind != "human"}
    if config.judge not in judges:
        problem = f"no model named {config.judge!r} judged here"
        raise ConfigError(
            problem, where=where, allowed=choices(config.judge, judges), do=Advice("name another ", Remedy("judge"))
        )
    verdicts = judgment_table(cases, Only(judge=(config.judge,), kind=("llm", "model"))).verdicts
    verdicts = verdicts.where(verdicts.is_strict)
    if not len(verdicts.graph):
        problem = f"the judge {config.judge!r} prefers no answer anywhere"
        raise EvidenceError(problem, where=where, do=Advice("name another ", Remedy("judge")))
    if config.max_pairs is None:
        return verdicts
    # A stable sort of a permutation by prompt: the first entries of each prompt are a simple random sample.
    shuffled = generator(config.seed, "most pairs").permutation(len(verdicts.graph))
    order = shuffled[np.argsort(verdicts.graph[shuffled], kind="stable")]
    _, start, count = np.unique(verdicts.graph[order], return_index=True, return_counts=True)
    is_early = np.arange(len(order)) - np.repeat(start, count) < config.max_pairs
    return verdicts.where(np.isin(np.arange(len(order)), order[is_early]))


EVERY, AGREES, NOT_AGAINST, LONGER = "all", "agrees", "not confidently against", "longer"


class VerdictMargins(NamedTuple):
    """Columns with one entry for each strict verdict: prompt, the supervisor's margin, and the difference of lengths.

    The margin is NaN where a score is missing: such a verdict does not agree, and is not confidently against.
    """

    prompt: Integers
    margin: Floats
    longer: Floats

    def where(self, chosen: Booleans) -> "VerdictMargins":
        """Return the chosen entries."""
        return VerdictMargins(self.prompt[chosen], self.margin[chosen], self.longer[chosen])


class FilterPrecision(Record, frozen=True, kw_only=True):
    """One filter: coverage, precision of the verdicts it keeps and drops, and paired differences of precision.

    ``gain`` is over all verdicts, ``over_random`` over as many drawn at random, ``over_length`` over as many of those
    whose preferred answer is longest relative to the other. Intervals: a bootstrap over prompts, with fixed filters.
    """

    filter: str
    num_kept: int
    coverage: float
    precision: Estimate
    gain: Estimate
    precision_of_dropped: Estimate
    over_random: Estimate
    over_length: Estimate


class PreferencePrecision(Record, frozen=True, kw_only=True):
    """Precision of all verdicts and of those that agree, for verdicts that prefer the longer answer or do not."""

    group: str
    all: Estimate
    agrees: Estimate
    gain: Estimate


class AreaUnderCurve(Record, frozen=True, kw_only=True):
    """The area under the ROC curve for "the verdict is right": of the margin, and of the difference of lengths."""

    margin: Estimate
    length: Estimate


class PrecisionStudy(Record, frozen=True, kw_only=True):
    """Precision by coverage, over the verdicts on which people have a strict majority."""

    num_verdicts: int
    filters: tuple[FilterPrecision, ...]
    by_preference: tuple[PreferencePrecision, ...]
    area_under_curve: AreaUnderCurve


def apply_filters(verdicts: VerdictMargins, quantiles: Sequence[float]) -> dict[str, Booleans]:
    """Return which verdicts each filter keeps, by its name; labels have no part in it.

    ``agrees``: the margin is positive (and at least that quantile of all absolute margins). ``not confidently
    against``: all but those whose margin is below minus the median. ``longer``: the preferred answer is the longer one.
    """
    size = np.abs(verdicts.margin[~np.isnan(verdicts.margin)])
    filters = {EVERY: np.ones(len(verdicts.margin), bool)}
    filters[NOT_AGAINST] = ~(verdicts.margin < -_quantile(size, 0.5))
    for quantile in sorted(set(quantiles)):
        name = AGREES if quantile == 0 else f"{AGREES}, margin above {quantile:.0%}"
        filters[name] = is_kept(verdicts.margin, _quantile(size, quantile) if quantile else 0.0)
    filters[LONGER] = verdicts.longer > 0
    return filters


def _quantile(values: Floats, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else 0.0


def draw_random(num_kept: int, num_all: int, *names: str | int) -> Booleans:
    """Return ``num_kept`` of all entries, drawn by a seed and names."""
    drawn = np.zeros(num_all, bool)
    drawn[generator(0, *names).permutation(num_all)[:num_kept]] = True
    return drawn


def pick_longest(verdicts: VerdictMargins, num_kept: int) -> Booleans:
    """Return the ``num_kept`` verdicts with the largest difference of lengths: the control of equal coverage."""
    longest = np.zeros(len(verdicts.longer), bool)
    # Shuffled before the stable sort: ties of length are broken at random, not by their place in the file.
    shuffled = generator(0, "ties in length").permutation(len(verdicts.longer))
    longest[shuffled[np.argsort(-verdicts.longer[shuffled], kind="stable")[:num_kept]]] = True
    return longest


def precision_of_filters(
    verdicts: VerdictMargins, is_right: Booleans, filters: dict[str, Booleans], *, seed: int
) -> tuple[FilterPrecision, ...]:
    """Return a row for each filter; all filters and controls are resampled together."""
    # Four selections a filter: kept, dropped, and the two controls of equal coverage.
    columns = []
    for name, flags in filters.items():
        number = int(flags.sum())
        random = draw_random(number, len(flags), seed, "as many", name)
        columns += [flags, ~flags, random, pick_longest(verdicts, number)]
    precision = selection_shares(verdicts.prompt, np.stack(columns, axis=1), is_right, seed=seed)
    every = 4 * list(filters).index(EVERY)
    return tuple(
        FilterPrecision(
            filter=name,
            num_kept=int(flags.sum()),
            coverage=float(flags.mean()),
            precision=precision.of(column),
            gain=precision.minus(column, every),
            precision_of_dropped=precision.of(column + 1),
            over_random=precision.minus(column, column + 2),
            over_length=precision.minus(column, column + 3),
        )
        for column, (name, flags) in zip(range(0, len(columns), 4), filters.items(), strict=True)
    )


def area_under_curve(verdicts: VerdictMargins, is_right: Booleans, *, seed: int) -> AreaUnderCurve:
    """Measure how well margin and difference of lengths separate right from wrong verdicts, without unscored ones."""
    has_margin = ~np.isnan(verdicts.margin)
    prompt, margin, longer = verdicts.where(has_margin)
    return AreaUnderCurve(
        margin=area(prompt, margin, is_right[has_margin], seed=seed),
        length=area(prompt, longer, is_right[has_margin], seed=seed),
    )


def precision_by_preference(
    verdicts: VerdictMargins, is_right: Booleans, agrees: Booleans, *, seed: int
) -> tuple[PreferencePrecision, ...]:
    """Return precision before and after agreement, for verdicts that prefer the longer answer and those that do not."""
    is_longer = verdicts.longer > 0
    rows = []
    for name, group in (("prefers the longer", is_longer), ("prefers one not longer", ~is_longer)):
        precision = selection_shares(verdicts.prompt, np.stack([group, group & agrees], axis=1), is_right, seed=seed)
        rows.append(
            PreferencePrecision(group=name, all=precision.of(0), agrees=precision.of(1), gain=precision.minus(1, 0))
        )
    return tuple(rows)


def fit_pairs(model: TrainableModel, study: Study, pairs: PairColumns) -> TrainableModel:
    """Return the model trained on these pairs alone."""
    listed: dict[int, list[Pair]] = {}
    for number, better, worse in zip(*(column.tolist() for column in pairs), strict=True):
        responses = study.cases[number].responses
        listed.setdefault(number, []).append(Pair(better=responses[better].id, worse=responses[worse].id))
    return model.fit(
        [
            msgspec.structs.replace(study.cases[number], ranking=None, pairs=tuple(of_case), ratings=())
            for number, of_case in sorted(listed.items())
        ]
    )


def margins_of_pairs(model: TrainableModel, study: Study, pairs: PairColumns) -> Floats:
    """Return for each pair the better response's score minus the worse one's; NaN where a score is missing."""
    numbers = np.unique(pairs.case).tolist()
    cases = [study.cases[number] for number in numbers]
    scores: dict[int, list[float]] = {}
    for number, case, line in zip(numbers, cases, model.score(cases), strict=True):
        by_response = checked_scores(case, line, by="the model").scores
        values = [by_response[response.id] for response in case.responses]
        scores[number] = [np.nan if value is None else value for value in values]
    return np.array(
        [scores[case][better] - scores[case][worse] for case, better, worse in zip(*pairs, strict=True)], np.float64
    )


def verdict_margins(model: TrainableModel, study: Study, chosen: Booleans) -> VerdictMargins:
    """Return the model's margins for the chosen verdicts of the judge."""
    pairs = study.judged.where(chosen)
    return VerdictMargins(study.prompt[pairs.case], margins_of_pairs(model, study, pairs), study.longer[chosen])


class FilterStudySummary(Record, frozen=True, kw_only=True):
    """The study: precision by coverage, null where people have no majority on any pair that the judge compared."""

    judge: str
    model: str
    num_prompts: int
    num_human_pairs: int
    num_human_pairs_trained_on: int
    precision: PrecisionStudy | None


class CheckedVerdict(Record, frozen=True, kw_only=True):
    """A line of ``verdicts.jsonl``: a verdict that people's majority can check; the margin is null without a score."""

    prompt: str
    language: str | None
    preferred: str
    other: str
    margin: float | None
    is_right: bool
