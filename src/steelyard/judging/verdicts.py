"""Verdicts from single replies: both orders of a pair, the plurality of a panel, Copeland shares, counts by judge."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec
import numpy as np

from steelyard.core.comparison import OUTCOMES, VERDICTS, Answer, Outcome, PairVerdict, ResponseRating, Showing
from steelyard.core.languages import language_key
from steelyard.core.numerics import Floats
from steelyard.core.text import common_spellings
from steelyard.core.types import Prompt, Record
from steelyard.statistics.groups import PromptUnits
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unit_bootstrap import MOST_UNITS, Entries, Group, Tally, estimate_shares

_FIRST, _INCONSISTENT, _FLIPPED = "first", "inconsistent", "flipped"
# Of several reasons for no verdict the first in this order is reported: a failed request can be repeated.
_REASONS: tuple[Outcome, ...] = ("failed", "refused", "cut off", "unparsed")


def combine_orders(left: str, right: str, showings: Sequence[Showing]) -> PairVerdict:
    """Combine the verdicts from every order in which the pair was shown.

    Equal verdicts give that verdict, different ones a tie that is marked inconsistent. One unparsed reply gives none.
    """
    for reason in _REASONS:
        for showing in showings:
            if showing.outcome == reason:
                return PairVerdict(
                    left=left, right=right, outcome=reason, detail=showing.detail, showings=tuple(showings)
                )
    outcomes: set[Outcome] = {showing.outcome for showing in showings}
    assert outcomes, "a pair that was shown"
    is_inconsistent = len(outcomes) > 1
    outcome: Outcome = "tie" if is_inconsistent else outcomes.pop()
    return PairVerdict(
        left=left, right=right, outcome=outcome, is_inconsistent=is_inconsistent, showings=tuple(showings)
    )


def weigh_orders(
    left: str, right: str, showings: Sequence[Showing], probabilities: Sequence[Mapping[Outcome, float]]
) -> PairVerdict:
    """Combine the orders by the probabilities of the outcomes in each: that with the highest product is the verdict.

    A preference for a place that multiplies its odds, in any order, cancels in the product, as in the mean of the
    log-odds. Equal products are a tie. One unparsed reply gives no verdict; the mark of `combine_orders` stays.
    """
    combined = combine_orders(left, right, showings)
    if combined.outcome not in VERDICTS:
        return combined
    outcomes: tuple[Outcome, ...] = ("left", "right", "tie")
    products = [math.prod(each.get(outcome, 0.0) for each in probabilities) for outcome in outcomes]
    likeliest = [outcome for outcome, product in zip(outcomes, products, strict=True) if product == max(products)]
    return msgspec.structs.replace(combined, outcome=likeliest[0] if len(likeliest) == 1 else "tie")


def majority(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the plurality verdict of a panel's members; a draw is a tie.

    Where half of the members or more have no verdict, the panel has none: its outcome is the reason that most of them
    have (``failed`` before all others, since the request can be repeated).
    """
    votes: Counter[Outcome] = Counter(outcome for outcome in outcomes if outcome in VERDICTS)
    if "failed" in outcomes:
        return "failed"
    if 2 * votes.total() <= len(outcomes):
        silent = Counter(outcome for outcome in outcomes if outcome not in VERDICTS)
        return max(_REASONS, key=lambda reason: silent[reason])
    most = max(votes.values())
    leading: list[Outcome] = [outcome for outcome, number in votes.items() if number == most]
    return leading[0] if len(leading) == 1 else "tie"


class WonShares(NamedTuple):
    """Each response's share of comparisons won, null with a reason where one of them has no verdict."""

    shares: dict[str, float | None]
    reasons: dict[str, str]


def shares_won(names: Iterable[str], verdicts: Iterable[PairVerdict]) -> WonShares:
    """Return the share of its comparisons that each response won, a tie counting half: Copeland's score, 0 to 1.

    A response that was never compared has no share, for the reason ``not compared``.
    """
    won: defaultdict[str, float] = defaultdict(float)
    num_compared: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    for verdict in verdicts:
        num_compared.update((verdict.left, verdict.right))
        if verdict.outcome not in VERDICTS:
            reasons.setdefault(verdict.left, verdict.outcome)
            reasons.setdefault(verdict.right, verdict.outcome)
        won[verdict.left] += {"left": 1.0, "tie": 0.5}.get(verdict.outcome, 0.0)
        won[verdict.right] += {"right": 1.0, "tie": 0.5}.get(verdict.outcome, 0.0)
    known = list(names)
    reasons |= {name: "not compared" for name in known if not num_compared[name]}
    shares = {name: None if name in reasons else won[name] / num_compared[name] for name in known}
    return WonShares(shares, {name: reasons[name] for name in known if name in reasons})


def first_place_preference(verdicts: Iterable[PairVerdict]) -> tuple[int, int]:
    """Count strict verdicts for the response shown first, and all strict ones, over every order of the pairs.

    Where every pair was shown in both orders, a judge without position bias is at one half for any answers.
    """
    num_first = num_strict = 0
    for verdict in verdicts:
        for showing in verdict.showings:
            if showing.outcome in ("left", "right"):
                preferred = verdict.left if showing.outcome == "left" else verdict.right
                other = verdict.right if showing.outcome == "left" else verdict.left
                num_first += showing.shown.index(preferred) < showing.shown.index(other)
                num_strict += 1
    return num_first, num_strict


def members_verdict(left: str, right: str, members: Mapping[str, PairVerdict]) -> PairVerdict:
    """Return the panel's verdict on a pair from the verdicts of its members by name."""
    outcomes: dict[str, Outcome] = {name: verdict.outcome for name, verdict in members.items()}
    return PairVerdict(left=left, right=right, outcome=majority(list(outcomes.values())), members=outcomes)


def panel_answer(members: Mapping[str, Answer]) -> Answer:
    """Return the panel's answer to a comparison. The answer of a panel of one is its member's.

    All members must have judged the same pairs in the same order.
    """
    answers = list(members.values())
    if len(answers) == 1:
        return answers[0]
    combined = []
    for verdicts in zip(*(answer.verdicts for answer in answers), strict=True):
        first = verdicts[0]
        assert all((each.left, each.right) == (first.left, first.right) for each in verdicts), "the same pairs"
        combined.append(members_verdict(first.left, first.right, dict(zip(members, verdicts, strict=True))))
    return Answer(verdicts=tuple(combined))


def combine_repeats(answers: Sequence[Answer]) -> Answer:
    """Return the answer of most repeats of a comparison: the plurality of the verdicts, the mean of the numbers.

    Where half of the repeats or more have no verdict or number, the answer has none, for their reason.
    """
    if len(answers) == 1:
        return answers[0]
    verdicts = zip(*(answer.verdicts for answer in answers), strict=True)
    ratings = zip(*(answer.ratings for answer in answers), strict=True)
    return Answer(verdicts=tuple(map(_most_repeats, verdicts)), ratings=tuple(map(_mean_rating, ratings)))


def _most_repeats(verdicts: Sequence[PairVerdict]) -> PairVerdict:
    outcomes: tuple[Outcome, ...] = tuple(verdict.outcome for verdict in verdicts)
    outcome = majority(outcomes)
    return PairVerdict(
        left=verdicts[0].left,
        right=verdicts[0].right,
        outcome=outcome,
        is_inconsistent=2 * sum(verdict.is_inconsistent for verdict in verdicts) > len(verdicts),
        detail=next((verdict.detail for verdict in verdicts if verdict.outcome == outcome), None),
        showings=tuple(showing for verdict in verdicts for showing in verdict.showings),
        repeats=outcomes,
    )


def _mean_rating(ratings: Sequence[ResponseRating]) -> ResponseRating:
    values = [rating.value for rating in ratings if rating.value is not None]
    if 2 * len(values) > len(ratings):
        return ResponseRating(response=ratings[0].response, value=sum(values) / len(values))
    return next(rating for rating in ratings if rating.value is None)


class VerdictCounts(Record, frozen=True, kw_only=True):
    """Verdicts of one judge: pairs by outcome, and ``ratings`` counts the numbers given, by number.

    Responses without a number are among the outcomes, under their reason.
    """

    outcomes: dict[str, int]
    ratings: dict[str, int] | None = None

    @property
    def num_given(self) -> int:
        """The number of verdicts and ratings."""
        return sum(self.outcomes.get(verdict, 0) for verdict in VERDICTS) + sum((self.ratings or {}).values())

    @property
    def num_missing(self) -> int:
        """The number of pairs, or of responses to be rated, without a verdict or a number."""
        return sum(number for outcome, number in self.outcomes.items() if outcome not in VERDICTS)


class VerdictSummary(VerdictCounts, frozen=True, kw_only=True):
    """The verdicts or ratings of one judge, counted by outcome.

    ``inconsistent``: the share of pairs shown in several orders whose verdicts differ. ``first_preferred``: the share
    of strict verdicts in single replies for the answer shown first; 0.5 means no position bias. ``flip_rate``: of two
    repeats of a comparison, how often their verdicts differ; null without repeats.
    """

    by_language: dict[str, dict[str, int]]
    inconsistent: Estimate
    first_preferred: Estimate
    flip_rate: Estimate | None = None


class VerdictCounter:
    """Counts the answers of judges as they come; a panel is counted under its own name besides its members."""

    def __init__(self) -> None:
        self._outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._languages: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._ratings: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._tally = Tally(width=2)
        self._units = PromptUnits()
        self._repeated: set[str] = set()

    def add(self, prompt: Prompt, answers: Mapping[str, Answer]) -> None:
        """Count every judge's answer to one comparison. Prompts of one id or text are resampled together."""
        # Numbered in turn, so that units beyond the bound share a row as evenly as possible.
        unit = self._units.unit(prompt) % MOST_UNITS
        for name, answer in answers.items():
            outcomes = Counter(verdict.outcome for verdict in answer.verdicts)
            outcomes.update(rating.outcome for rating in answer.ratings if rating.outcome is not None)
            self._outcomes[name].update(outcomes)
            self._languages[name, prompt.language or "unknown"].update(outcomes)
            self._ratings[name].update(f"{rating.value:g}" for rating in answer.ratings if rating.value is not None)
            self._tally_share((_FIRST, name), unit, *first_place_preference(answer.verdicts))
            several = [each for each in answer.verdicts if len(each.showings) > 1 and each.verdict != "none"]
            num_inconsistent = sum(verdict.is_inconsistent for verdict in several)
            self._tally_share((_INCONSISTENT, name), unit, num_inconsistent, len(several))
            repeated = [
                two
                for each in answer.verdicts
                for two in combinations((outcome for outcome in each.repeats if outcome in VERDICTS), 2)
            ]
            if any(verdict.repeats for verdict in answer.verdicts):
                self._repeated.add(name)
            self._tally_share((_FLIPPED, name), unit, sum(first != second for first, second in repeated), len(repeated))

    def summaries(self, *, seed: int, num_resamples: int = 1000) -> dict[str, VerdictSummary]:
        """Return the counts and shares of every judge, with intervals over prompts."""
        draws = self._tally.draw(seed=seed, num_resamples=num_resamples)
        by_language = self._by_language()

        def share(group: Group) -> Estimate:
            return estimate_shares(draws.table([group]), lambda sums: (sums[..., 0], sums[..., 1]))[0]

        return {
            name: VerdictSummary(
                outcomes=_in_order(outcomes),
                by_language={
                    language: _in_order(counts)
                    for (judge, language), counts in sorted(by_language.items())
                    if judge == name
                },
                inconsistent=share((_INCONSISTENT, name)),
                first_preferred=share((_FIRST, name)),
                ratings=dict(sorted(self._ratings[name].items(), key=_number)) or None,
                flip_rate=share((_FLIPPED, name)) if name in self._repeated else None,
            )
            for name, outcomes in self._outcomes.items()
        }

    def _by_language(self) -> dict[tuple[str, str], Counter[str]]:
        """Return the outcomes of each judge in each language; several spellings of a language are one."""
        sizes: Counter[str] = Counter()
        for (_, language), counts in self._languages.items():
            sizes[language] += counts.total()
        spelling = common_spellings(sizes, language_key)
        merged: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for (judge, language), counts in self._languages.items():
            merged[judge, spelling[language]].update(counts)
        return merged

    def _tally_share(self, group: Group, unit: int, hits: int, number: int) -> None:
        amount: Floats = np.array([hits, number], dtype=np.float64)
        self._tally.add(Entries((group,), np.array([unit, unit]), np.array([0, 1]), amount))


def _in_order(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the positive counts in the order of `OUTCOMES`."""
    return {outcome: counts[outcome] for outcome in OUTCOMES if counts[outcome]}


def _number(item: tuple[str, int]) -> float:
    return float(item[0])
