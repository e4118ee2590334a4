"""The four tasks of a judge: compare two answers, choose the best, rank up to five, or rate each alone.

A judge is a value: the answers shown in each question, the labels offered, and a function from replies to verdicts.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple

from steelyard.core.comparison import Answer, Comparison, Outcome, PairVerdict, Question, Reply, ResponseRating, Showing
from steelyard.core.errors import ConfigError
from steelyard.core.plugins import Plugin
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import response_text
from steelyard.core.types import JsonObject
from steelyard.judging.published_verdicts import FORMATS, has_published, read_published
from steelyard.judging.reply_parsing import (
    RATINGS,
    UNCONTESTED,
    Form,
    ParsedReply,
    VerdictOrigin,
    has_verdict,
    label_probabilities,
    read_choice,
    read_first_token,
    read_ranking,
    read_rating,
)
from steelyard.judging.reply_words import is_refusal, normalize_text, without_thinking
from steelyard.judging.verdicts import combine_orders, weigh_orders
from steelyard.plugins.judges._prompt import JudgeConfig, Task, Wording, question, wording_of
from steelyard.plugins.judges._texts import style_named

Orders = Literal["both", "one"]
Arrangement = tuple[tuple[Any, ...], ...]
"""The responses, or their ids, in the order shown, for each question."""

LABELS = ("A", "B", "C", "D", "E")
_RATING_FORMS = ("brackets", "letter", "json")
# A heading of the material, which names an answer as a verdict does: "===== Output (a) 7005b1ed =====".
_HEADING = re.compile(r"^[ \t]*=====.*$", re.MULTILINE)


class OrderedConfig(JudgeConfig, frozen=True):
    """Settings of a judge that sees several answers at once."""

    orders: Orders | None = None
    """Make each comparison in both orders of the answers, or in one. Default: the style's, usually both."""


class PairwiseConfig(OrderedConfig, frozen=True):
    """Settings of the comparison of two answers.

    Differs from: CHEEMS (figures 11 and 12), which uses one order, no reasons, and offers a tie. Here both orders are
    used, with reasons, and verdicts that disagree are the tie. ``style=cheems`` has its settings. M-RewardBench (figure
    6) uses one order, with reasons and without a tie or criteria by category: ``style=mt_bench``.
    """

    ties: bool | None = None
    """Offer a tie as a third verdict. Default: the style's, usually not."""
    least_odds: float = 0.5
    """With first_token: the least probability of the labels together for a readable verdict."""
    disagreement: Literal["tie", "probabilities"] = "tie"
    """Orders that disagree: a tie; or with first_token the answer that is likelier over both orders together."""


class BestConfig(OrderedConfig, frozen=True):
    """Settings of the choice of the best answer; without a tie among more than two."""

    least_odds: float = 0.5
    """With first_token: the least probability of the labels together for a readable verdict."""


class RankingConfig(OrderedConfig, frozen=True):
    """Settings of the ranking. The order is written in brackets, as ``[[B > A = C]]``, the only form."""

    form: Form | None = "brackets"
    """The form of the verdict in the reply. Default: the style's."""


class TaskJudge(NamedTuple):
    """A Judge of ``fewest`` to ``most`` responses.

    ``arrange`` gives the responses of each question, ``labels`` the labels for a number of responses. ``answer`` reads
    the ids of the comparison, the ids shown in each question, the replies, and what tells verdicts of the judge from
    those of responses. ``settings`` is part of the protocol.
    """

    task: Task
    fewest: int
    most: int
    wording: Wording
    arrange: Callable[[Sequence[Any]], Arrangement]
    labels: Callable[[int], Sequence[str]]
    answer: Callable[[Sequence[str], Arrangement, Sequence[Reply], VerdictOrigin], Answer]
    settings: JsonObject
    least_odds: float | None = None

    def num_questions(self, comparison: Comparison) -> int:
        """Return the number of questions: one for each order, or for each response."""
        return len(self.arrange(comparison.responses))

    def questions(self, comparison: Comparison) -> tuple[Question, ...]:
        """Return the questions, the comparison's own order first."""
        labels = self.labels(len(comparison.responses))
        return tuple(
            question(self.task, comparison.prompt, shown, self.wording, labels=labels, mark=comparison.mark)
            for shown in self.arrange(comparison.responses)
        )

    def read(self, comparison: Comparison, replies: Sequence[Reply]) -> Answer:
        """Return the verdicts or ratings of the replies; ``left`` is the earlier response of the comparison."""
        ids = tuple(response.id for response in comparison.responses)
        origin = VerdictOrigin(comparison.mark if self.wording.own_marks else None, bool(self.marked(comparison)))
        return self.answer(ids, self.arrange(ids), replies, origin)

    def marked(self, comparison: Comparison) -> tuple[str, ...]:
        """Return the ids of the responses that hold a verdict in the form of the questions."""
        shown, form = comparison.responses, self.wording.form
        if form == "first_token":
            return ()
        if form in FORMATS:
            return tuple(each.id for each in shown if has_published(response_text(each), form, len(shown)))
        task = "rating" if self.task == "rating" else "ranking" if self.task == "ranking" else "choice"
        labels = RATINGS if task == "rating" else tuple(self.labels(len(shown)))
        return tuple(each.id for each in shown if has_verdict(response_text(each), form, task, labels))

    def protocol(self) -> JsonObject:
        """Return the kind, its settings and the wording."""
        has_odds = self.least_odds is not None and self.wording.form == "first_token"
        return self.settings | self.wording.protocol() | ({"least_odds": self.least_odds} if has_odds else {})


def in_orders(orders: Orders) -> Callable[[Sequence[Any]], Arrangement]:
    """Return the arrangement of the responses in their order, and for ``both`` in reverse too."""
    return lambda shown: (tuple(shown), tuple(shown[::-1]))[: 2 if orders == "both" else 1]


class ParsedChoice(NamedTuple):
    """The position of the chosen label among those offered, or null with an outcome as the reason."""

    place: int | None
    outcome: Outcome | None = None
    detail: str | None = None

    def showing(self, shown: tuple[str, ...]) -> Showing:
        """Return the showing of a reply without a choice."""
        assert self.outcome is not None, "a choice is missing for a reason"
        return Showing(shown=shown, outcome=self.outcome, detail=self.detail)


def parse_choice(
    reply: Reply,
    form: Form,
    labels: Sequence[str],
    *,
    origin: VerdictOrigin = UNCONTESTED,
    num_shown: int | None = None,
    least_odds: float = 0.5,
) -> ParsedChoice:
    """Parse the choice of a reply; for a first token all labels together need ``least_odds`` of probability.

    ``num_shown``: the number of answers, where a label after theirs is the tie. Default: all labels are answers.
    """
    if form == "first_token":
        # A reply of one token is cut off by design.
        if reply.failure in ("refused", "failed"):
            return ParsedChoice(None, reply.failure, reply.detail)
        return _place(read_first_token(reply.first_token, labels, least=least_odds), labels, text="")
    missing = _failure(reply)
    if missing is not None:
        return missing
    text = _HEADING.sub("", reply.text or "")
    if form in FORMATS:
        num_shown = num_shown or len(labels)
        reading = read_published(text, form, labels, num_shown=num_shown, is_contested=origin.is_contested)
    else:
        tie = labels[num_shown] if num_shown is not None and num_shown < len(labels) else None
        reading = read_choice(text, form, labels, origin, tie=tie)
    return _place(reading, labels, text=text)


def _place(reading: ParsedReply, labels: Sequence[str], *, text: str) -> ParsedChoice:
    if reading.value is None:
        return _unparsed(text, reading.detail)
    return ParsedChoice(labels.index(reading.value))


def _failure(reply: Reply) -> ParsedChoice | None:
    """Return why the reply has no whole text; null where it has one."""
    return None if reply.failure is None else ParsedChoice(None, reply.failure, reply.detail)


def _unparsed(text: str, detail: str | None) -> ParsedChoice:
    """Return a whole text without a verdict as a refusal, or as unparsed."""
    if is_refusal((without_thinking(normalize_text(text)) or "").strip()):
        return ParsedChoice(None, "refused", "declines in words")
    return ParsedChoice(None, "unparsed", detail)


def _pairwise(config: PairwiseConfig) -> TaskJudge:
    """Build the judge of two answers. Raises ConfigError for an unknown style, and for reasons in a form without."""
    wording = wording_of(config)
    style = style_named(config.style)
    has_tie = style.ties if config.ties is None else config.ties
    labels = LABELS[:3] if has_tie else LABELS[:2]
    orders_shown = config.orders or style.orders

    def answer(ids: Sequence[str], orders: Arrangement, replies: Sequence[Reply], origin: VerdictOrigin) -> Answer:
        left, right = ids
        showings = [showing(shown, left, reply, origin) for shown, reply in zip(orders, replies, strict=True)]
        if config.disagreement == "tie":
            return Answer(verdicts=(combine_orders(left, right, showings),))
        pairs = zip(orders, replies, strict=True)
        probabilities = [_probabilities(reply, labels, is_turned=shown[0] != left) for shown, reply in pairs]
        return Answer(verdicts=(weigh_orders(left, right, showings, probabilities),))

    def showing(shown: tuple[str, ...], left: str, reply: Reply, origin: VerdictOrigin) -> Showing:
        least = config.least_odds
        choice = parse_choice(reply, wording.form, labels, origin=origin, num_shown=2, least_odds=least)
        if choice.place is None:
            return choice.showing(shown)
        outcome: Outcome = "tie" if choice.place == 2 else ("left" if shown[choice.place] == left else "right")
        return Showing(shown=shown, outcome=outcome)

    if config.disagreement == "probabilities" and wording.form != "first_token":
        problem = f"form={wording.form!r} has no probabilities of the labels"
        raise ConfigError(problem, where="judge.disagreement", do=Advice("say ", Remedy("judge.form", "first_token")))
    # Absent by default: the records of runs from before this setting stay equal to those of now.
    weighed = {} if config.disagreement == "tie" else {"disagreement": config.disagreement}
    settings: JsonObject = {"judge": "pairwise", "orders": orders_shown, "ties": has_tie} | weighed
    arrange = in_orders(orders_shown)
    return TaskJudge(
        "pair", 2, 2, wording, arrange, lambda number: labels, answer, settings, least_odds=config.least_odds
    )


def _probabilities(reply: Reply, labels: Sequence[str], *, is_turned: bool) -> dict[Outcome, float]:
    """Return the probability of each outcome in one order; empty without log-probabilities."""
    outcomes: tuple[Outcome, ...] = ("right", "left", "tie") if is_turned else ("left", "right", "tie")
    of_label = label_probabilities(reply.first_token or (), labels)
    return {outcome: of_label[label] for outcome, label in zip(outcomes, labels, strict=False)}


def _best(config: BestConfig) -> TaskJudge:
    """Build the judge of the best answer: it is better than each other, and the others stay uncompared.

    Two different choices tie, and both are better than the rest. An unparsed reply leaves no verdict on
    any pair. Raises ConfigError as `_pairwise` does.
    """
    wording = wording_of(config)
    most = FORMATS[wording.form].most_answers if wording.form in FORMATS else 4

    def answer(ids: Sequence[str], orders: Arrangement, replies: Sequence[Reply], origin: VerdictOrigin) -> Answer:
        labels = LABELS[: len(ids)]
        least = config.least_odds
        choices = [parse_choice(reply, wording.form, labels, origin=origin, least_odds=least) for reply in replies]
        best = {shown[choice.place] for shown, choice in zip(orders, choices, strict=True) if choice.place is not None}
        is_whole = all(choice.place is not None for choice in choices)
        pairs = [pair for pair in combinations(ids, 2) if not is_whole or not best.isdisjoint(pair)]
        return Answer(verdicts=tuple(_best_verdict(left, right, orders, choices) for left, right in pairs))

    orders_shown = config.orders or style_named(config.style).orders
    settings, arrange = {"judge": "best", "orders": orders_shown}, in_orders(orders_shown)
    return TaskJudge(
        "best",
        2,
        most,
        wording,
        arrange,
        lambda number: LABELS[:number],
        answer,
        settings,
        least_odds=config.least_odds,
    )


def _best_verdict(left: str, right: str, orders: Arrangement, choices: Sequence[ParsedChoice]) -> PairVerdict:
    """Return the verdict on one pair: the choice of a third answer leaves these two uncompared."""
    showings: list[Showing] = []
    for shown, choice in zip(orders, choices, strict=True):
        if choice.place is None:
            showings.append(choice.showing(shown))
        elif shown[choice.place] in (left, right):
            showings.append(Showing(shown=shown, outcome="left" if shown[choice.place] == left else "right"))
    if any(choice.place is None for choice in choices):
        showings = [showing for showing in showings if showing.outcome not in ("left", "right")]
    return combine_orders(left, right, showings)


def _ranking(config: RankingConfig) -> TaskJudge:
    """Build the judge of rankings. Raises ConfigError for an unknown style and for another form than brackets."""
    wording = wording_of(config)
    if wording.form != "brackets":
        raise ConfigError(f"form={wording.form!r} carries no ranking", where="judge.form", allowed="brackets")

    def answer(ids: Sequence[str], orders: Arrangement, replies: Sequence[Reply], origin: VerdictOrigin) -> Answer:
        tiers = [_tiers(shown, reply, origin) for shown, reply in zip(orders, replies, strict=True)]
        verdicts = []
        for left, right in combinations(ids, 2):
            showings = [
                _ranked_showing(shown, reading, left, right) for shown, reading in zip(orders, tiers, strict=True)
            ]
            verdicts.append(combine_orders(left, right, showings))
        return Answer(verdicts=tuple(verdicts))

    orders_shown = config.orders or style_named(config.style).orders
    settings = {"judge": "ranking", "orders": orders_shown}
    arrange = in_orders(orders_shown)
    return TaskJudge("ranking", 2, len(LABELS), wording, arrange, lambda number: LABELS[:number], answer, settings)


def _tiers(shown: tuple[str, ...], reply: Reply, origin: VerdictOrigin) -> dict[str, int] | ParsedChoice:
    """Return the tier of each response, 0 the best, or why there is none."""
    missing = _failure(reply)
    if missing is not None:
        return missing
    ranking = read_ranking(reply.text or "", LABELS[: len(shown)], origin)
    if isinstance(ranking, ParsedReply):
        return _unparsed(reply.text or "", ranking.detail)
    return {shown[LABELS.index(label)]: place for place, tier in enumerate(ranking) for label in tier}


def _ranked_showing(shown: tuple[str, ...], tiers: Mapping[str, int] | ParsedChoice, left: str, right: str) -> Showing:
    if isinstance(tiers, ParsedChoice):
        return tiers.showing(shown)
    outcome: Outcome = "tie" if tiers[left] == tiers[right] else ("left" if tiers[left] < tiers[right] else "right")
    return Showing(shown=shown, outcome=outcome)


def _rating(config: JudgeConfig) -> TaskJudge:
    """Build the judge of ratings, one response per question. Raises ConfigError for a form that carries no number."""
    wording = wording_of(config)
    if wording.form not in _RATING_FORMS:
        problem = f"form={wording.form!r} carries no rating"
        raise ConfigError(problem, where="judge.form", allowed=", ".join(_RATING_FORMS))

    def answer(ids: Sequence[str], shown: Arrangement, replies: Sequence[Reply], origin: VerdictOrigin) -> Answer:
        return Answer(ratings=tuple(_rate(name, reply, origin) for name, reply in zip(ids, replies, strict=True)))

    def arrange(responses: Sequence[Any]) -> Arrangement:
        return tuple((response,) for response in responses)

    return TaskJudge("rating", 1, 1, wording, arrange, lambda number: (), answer, {"judge": "rating"})


def _rate(name: str, reply: Reply, origin: VerdictOrigin) -> ResponseRating:
    """Return the rating of one response, or the reason why there is none; a failure never becomes a number."""
    missing = _failure(reply)
    if missing is None:
        reading = read_rating(reply.text or "", origin)
        if reading.value is not None:
            return ResponseRating(response=name, value=float(reading.value))
        missing = _unparsed(reply.text or "", reading.detail)
    return ResponseRating(response=name, value=None, outcome=missing.outcome, detail=missing.detail)


KINDS = {
    "pairwise": Plugin(
        PairwiseConfig,
        _pairwise,
        "Which of two answers is better, in both orders: verdicts that disagree are a tie.",
    ),
    "best": Plugin(
        BestConfig, _best, "The best of two to four answers, in the order of the comparison and in reverse."
    ),
    "ranking": Plugin(
        RankingConfig,
        _ranking,
        "A ranking of two to five answers, the task of CHEEMS's annotators: a verdict on every pair.",
    ),
    "rating": Plugin(
        JudgeConfig,
        _rating,
        "A whole number from 1 to 10 for each answer, shown alone: no order of answers can bias it.",
    ),
}
