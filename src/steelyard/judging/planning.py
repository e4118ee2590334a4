"""Planning of comparisons: the responses that are compared, their order, and the judgments that result."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, count
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from steelyard.annotation.triple_designs import TripleDesign, choose_triples
from steelyard.core.checks import content_id
from steelyard.core.comparison import Answer, Comparison, PairVerdict
from steelyard.core.numerics import generator
from steelyard.core.types import Case, JsonObject, Judgment, Prompt, Rating, Response, Verdict
from steelyard.judging.pair_plans import PairPlan, choose_pairs
from steelyard.judging.reply_parsing import RATING_RANGE

JudgeTask = Literal["pairs", "triples", "best", "ratings"]

MOST_AT_ONCE = 4
"""The most responses in one comparison of the task ``best``, which has the labels A to D."""
RATING_DIMENSION = "quality"
"""The dimension of ratings."""

NO_RESPONSES = "no responses"
"""The reason for a prompt alone."""


def refusal_reason(case: Case, task: JudgeTask) -> str | None:
    """Return why the task has no comparison for the case; None where it has one."""
    number = len(case.responses)
    fewest = {"pairs": 2, "triples": 3, "best": 2, "ratings": 1}[task]
    if number == 0:
        return NO_RESPONSES
    if number < fewest:
        return f"fewer than {fewest} responses"
    if task == "best" and number > MOST_AT_ONCE:
        return f"more than {MOST_AT_ONCE} responses"
    return None


def plan_comparisons(
    case: Case,
    task: JudgeTask,
    *,
    seed: int,
    pairs: Sequence[tuple[int, int]] | None = None,
    triples: TripleDesign = "covering",
) -> tuple[Comparison, ...]:
    """Return the comparisons of a case, each in its own random order; none where `refusal_reason` gives a reason.

    ``pairs``: every pair of responses, or the given ones. ``triples``: those of `choose_triples`. ``best``: all
    responses at once. ``ratings``: the same, each shown alone.
    """
    if refusal_reason(case, task) is not None:
        return ()
    number = len(case.responses)
    everything = [tuple(range(number))]
    groups: dict[str, Sequence[Sequence[int]]] = {
        "pairs": list(combinations(range(number), 2)) if pairs is None else pairs,
        "triples": choose_triples(case, triples, seed=seed) if task == "triples" else [],
        "best": everything,
        "ratings": everything,
    }
    # A generator for each case: its orders do not depend on the cases before it.
    rng = generator(seed, "order shown", case.prompt.id, case.prompt.language or "")
    chosen = groups[task]
    orders = [rng.permutation(np.array(group)).tolist() if task != "ratings" else list(group) for group in chosen]
    mark = separating_mark(case.prompt, case.responses)
    return tuple(
        Comparison(prompt=case.prompt, responses=tuple(case.responses[place] for place in order), mark=mark)
        for order in orders
    )


def separating_mark(prompt: Prompt, responses: Sequence[Response]) -> str:
    """Return eight hexadecimal digits that occur nowhere in the prompt or in any of its responses.

    They are the hash of the prompt with all its responses. An author who wants to write the mark into a response has to
    know the other responses before they exist, and changes the hash with every letter; a text that holds it all the
    same gives another mark. All questions about a prompt have the same mark, so that they begin alike.
    """
    # In any order of the responses: a case and its copy with them swapped are the same questions, sent once.
    texts = sorted([*(turn.content for turn in each.messages or ()), each.text or ""] for each in responses)
    contents = [*(turn.content for turn in prompt.messages), *(text for parts in texts for text in parts)]
    contents.append(prompt.reference or "")
    # Encoded once: the lists keep apart what belongs to which text.
    content = msgspec.json.encode([msgspec.to_builtins(prompt.messages), texts, prompt.reference]).decode()
    for attempt in count():
        mark = content_id(f"{attempt}{content}")[:8]
        if not any(mark in text for text in contents):
            return mark
    raise AssertionError("attempts do not end")


def add_verdicts(case: Case, answers: Sequence[Mapping[str, Answer]], *, by: str, each: bool = False) -> Case:
    """Return the case with the answers to its comparisons as judgments and ratings of kind ``llm``.

    ``answers`` has for each comparison the answers of all members by name, and last the panel's answer under the name
    ``by``. ``each`` writes instead a judgment for every single reply, signed by its member. An id in use gets a number.
    """
    taken = {item.id for item in (*case.judgments, *case.ratings) if item.id is not None}
    judgments, ratings = list(case.judgments), list(case.ratings)
    for number, members in enumerate(answers, 1):
        task = f"{by}-{number}"
        if each:
            for name, answer in members.items():
                judgments += [
                    single
                    for verdict in answer.verdicts
                    for single in _replies(verdict, judge=name, task=task, ids=taken)
                ]
        else:
            judgments += [_judgment(verdict, judge=by, task=task, ids=taken) for verdict in members[by].verdicts]
        ratings += _ratings(members[by], by, task=task, ids=taken)
    return msgspec.structs.replace(case, judgments=tuple(judgments), ratings=tuple(ratings))


def _judgment(verdict: PairVerdict, *, judge: str, task: str, ids: set[str]) -> Judgment:
    """Return the combined verdict as one judgment; ``meta`` records the verdict in each order and by each member."""
    shown = [showing.shown for showing in verdict.showings]
    meta: JsonObject = {}
    if len(shown) > 1:
        meta["orders"] = [
            {"shown": list(showing.shown), "outcome": showing.outcome}
            | ({"detail": showing.detail} if showing.detail else {})
            for showing in verdict.showings
        ]
    if verdict.is_inconsistent:
        meta["inconsistent"] = True
    if verdict.members:
        meta["members"] = dict(verdict.members)
    if verdict.repeats:
        meta["repeats"] = list(verdict.repeats)
    return Judgment(
        left=verdict.left,
        right=verdict.right,
        verdict=verdict.verdict,
        judge=judge,
        kind="llm",
        id=_unused_id(ids, content_id({"task": task, "judge": judge, "pair": [verdict.left, verdict.right]})),
        task=task,
        # A verdict from both orders has no single order shown: either would count as position bias.
        shown=shown[0] if len(shown) == 1 else None,
        reason=_reason(verdict.outcome, verdict.detail) if verdict.verdict == "none" else None,
        meta=meta or None,
    )


def _replies(verdict: PairVerdict, *, judge: str, task: str, ids: set[str]) -> Iterator[Judgment]:
    """Yield a judgment for every order in which the pair was shown."""
    for showing in verdict.showings:
        label: Verdict = showing.outcome if showing.outcome in ("left", "right", "tie") else "none"
        pair = [verdict.left, verdict.right]
        key: JsonObject = {"task": task, "judge": judge, "pair": pair, "shown": list(showing.shown)}
        yield Judgment(
            left=verdict.left,
            right=verdict.right,
            verdict=label,
            judge=judge,
            kind="llm",
            id=_unused_id(ids, content_id(key)),
            task=task,
            shown=showing.shown,
            reason=_reason(showing.outcome, showing.detail) if label == "none" else None,
        )


def _ratings(answer: Answer, judge: str, *, task: str, ids: set[str]) -> Iterator[Rating]:
    """Yield the ratings with a number. Missing numbers are counted by the caller, not written."""
    for rating in answer.ratings:
        if rating.value is not None:
            yield Rating(
                response=rating.response,
                rater=judge,
                kind="llm",
                dimension=RATING_DIMENSION,
                value=rating.value,
                range=(float(RATING_RANGE[0]), float(RATING_RANGE[1])),
                id=_unused_id(ids, content_id({"task": task, "judge": judge, "rated": rating.response})),
                task=task,
            )


def _unused_id(taken: set[str], wanted: str) -> str:
    """Return the wanted id, or its first free variant: a case may be judged several times."""
    variants = (f"{wanted}~{number}" for number in count(2))
    id_ = wanted if wanted not in taken else next(variant for variant in variants if variant not in taken)
    taken.add(id_)
    return id_


def _reason(outcome: str, detail: str | None) -> str:
    return f"{outcome}: {detail}" if detail else outcome


class PlannedCase(NamedTuple):
    """A case with its comparisons, or with the reason why there are none."""

    case: Case
    comparisons: tuple[Comparison, ...]
    reason: str | None


def plan_case(
    case: Case,
    task: JudgeTask,
    plan: PairPlan,
    *,
    seed: int,
    triples: TripleDesign,
    scores: Mapping[str, float | None] | None = None,
) -> PlannedCase:
    """Return the case with what a judge is to compare; ``scores`` are its responses', for the choice of pairs."""
    reason, pairs = refusal_reason(case, task), None
    if reason is None and task == "pairs":
        pairs = choose_pairs(case, plan, seed=seed, scores=scores)
        reason = None if pairs else f"no {plan.choice} pair"
    return PlannedCase(case, plan_comparisons(case, task, seed=seed, pairs=pairs, triples=triples), reason)
