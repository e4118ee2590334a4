"""Which comparisons a judge is given of a case, in which order the responses stand, and the judgments that follow."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, count
from typing import Any, Literal

import numpy as np

from steelyard.core.asking import Answer, Comparison, PairVerdict, Showing
from steelyard.core.identity import content_id
from steelyard.core.seeds import generator
from steelyard.core.types import Case, Judgment, Rating, Verdict
from steelyard.methods.annotation.reading import RATING_RANGE
from steelyard.methods.annotation.triples import circular_triples

Design = Literal["pairs", "triples", "best", "ratings"]

MOST_AT_ONCE = 4
RATED = "quality"


def why_not(case: Case, design: Design) -> str | None:
    """Why the design has no comparison for the case; null where it has."""
    number = len(case.responses)
    fewest = {"pairs": 2, "triples": 3, "best": 2, "ratings": 1}[design]
    if number < fewest:
        return f"fewer than {fewest} responses"
    if design == "best" and number > MOST_AT_ONCE:
        return f"more than {MOST_AT_ONCE} responses"
    return None


def comparisons_of(
    case: Case, design: Design, *, seed: int, pairs: Sequence[tuple[int, int]] | None = None
) -> tuple[Comparison, ...]:
    """The comparisons of a case, each in an order drawn for it alone; none where `why_not` says why.

    ``pairs``: every pair of responses, or those given. ``triples``: the circular triples of CHEEMS (section 3.2).
    ``best``: all responses at once. ``ratings``: the same, each to be shown alone.
    """
    if why_not(case, design) is not None:
        return ()
    number = len(case.responses)
    everything = [tuple(range(number))]
    groups: dict[str, Sequence[Sequence[int]]] = {
        "pairs": list(combinations(range(number), 2)) if pairs is None else pairs,
        "triples": circular_triples(number) if number >= 3 else [],
        "best": everything,
        "ratings": everything,
    }
    rng = generator(seed, "order shown", case.prompt.id, case.prompt.language or "")
    chosen = groups[design]
    orders = [rng.permutation(np.array(group)).tolist() if design != "ratings" else list(group) for group in chosen]
    return tuple(
        Comparison(prompt=case.prompt, responses=tuple(case.responses[place] for place in order)) for order in orders
    )


def signed(case: Case, answers: Sequence[Mapping[str, Answer]], *, by: str, each: bool = False) -> Case:
    """The case with what its comparisons' answers say, as judgments and ratings of kind ``llm``.

    ``answers`` has for each comparison the answer of every member, or of the one judge, and last the answer that goes
    by the name ``by``. ``each`` writes instead a judgment for every single reply, signed by its member. Ids that are
    taken get a number.
    """
    taken = {one.id for one in (*case.judgments, *case.ratings) if one.id is not None}
    judgments, ratings = list(case.judgments), list(case.ratings)
    for number, members in enumerate(answers, 1):
        task = f"{by}-{number}"
        if each:
            for name, answer in members.items():
                judgments += [
                    single for one in answer.verdicts for single in _replies(one, judge=name, task=task, ids=taken)
                ]
        else:
            judgments += [_judgment(one, judge=by, task=task, ids=taken) for one in members[by].verdicts]
        ratings += _ratings(members[by], by, task=task, ids=taken)
    return replaced(case, judgments, ratings)


def replaced(case: Case, judgments: Sequence[Judgment], ratings: Sequence[Rating]) -> Case:
    """The case with these judgments and ratings."""
    return Case(
        prompt=case.prompt,
        responses=case.responses,
        judgments=tuple(judgments),
        ratings=tuple(ratings),
        ranking=case.ranking,
        pairs=case.pairs,
        meta=case.meta,
    )


def _judgment(one: PairVerdict, *, judge: str, task: str, ids: set[str]) -> Judgment:
    shown = [showing.shown for showing in one.showings]
    meta: dict[str, Any] = {}
    if len(shown) > 1:
        meta["orders"] = [_order(showing) for showing in one.showings]
    if one.is_inconsistent:
        meta["inconsistent"] = True
    if one.members:
        meta["members"] = dict(one.members)
    return Judgment(
        left=one.left,
        right=one.right,
        verdict=one.verdict,
        judge=judge,
        kind="llm",
        id=_free(ids, content_id({"task": task, "judge": judge, "pair": [one.left, one.right]})),
        task=task,
        # Of a verdict from both orders neither is the order shown: it would be read as a pull of the place.
        shown=shown[0] if len(shown) == 1 else None,
        reason=_reason(one.outcome, one.detail) if one.verdict == "none" else None,
        meta=meta or None,
    )


def _order(showing: Showing) -> dict[str, Any]:
    said: dict[str, Any] = {"shown": list(showing.shown), "outcome": showing.outcome}
    return said | ({"detail": showing.detail} if showing.detail else {})


def _replies(one: PairVerdict, *, judge: str, task: str, ids: set[str]) -> Iterator[Judgment]:
    for showing in one.showings:
        verdict: Verdict = showing.outcome if showing.outcome in ("left", "right", "tie") else "none"
        yield Judgment(
            left=one.left,
            right=one.right,
            verdict=verdict,
            judge=judge,
            kind="llm",
            id=_free(
                ids,
                content_id({"task": task, "judge": judge, "pair": [one.left, one.right], "shown": list(showing.shown)}),
            ),
            task=task,
            shown=showing.shown,
            reason=_reason(showing.outcome, showing.detail) if verdict == "none" else None,
        )


def _ratings(answer: Answer, judge: str, *, task: str, ids: set[str]) -> Iterator[Rating]:
    """The ratings that there are: a number that is missing is counted by who asked, and never written."""
    for one in answer.ratings:
        if one.value is not None:
            yield Rating(
                response=one.response,
                rater=judge,
                kind="llm",
                dimension=RATED,
                value=one.value,
                range=(float(RATING_RANGE[0]), float(RATING_RANGE[1])),
                id=_free(ids, content_id({"task": task, "judge": judge, "rated": one.response})),
                task=task,
            )


def _free(taken: set[str], wanted: str) -> str:
    """The wanted id, or its first variant that no other has: a case may be judged again and again."""
    variants = (f"{wanted}~{number}" for number in count(2))
    found = wanted if wanted not in taken else next(one for one in variants if one not in taken)
    taken.add(found)
    return found


def _reason(outcome: str, detail: str | None) -> str:
    return f"{outcome}: {detail}" if detail else outcome
