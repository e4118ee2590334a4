"""What people and the judge say of each pair, as columns, and which verdicts of the judge are right by the people."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.arrays import Floats, Integers
from steelyard.core.errors import ConfigError, EvidenceError, choices
from steelyard.core.seeds import generator
from steelyard.core.text import num_characters
from steelyard.core.types import Case
from steelyard.curation.filtering import Kept
from steelyard.curation.filtering_arms import Columns
from steelyard.curation.splits import root_text
from steelyard.ranking.judgment_table import NONE, TIE, Only, Verdicts, judgment_table, majority
from steelyard.ranking.pairs import pairs_of
from steelyard.stages.filters.settings import Config
from steelyard.statistics.unit_bootstrap import number_units


class Study(NamedTuple):
    """All pairs of all cases. ``prompt`` is each case's number by the text of its first turn: equal texts are one.

    ``human``: the pairs of which people have a strict majority; ``trains``: those that models may learn from.
    ``judged``: a strict verdict each, by how many characters the preferred answer is ``longer``, and whether people
    say what is right (``has_key``) and it is.
    """

    cases: tuple[Case, ...]
    prompt: Integers
    human: Columns
    trains: Kept
    judged: Columns
    longer: Floats
    has_key: Kept
    is_right: Kept


def read_study(cases: Sequence[Case], config: Config, *, where: str) -> Study:
    """The pairs. Raises ConfigError for a judge that is not there, EvidenceError without people's verdicts or his."""
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
    judged = Columns(verdicts.graph, verdicts.better, verdicts.worse)
    keys = _keys(strict, span)
    order = np.argsort(keys)
    asked = _keys(verdicts, span)
    place = order[np.searchsorted(keys[order], asked).clip(max=len(keys) - 1)]
    has_key = keys[place] == asked
    return Study(
        cases=tuple(cases),
        prompt=number_units([root_text(case) for case in cases]),
        human=Columns(strict.graph, strict.better, strict.worse),
        trains=_unanimous(people, strict, span) if config.train_on == "unanimous" else np.ones(len(keys), bool),
        judged=judged,
        longer=_lengths(cases, judged),
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
    """The judge's strict verdicts, at most so many a prompt."""
    judges = {one.judge for case in cases for one in case.judgments if one.kind != "human"}
    if config.judge not in judges:
        found = f"no model named {config.judge!r} judged here"
        raise ConfigError(found, where=where, allowed=choices(config.judge, judges), do="name another --judge")
    verdicts = judgment_table(cases, Only(judge=(config.judge,), kind=("llm", "model"))).verdicts
    verdicts = verdicts.where(verdicts.is_strict)
    if not len(verdicts.graph):
        found = f"the judge {config.judge!r} prefers no answer anywhere"
        raise EvidenceError(found, where=where, do="name another --judge")
    if config.most_pairs is None:
        return verdicts
    shuffled = generator(config.seed, "most pairs").permutation(len(verdicts.graph))
    order = shuffled[np.argsort(verdicts.graph[shuffled], kind="stable")]
    _, start, count = np.unique(verdicts.graph[order], return_index=True, return_counts=True)
    is_early = np.arange(len(order)) - np.repeat(start, count) < config.most_pairs
    return verdicts.where(np.isin(np.arange(len(order)), order[is_early]))


def _keys(verdicts: Verdicts, span: int) -> Integers:
    """One number a pair of a case, the same for both orders of its responses."""
    low, high = np.minimum(verdicts.left, verdicts.right), np.maximum(verdicts.left, verdicts.right)
    return (verdicts.graph * span + low) * span + high


def _unanimous(people: Verdicts, voted: Verdicts, span: int) -> Kept:
    """Which of the pairs have no verdict but that of the majority."""
    said = np.where(people.is_strict, people.better, -1) + _keys(people, span) * span
    keys = _keys(voted, span)
    against = np.isin(said, voted.better + keys * span, invert=True)
    return np.isin(keys, _keys(people, span)[against], invert=True)


def _lengths(cases: Sequence[Case], judged: Columns) -> Floats:
    size = [[num_characters(response) for response in case.responses] for case in cases]
    return np.array(
        [size[case][better] - size[case][worse] for case, better, worse in zip(*judged, strict=True)], np.float64
    )
