"""Constraints on a case beyond its types: unique ids, references to existing responses, finite numbers."""

import math
from collections.abc import Iterable
from itertools import chain
from operator import ne

from steelyard.core.errors import RecordError, listed, repeated
from steelyard.core.types import Case, Rating


def check_case(case: Case) -> Case:
    """Return the case if it is consistent. Raises RecordError naming the first violation."""
    check_frame(case)
    _check_judgments(case, {response.id for response in case.responses})
    return case


def check_frame(case: Case) -> Case:
    """Run `check_case` without the lookup of judged responses, for callers that look them up themselves."""
    ids = [response.id for response in case.responses]
    known = set(ids)
    if len(known) < len(ids):
        _refuse("responses", f"response id {repeated(ids)!r} is given twice", "ids that are unique within a case")
    is_invalid = [(response.text is None) == (response.messages is None) for response in case.responses]
    if True in is_invalid:
        path = f"responses[{is_invalid.index(True)}]"
        _refuse(path, "needs either text or messages, and not both", "one of the two")
    judgment_ids = [judgment.id for judgment in case.judgments if judgment.id is not None]
    if judgment_ids and len(set(judgment_ids)) < len(judgment_ids):
        _refuse("judgments", f"judgment id {repeated(judgment_ids)!r} is given twice", "ids that are unique")
    for index, rating in enumerate(case.ratings):
        _check_known(f"ratings[{index}].response", (rating.response,), known)
        _check_rating(f"ratings[{index}]", rating)
    _check_ranking(case, known)
    for index, pair in enumerate(case.pairs or ()):
        _check_two(f"pairs[{index}]", pair.better, pair.worse, known)
        if pair.weight is not None and not 0 <= pair.weight < math.inf:
            _refuse(f"pairs[{index}].weight", f"the weight is {pair.weight}", "a finite number of 0 or more")
        if pair.margin is not None and not math.isfinite(pair.margin):
            _refuse(f"pairs[{index}].margin", f"the margin is {pair.margin}", "a finite number")
    return case


def _check_judgments(case: Case, known: set[str]) -> None:
    judgments = case.judgments
    if not judgments:
        return
    # All at once, without a loop in Python; the loop below runs only to name the first violation.
    left, right = [judgment.left for judgment in judgments], [judgment.right for judgment in judgments]
    shown = chain.from_iterable([judgment.shown for judgment in judgments if judgment.shown])
    if known.issuperset(left) and known.issuperset(right) and known.issuperset(shown) and all(map(ne, left, right)):
        return
    for index, judgment in enumerate(judgments):
        _check_two(f"judgments[{index}]", judgment.left, judgment.right, known)
        _check_known(f"judgments[{index}].shown", judgment.shown or (), known)


def _check_rating(path: str, rating: Rating) -> None:
    if not math.isfinite(rating.value):
        _refuse(f"{path}.value", f"the value is {rating.value}", "a finite number")
    if rating.range is not None and not rating.range[0] <= rating.range[1]:
        _refuse(f"{path}.range", f"the range is {list(rating.range)}", "the lowest value first, then the highest")


def _check_ranking(case: Case, known: set[str]) -> None:
    if case.ranking is None:
        return
    ranked = [name for tier in case.ranking for name in tier]
    if not known.issuperset(ranked):
        _check_known("ranking", ranked, known)
    if len(set(ranked)) < len(ranked):
        _refuse("ranking", f"response {repeated(ranked)!r} is ranked twice", "each response at most once")
    if not all(case.ranking):
        _refuse("ranking", "a tier is empty", "tiers of one response or more")


def _check_two(path: str, first: str, second: str, known: set[str]) -> None:
    if first == second:
        _refuse(path, f"compares response {first!r} with itself", "two different responses")
    _check_known(path, (first, second), known)


def _check_known(path: str, names: Iterable[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            _refuse(path, f"names response {name!r}, which the case does not have", listed(sorted(known)))


def _refuse(path: str, problem: str, allowed: str) -> None:
    raise RecordError(f"{path}: {problem}", allowed=allowed)
