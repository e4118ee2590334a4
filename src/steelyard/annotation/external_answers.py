"""Answers that people gave in another annotation tool, and the same as an answer to a task of ours.

Other tools ask for places and scores and check neither against the other. What contradicts itself stays as it is:
the reader of the answer says so and counts it.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from steelyard.annotation.answers import BucketComparison, Choice, Span, TaskAnswer
from steelyard.core.errors import Place
from steelyard.core.types import Ranking


class ExternalAnswer(NamedTuple):
    """The entries of a person about a task, by the letters of its responses, and its place in the tool's export.

    ``places`` are ranks: the lower is the better, equal ones are ties. ``spans`` are of the texts as they were shown,
    in Unicode code points. ``seconds`` is null where the tool does not record it; ``at`` is in seconds since 1970.
    """

    source: Place
    task: str
    person: str
    places: Mapping[str, float]
    scores: dict[str, int]
    discarded: dict[str, str]
    spans: dict[str, tuple[Span, ...]]
    cannot_judge: str | None = None
    remark: str | None = None
    seconds: float | None = None
    at: float | None = None


def task_answer(external: ExternalAnswer, shown: Sequence[str], *, has_scores: bool) -> TaskAnswer:
    """Return the answer with the ranking that the places say, and comparisons of equal scores that follow from it.

    ``shown`` are the letters of the task; ``has_scores``: the task asks for scores. A discarded response has no place
    and no score, even where the form asked for one; nor has anything else an answer that cannot judge.
    """
    if external.cannot_judge is not None:
        return TaskAnswer(cannot_judge=external.cannot_judge, remark=external.remark)
    judged = [letter for letter in shown if letter not in external.discarded]
    places = {letter: external.places[letter] for letter in judged if letter in external.places}
    if len(judged) == 1:
        # One response alone needs no place: with scores it is a ranking of one, without them nothing is compared.
        places = dict.fromkeys(judged, 1.0) if has_scores else {}
    ranking: Ranking = tuple(
        tuple(letter for letter in judged if places.get(letter) == place) for place in sorted(set(places.values()))
    )
    scores = {letter: external.scores[letter] for letter in judged if letter in external.scores} if has_scores else {}
    return TaskAnswer(
        scores=scores,
        comparisons=tuple(
            BucketComparison(first=first, second=second, choice=_choice(places[first], places[second]))
            for first, second in combinations(judged, 2)
            if {first, second} <= scores.keys() & places.keys() and scores[first] == scores[second]
        ),
        ranking=ranking,
        discarded=dict(external.discarded),
        spans={letter: spans for letter, spans in external.spans.items() if spans},
        remark=external.remark,
    )


def missing_parts(external: ExternalAnswer, shown: Sequence[str], *, has_scores: bool) -> tuple[str, ...]:
    """Return what an answer lacks, in words: places of responses, and scores where the task asks for them."""
    if external.cannot_judge is not None:
        return ()
    judged = [letter for letter in shown if letter not in external.discarded]
    unplaced = [letter for letter in judged if letter not in external.places] if len(judged) > 1 else []
    unscored = [letter for letter in judged if letter not in external.scores] if has_scores else []
    return tuple(
        f"no {what} of {', '.join(letters)}" for what, letters in (("place", unplaced), ("score", unscored)) if letters
    )


def _choice(first: float, second: float) -> Choice:
    if first == second:
        return "same"
    return "better" if first < second else "worse"
