"""One person's answer to a task; for triples: scores, comparisons within equal scores, a ranking, and their agreement.

The guideline of CHEEMS (appendix D.2): each response gets a score from 0 to 5 (Table 7); responses of equal score are
compared pair by pair (better, same, worse); then all are ranked, and the ranking is checked against the scores.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import Literal, NamedTuple

from steelyard.core.types import Judgment, Meta, Ranking, Rating, Record

LOWEST_SCORE, HIGHEST_SCORE = 0, 5
Choice = Literal["better", "same", "worse"]
Problem = Literal[
    "missing score", "missing comparison", "missing entry", "circle", "score against ranking",
    "comparison against ranking",
]  # fmt: skip
Outcome = Literal["left", "right", "tie", "discarded"]
Span = tuple[int, int, str, str | None]
"""Start and end in Unicode code points of the raw text, the kind of problem, and a remark."""


class BucketComparison(Record, frozen=True, kw_only=True):
    """The comparison of two responses of equal score: ``first`` is better than ``second``, the same, or worse."""

    first: str
    second: str
    choice: Choice


class TaskAnswer(Record, frozen=True, kw_only=True):
    """The entries of a person about the responses of a task, by response id. Each kind of task uses its part of it.

    ``discarded`` has the reason of each response that cannot be judged (garbled, empty, wrong language): it has no
    score and no place in the ranking. ``cannot_judge`` has the reason of a person who cannot answer; all else is then
    empty. ``entries`` are what was chosen or written about the task as a whole, by the name of the question.
    """

    scores: dict[str, int] = {}  # noqa: RUF012 - msgspec copies it
    comparisons: tuple[BucketComparison, ...] = ()
    ranking: Ranking = ()
    discarded: dict[str, str] = {}  # noqa: RUF012
    spans: dict[str, tuple[Span, ...]] = {}  # noqa: RUF012
    entries: dict[str, str] = {}  # noqa: RUF012
    cannot_judge: str | None = None
    remark: str | None = None


class Inconsistency(NamedTuple):
    """Something to settle before an answer can be submitted, and the responses that it is about."""

    problem: Problem
    responses: tuple[str, ...]


def contradictions(answer: TaskAnswer, shown: Sequence[str]) -> tuple[Inconsistency, ...]:
    """Return all that keeps an answer about the responses ``shown`` from being submitted, in the order of entering.

    Scores may be equal where the ranking ties or a comparison decides; a higher score must rank higher.
    """
    if answer.cannot_judge is not None:
        return ()
    judged = [response for response in shown if response not in answer.discarded]
    missing = [response for response in judged if response not in answer.scores]
    if missing:
        return tuple(Inconsistency("missing score", (response,)) for response in missing)
    uncompared = [
        pair
        for pair in combinations(judged, 2)
        if answer.scores[pair[0]] == answer.scores[pair[1]] and _choice(answer, *pair) is None
    ]
    if uncompared:
        return tuple(Inconsistency("missing comparison", pair) for pair in uncompared)
    if circles := tuple(_circles(answer, judged)):
        return circles
    return tuple(_against_ranking(answer, judged))


def implied_ranking(answer: TaskAnswer, shown: Sequence[str]) -> Ranking | None:
    """Return the ranking that follows from scores and comparisons; null while they are incomplete or contradictory."""
    judged = [response for response in shown if response not in answer.discarded]
    problems = {each.problem for each in contradictions(answer, shown)}
    if answer.cannot_judge is not None or problems & {"missing score", "missing comparison", "circle"}:
        return None
    # Without circles the number of responses that beat one orders them, and equals have equal numbers.
    beaten_by = {
        response: sum(_relation(answer, other, response) == "better" for other in judged if other != response)
        for response in judged
    }
    places = sorted(set(beaten_by.values()))
    return tuple(tuple(response for response in judged if beaten_by[response] == place) for place in places)


class Origin(NamedTuple):
    """Where an answer comes from, as it is written with every judgment: the person's pseudonym and the task."""

    judge: str
    task: str
    shown: tuple[str, ...]
    batch: str | None
    meta: Meta

    def rating(
        self,
        response: str,
        dimension: str,
        value: float,
        *,
        scale: tuple[float, float] | None,
        spans: Sequence[Span] = (),
        part: str = "",
        meta: Meta | None = None,
    ) -> Rating:
        """Return a rating of a response by this person. ``part`` tells several of one response apart by their ids."""
        return Rating(
            response=response,
            rater=self.judge,
            kind="human",
            dimension=dimension,
            value=float(value),
            range=scale,
            id=f"{self.task}:{self.judge}:{response}{part}",
            task=self.task,
            spans=tuple(spans) or None,
            meta=self.meta | (meta or {}),
        )


def outcome_of(answer: TaskAnswer, left: str, right: str) -> Outcome | None:
    """Return the verdict on two responses; ``discarded`` where one was, null where the person could not judge."""
    if answer.cannot_judge is not None:
        return None
    if {left, right} & answer.discarded.keys():
        return "discarded"
    place = {response: number for number, tier in enumerate(answer.ranking) for response in tier}
    if place[left] == place[right]:
        return "tie"
    return "left" if place[left] < place[right] else "right"


def judgments_of(answer: TaskAnswer, origin: Origin) -> tuple[Judgment, ...]:
    """Return one judgment for every pair of the responses shown.

    The verdict is ``none`` where a response was discarded or the person could not judge, with the reason.
    """
    judgments: list[Judgment] = []
    for number, (left, right) in enumerate(combinations(origin.shown, 2), start=1):
        outcome = outcome_of(answer, left, right)
        reason = None if outcome is not None else f"cannot judge: {answer.cannot_judge}"
        if outcome == "discarded":
            reason = f"discarded: {answer.discarded.get(left) or answer.discarded[right]}"
        judgments.append(
            Judgment(
                left=left,
                right=right,
                verdict="none" if outcome is None or outcome == "discarded" else outcome,
                judge=origin.judge,
                kind="human",
                id=f"{origin.task}:{origin.judge}:{number}",
                task=origin.task,
                shown=origin.shown,
                batch=origin.batch,
                reason=reason,
                meta=origin.meta,
            )
        )
    return tuple(judgments)


def ratings_of(answer: TaskAnswer, origin: Origin) -> tuple[Rating, ...]:
    """Return the scores as ratings of the dimension ``overall`` with their spans, in the order shown."""
    return tuple(
        origin.rating(
            response,
            "overall",
            answer.scores[response],
            scale=(float(LOWEST_SCORE), float(HIGHEST_SCORE)),
            spans=answer.spans.get(response, ()),
        )
        for response in origin.shown
        if response in answer.scores and answer.cannot_judge is None
    )


def misfits(answer: TaskAnswer, shown: Mapping[str, str]) -> tuple[str, ...]:
    """Return what no page of ours would send, in words: unknown responses, scores off the scale, spans outside a text.

    ``shown`` has the texts by response id.
    """
    problems: list[str] = []
    for response, score in answer.scores.items():
        if response not in shown or response in answer.discarded:
            problems.append(f"a score of {response!r}, which is not to be judged")
        elif not LOWEST_SCORE <= score <= HIGHEST_SCORE:
            problems.append(f"the score {score} of {response!r}: {LOWEST_SCORE} to {HIGHEST_SCORE} are allowed")
    problems += [f"{response!r} is discarded, but not shown" for response in answer.discarded if response not in shown]
    ranked = [response for tier in answer.ranking for response in tier]
    expected = {response for response in shown if response not in answer.discarded}
    if answer.cannot_judge is None and (len(ranked) != len(set(ranked)) or set(ranked) != expected):
        problems.append("the ranking does not name every response once")
    for comparison in answer.comparisons:
        if not {comparison.first, comparison.second} <= expected or comparison.first == comparison.second:
            problems.append(f"a comparison of {comparison.first!r} and {comparison.second!r}")
    for response, spans in answer.spans.items():
        length = len(shown.get(response, ""))
        problems += [
            f"a span {start} to {end} in {response!r}" for start, end, *_ in spans if not 0 <= start < end <= length
        ]
    return tuple(problems)


def rename_responses(
    answer: TaskAnswer, renamed: Callable[[str], str], moved: Callable[[str, Span], Span]
) -> TaskAnswer:
    """Return an answer with other names of the responses; ``moved`` gives each span in the text of that name."""
    return TaskAnswer(
        scores={renamed(response): score for response, score in answer.scores.items()},
        comparisons=tuple(
            BucketComparison(first=renamed(each.first), second=renamed(each.second), choice=each.choice)
            for each in answer.comparisons
        ),
        ranking=tuple(tuple(map(renamed, tier)) for tier in answer.ranking),
        discarded={renamed(response): reason for response, reason in answer.discarded.items()},
        spans={
            renamed(response): tuple(moved(response, span) for span in spans)
            for response, spans in answer.spans.items()
        },
        entries=answer.entries,
        cannot_judge=answer.cannot_judge,
        remark=answer.remark,
    )


def _choice(answer: TaskAnswer, first: str, second: str) -> Choice | None:
    """Return the latest comparison of two responses, from the view of the first."""
    turned: dict[Choice, Choice] = {"better": "worse", "same": "same", "worse": "better"}
    for comparison in reversed(answer.comparisons):
        if (comparison.first, comparison.second) == (first, second):
            return comparison.choice
        if (comparison.first, comparison.second) == (second, first):
            return turned[comparison.choice]
    return None


def _relation(answer: TaskAnswer, first: str, second: str) -> Choice | None:
    """Return how the first stands to the second: by the scores, and by their comparison where these are equal."""
    difference = answer.scores[first] - answer.scores[second]
    if difference:
        return "better" if difference > 0 else "worse"
    return _choice(answer, first, second)


def _circles(answer: TaskAnswer, judged: Sequence[str]) -> Iterator[Inconsistency]:
    """Yield three responses whose comparisons fit no ranking with ties, as A > B, B > C, C > A, or A = B = C, A > C."""
    for trio in combinations(judged, 3):
        if not any(_is_ordered(answer, order) for order in permutations(trio)):
            yield Inconsistency("circle", trio)


def _is_ordered(answer: TaskAnswer, order: tuple[str, ...]) -> bool:
    """Tell whether three responses follow in this order, neighbours equal or the earlier one better."""
    first, second, third = order
    steps = (_relation(answer, first, second), _relation(answer, second, third))
    if "worse" in steps or None in steps:
        return False
    return _relation(answer, first, third) == ("same" if steps == ("same", "same") else "better")


def _against_ranking(answer: TaskAnswer, judged: Sequence[str]) -> Iterator[Inconsistency]:
    place = {response: number for number, tier in enumerate(answer.ranking) for response in tier}
    for first, second in combinations(judged, 2):
        if first not in place or second not in place:
            continue
        ranked = "same" if place[first] == place[second] else "better" if place[first] < place[second] else "worse"
        if ranked != _relation(answer, first, second):
            is_by_score = answer.scores[first] != answer.scores[second]
            yield Inconsistency(
                "score against ranking" if is_by_score else "comparison against ranking", (first, second)
            )
