"""The pairs of a study of filters: those that people and a judge prefer, and which verdicts agree with people."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError, choices
from steelyard.core.numerics import Booleans, Floats, Integers, generator
from steelyard.core.text import num_characters
from steelyard.core.types import Case, Meta
from steelyard.curation.splits import root_text
from steelyard.ranking.judgment_table import NONE, TIE, Only, Verdicts, judgment_table, majority
from steelyard.ranking.pairs import pairs_of
from steelyard.statistics.unit_bootstrap import number_units


class Config(BaseConfig, frozen=True):
    """``judge``: the judge whose verdicts are filtered.

    ``train_on``: the people's pairs that models learn from, those with a strict ``majority`` or ``unanimous`` ones;
    tests are on every strict majority. ``quantiles`` of the absolute margin are the filters' thresholds.

    ``human_shares``: for each, models are trained on people's pairs of that share of the prompts, with the judge's
    verdicts on the others, filtered by a supervisor trained on the share; none leaves out this half of the study.
    ``repetitions`` of ``folds``-fold cross-validation. ``most_pairs``: the largest number of verdicts per prompt, drawn
    by the ``seed``. ``model``: settings of the reward model's own Config.
    """

    judge: str = ""
    """The judge whose verdicts are filtered, as named in the file."""
    train_on: Literal["majority", "unanimous"] = "majority"
    """Which pairs of people models learn from: those with a strict majority, or unanimous ones."""
    quantiles: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)
    """The thresholds of the filters, as quantiles of the absolute margin."""
    human_shares: tuple[float, ...] = (0.1, 0.3, 0.6)
    """The shares of prompts with judgments of people; [] leaves out the trained models."""
    folds: int = 5
    """The number of folds of cross-validation."""
    repetitions: int = 4
    """The number of repetitions of cross-validation."""
    most_pairs: int | None = None
    """The largest number of verdicts a prompt, drawn at random. Default: all."""
    model: Meta = msgspec.field(default_factory=dict)
    """Settings of the model's kind."""
    seed: int = 0
    """The seed of folds, draws and resamples."""


class PairColumns(NamedTuple):
    """Pairs of responses: the case, and the positions of its better and its worse response."""

    case: Integers
    better: Integers
    worse: Integers

    def where(self, chosen: Booleans | Integers) -> "PairColumns":
        """Return the chosen pairs."""
        return PairColumns(*(column[chosen] for column in self))

    def reversed_where(self, chosen: Booleans) -> "PairColumns":
        """Return all pairs, with the chosen ones reversed."""
        better, worse = np.where(chosen, self.worse, self.better), np.where(chosen, self.better, self.worse)
        return PairColumns(self.case, better, worse)

    def plus(self, other: "PairColumns") -> "PairColumns":
        """Return these pairs followed by the others."""
        return PairColumns(*(np.concatenate(both) for both in zip(self, other, strict=True)))


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
    span = max((len(case.responses) for case in cases), default=0) + 1
    people = judgment_table(cases, Only(kind=("human",))).verdicts
    people = people.where(people.verdict != NONE)
    voted = majority(people)
    strict = voted.where(voted.verdict != TIE)
    if not len(strict.graph):
        raise EvidenceError(
            f"people prefer no answer in any of {len(cases)} cases: there is nothing to learn from or to test on",
            where=where,
            do="bring people's judgments into the file: steelyard merge HUMAN LLM",
        )
    verdicts = _verdicts_of(cases, config, where)
    judged = PairColumns(verdicts.graph, verdicts.better, verdicts.worse)
    keys, judged_keys = _pair_keys(strict, span), _pair_keys(verdicts, span)
    order = np.argsort(keys)
    place = order[np.searchsorted(keys[order], judged_keys).clip(max=len(keys) - 1)]
    has_key = keys[place] == judged_keys
    return Study(
        cases=tuple(cases),
        prompt=number_units([root_text(case) for case in cases]),
        human=PairColumns(strict.graph, strict.better, strict.worse),
        trains=_unanimous(people, strict, span) if config.train_on == "unanimous" else np.ones(len(keys), bool),
        judged=judged,
        longer=_length_differences(cases, judged),
        has_key=has_key,
        is_right=has_key & (strict.better[place] == judged.better),
    )


def num_unlisted(study: Study) -> int:
    """Count the judge's strict verdicts on pairs that their case, which lists pairs, does not list either way."""
    listed = [_listed_ends(case) for case in study.cases]
    return sum(
        ends is not None and frozenset((better, worse)) not in ends
        for case, better, worse in zip(*(column.tolist() for column in study.judged), strict=True)
        for ends in (listed[case],)
    )


def _listed_ends(case: Case) -> set[frozenset[int]] | None:
    return None if case.pairs is None else {frozenset(pair[:2]) for pair in pairs_of(case, "listed")}


def _verdicts_of(cases: Sequence[Case], config: Config, where: str) -> Verdicts:
    """Return the judge's strict verdicts, at most ``most_pairs`` of each prompt."""
    judges = {judgment.judge for case in cases for judgment in case.judgments if judgment.kind != "human"}
    if config.judge not in judges:
        problem = f"no model named {config.judge!r} judged here"
        raise ConfigError(problem, where=where, allowed=choices(config.judge, judges), do="name another --judge")
    verdicts = judgment_table(cases, Only(judge=(config.judge,), kind=("llm", "model"))).verdicts
    verdicts = verdicts.where(verdicts.is_strict)
    if not len(verdicts.graph):
        problem = f"the judge {config.judge!r} prefers no answer anywhere"
        raise EvidenceError(problem, where=where, do="name another --judge")
    if config.most_pairs is None:
        return verdicts
    shuffled = generator(config.seed, "most pairs").permutation(len(verdicts.graph))
    order = shuffled[np.argsort(verdicts.graph[shuffled], kind="stable")]
    _, start, count = np.unique(verdicts.graph[order], return_index=True, return_counts=True)
    is_early = np.arange(len(order)) - np.repeat(start, count) < config.most_pairs
    return verdicts.where(np.isin(np.arange(len(order)), order[is_early]))


def _pair_keys(verdicts: Verdicts, span: int) -> Integers:
    """Return one number for each pair of a case, the same for both orders of its responses."""
    low, high = np.minimum(verdicts.left, verdicts.right), np.maximum(verdicts.left, verdicts.right)
    return (verdicts.graph * span + low) * span + high


def _unanimous(people: Verdicts, voted: Verdicts, span: int) -> Booleans:
    """Return which of the pairs have no verdict against the majority."""
    votes = np.where(people.is_strict, people.better, -1) + _pair_keys(people, span) * span
    keys = _pair_keys(voted, span)
    is_against = np.isin(votes, voted.better + keys * span, invert=True)
    return np.isin(keys, _pair_keys(people, span)[is_against], invert=True)


def _length_differences(cases: Sequence[Case], judged: PairColumns) -> Floats:
    size = [[num_characters(response) for response in case.responses] for case in cases]
    return np.array(
        [size[case][better] - size[case][worse] for case, better, worse in zip(*judged, strict=True)], np.float64
    )
