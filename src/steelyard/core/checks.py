"""What a case must satisfy beyond its types: ids that are unique, and references that point at something."""

from collections import Counter
from collections.abc import Iterable

from steelyard.core.errors import RecordError
from steelyard.core.types import Case


def check_case(case: Case) -> Case:
    """The case itself, if it holds together. Raises RecordError naming the first thing that does not."""
    ids = [response.id for response in case.responses]
    known = set(ids)
    if len(known) < len(ids):
        _refuse("responses", f"response id {_repeated(ids)!r} is given twice", "ids that are unique within a case")
    for index, response in enumerate(case.responses):
        if (response.text is None) == (response.messages is None):
            _refuse(f"responses[{index}]", "needs either text or messages, and not both", "one of the two")
    _check_judgments(case, known)
    for index, rating in enumerate(case.ratings):
        _check_known(f"ratings[{index}].response", (rating.response,), known)
    _check_ranking(case, known)
    for index, pair in enumerate(case.pairs or ()):
        _check_two(f"pairs[{index}]", pair.better, pair.worse, known)
    return case


def _check_judgments(case: Case, known: set[str]) -> None:
    given_ids = [judgment.id for judgment in case.judgments if judgment.id is not None]
    if len(set(given_ids)) < len(given_ids):
        _refuse("judgments", f"judgment id {_repeated(given_ids)!r} is given twice", "ids that are unique")
    for index, judgment in enumerate(case.judgments):
        if judgment.left == judgment.right or judgment.left not in known or judgment.right not in known:
            _check_two(f"judgments[{index}]", judgment.left, judgment.right, known)
        if judgment.shown is not None and not known.issuperset(judgment.shown):
            _check_known(f"judgments[{index}].shown", judgment.shown, known)


def _check_ranking(case: Case, known: set[str]) -> None:
    if case.ranking is None:
        return
    ranked = [name for tier in case.ranking for name in tier]
    _check_known("ranking", ranked, known)
    if len(set(ranked)) < len(ranked):
        _refuse("ranking", f"response {_repeated(ranked)!r} is ranked twice", "each response at most once")
    if not all(case.ranking):
        _refuse("ranking", "a tier is empty", "tiers of one response or more")


def _check_two(path: str, first: str, second: str, known: set[str]) -> None:
    if first == second:
        _refuse(path, f"compares response {first!r} with itself", "two different responses")
    _check_known(path, (first, second), known)


def _check_known(path: str, names: Iterable[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            _refuse(path, f"names response {name!r}, which the case does not have", ", ".join(sorted(known)))


def _repeated(names: Iterable[str]) -> str:
    return Counter(names).most_common(1)[0][0]


def _refuse(path: str, found: str, allowed: str) -> None:
    raise RecordError(f"{path}: {found}", allowed=allowed)
