"""Wrong answers made of settled ones, for tasks that check reviewers: each kind of tasks names the change that it has.

A change is only made where the result is clearly wrong by the rules of the kind: an order is turned round, marks
are left out, points move across the middle of the scale, a category becomes one of another main category. An answer on
which careful people could differ gives none. The result can be submitted as any answer, and its remark is gone: it
would speak of the answer before.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from steelyard.annotation.answers import BucketComparison, Choice, TaskAnswer

LEAST_DISTANCE = 2
"""The scores between the best and the worst response from which their order is clear."""
_TURNED: Mapping[Choice, Choice] = {"better": "worse", "same": "same", "worse": "better"}
_CLEAR_QUALITY = 20
"""Points from the middle of the scale 0 to 100 from which a quality is clearly good or bad."""
_MIDDLE = 50


def reverse_order(answer: TaskAnswer) -> TaskAnswer | None:
    """Return the answer with the order of its responses turned round, scores and comparisons with it.

    Null without an order, with a response that was discarded, and where the scores are too close to be sure.
    """
    if answer.cannot_judge is not None or answer.discarded or len(answer.ranking) < 2:
        return None
    ends = (min(answer.scores.values()), max(answer.scores.values())) if answer.scores else None
    if ends is not None and ends[1] - ends[0] < LEAST_DISTANCE:
        return None
    return replace(
        answer,
        scores={} if ends is None else {response: sum(ends) - score for response, score in answer.scores.items()},
        comparisons=tuple(
            BucketComparison(first=each.first, second=each.second, choice=_TURNED[each.choice])
            for each in answer.comparisons
        ),
        ranking=tuple(reversed(answer.ranking)),
        remark=None,
    )


def remove_marks(answer: TaskAnswer) -> TaskAnswer | None:
    """Return the answer without the problems that it marks; null where it marks none."""
    if answer.cannot_judge is not None or not any(answer.spans.values()):
        return None
    return replace(answer, spans={}, remark=None)


def mirror_quality(answer: TaskAnswer) -> TaskAnswer | None:
    """Return the answer with its points from 0 to 100 mirrored: a good text gets a bad mark, a bad one a good mark.

    A text that is now good has no marked errors. Null for points near the middle.
    """
    if answer.cannot_judge is not None or not answer.scores:
        return None
    if any(abs(score - _MIDDLE) < _CLEAR_QUALITY for score in answer.scores.values()):
        return None
    scores = {response: 2 * _MIDDLE - score for response, score in answer.scores.items()}
    spans = {response: spans for response, spans in answer.spans.items() if scores.get(response, 0) < _MIDDLE}
    return replace(answer, scores=scores, spans=spans, remark=None)


def move_category(answer: TaskAnswer, categories: Sequence[str], rng: np.random.Generator) -> TaskAnswer | None:
    """Return the answer with a category of another main category; null without a category, or without another one."""
    category = answer.entries.get("category")
    if answer.cannot_judge is not None or not category:
        return None
    others = [each for each in categories if _main(each) != _main(category)]
    if not others:
        return None
    return replace(answer, entries={**answer.entries, "category": others[int(rng.integers(len(others)))]}, remark=None)


def _main(category: str) -> str:
    return category.partition("/")[0].strip().casefold()
