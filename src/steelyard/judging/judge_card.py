"""The card of a judge: agreement and correlation with people, biases, and verdicts that flip, with intervals.

People's label of a pair is the plurality of the judgments of kind ``human``; in a case without any, its ranking or its
listed pairs. A judge's label is the plurality of its judgments of the pair. Prompts are the units of all intervals.

The correlation decides what a judge is worth for estimates from few human and many judge labels
(`statistics.prediction_powered`). With labels 1, 0 (a tie) and -1, and each pair in both directions, it is
Σhj / sqrt(Σh² Σj²): that of a win rate or an accuracy of one half. Far from one half a judge that agrees as often is
worth less; `evaluate` reports the correlation of each value.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from steelyard.core.errors import EvidenceError
from steelyard.core.languages import language_key
from steelyard.core.numerics import Floats, ratio
from steelyard.core.remedies import ANY, Advice, Command, Remedy
from steelyard.core.text import common_spellings, name_form, num_characters
from steelyard.core.types import Case, Judgment, Record
from steelyard.io.cases import read_cases
from steelyard.ranking.judge_reliability import agreement_shares, kappa_of
from steelyard.ranking.judgment_table import distinct_judgments
from steelyard.statistics.agreement import FIRST, NUM_CELLS, NUM_LABELS, SECOND, TIED
from steelyard.statistics.groups import PromptUnits
from steelyard.statistics.intervals import CORRELATION, Estimate, interval, one_sample
from steelyard.statistics.unit_bootstrap import (
    MOST_UNITS,
    Draws,
    Entries,
    Group,
    Tally,
    UnitSums,
    estimate_share_difference,
    estimate_shares,
)

_FIRST_SHOWN, _STRICT_SHOWN, _LONGER, _PEOPLE_LONGER, _UNEQUAL, _ORDER, _BOTH_ORDERS, _REPEAT, _REPEATED = range(
    NUM_CELLS, NUM_CELLS + 9
)
_WIDTH = NUM_CELLS + 9
_LABELS = {"left": FIRST, "right": SECOND, "tie": TIED}
_TURNED = {FIRST: SECOND, SECOND: FIRST, TIED: TIED}
_LARGEST = 0.999
"""The correlation from which on a judge's worth, which then has no bound, is that of this one."""

_Pair = tuple[str, str]


class PeopleAgreement(Record, frozen=True, kw_only=True):
    """A judge's labels next to people's on the same pairs; three labels: one response, the other, tie.

    ``agreement_of_strict`` counts pairs on which neither says tie. ``kappa`` is Cohen's. ``effective_labels``: with
    very many labels of this judge one human label counts as this many, 1 / (1 - correlation²), near one half.
    """

    num_pairs: int
    agreement: Estimate
    agreement_of_strict: Estimate
    kappa: Estimate
    correlation: Estimate
    effective_labels: Estimate


class JudgeCard(Record, frozen=True, kw_only=True):
    """The worth of a judge, and its errors.

    ``num_unlabelled``: pairs with people's label on which the judge has no verdict. ``first_preferred``: the share of
    its strict verdicts for the response shown first. ``longer_preferred``: for the longer response, on pairs that the
    judge and people order; ``longer_than_people``: minus people's share on the same pairs. ``order_flips``: the share
    of pairs shown in both orders with different verdicts; ``repeat_flips``: of pairs judged several times in one order.
    """

    judge: str
    num_prompts: int
    num_unlabelled: int
    people: PeopleAgreement
    first_preferred: Estimate
    longer_preferred: Estimate
    longer_than_people: Estimate
    order_flips: Estimate
    repeat_flips: Estimate
    by_category: dict[str, PeopleAgreement]
    by_language: dict[str, PeopleAgreement]


class JudgeCards(Record, frozen=True, kw_only=True):
    """The cards of judges on pairs that people labelled, the judge with the highest correlation first."""

    num_prompts: int
    num_pairs: int
    cards: tuple[JudgeCard, ...]


class _Showing(NamedTuple):
    """One reply about a pair: whether the lower id was shown first (None: unknown), and the label of the pair."""

    is_lower_first: bool | None
    label: int


def check_people(cases: Path, people: Path) -> None:
    """Raise EvidenceError if people labelled no pair of these cases. It precedes the first request."""
    labelled = {case.key for case in read_cases(people) if people_labels(case)}
    if not any(case.key in labelled for case in read_cases(cases)):
        raise EvidenceError(
            f"people labelled no pair of {cases}",
            where=str(people),
            allowed="judgments of kind human, a ranking or pairs, of cases with the same ids and languages",
            do=Advice(
                "take the cases and people's labels from one file: ",
                Command("convert", (ANY,), (Remedy("evidence", "human"),)),
            ),
        )


def judge_cards(
    judged: Iterable[Case], people: Iterable[Case], *, seed: int = 0, num_resamples: int = 1000
) -> JudgeCards:
    """Compare every judge of kind ``llm`` or ``model`` with people, on the pairs that both labelled.

    ``people`` are cases with people's labels, all in memory; they may be the judged cases themselves.
    """
    labels = {case.key: people_labels(case) for case in people}
    counter = _CardCounter()
    for case in judged:
        if of_case := labels.get(case.key):
            counter.add(case, of_case)
    return counter.cards(seed=seed, num_resamples=num_resamples)


def people_labels(case: Case) -> dict[_Pair, int]:
    """Return people's label of each pair of response ids, the lower first: 0 the first is better, 1 the second, 2 tie.

    From the judgments of people; without any from the ranking, and without one from the listed pairs.
    """
    distinct = distinct_judgments(case.judgments)
    judgments = [judgment for judgment in distinct if judgment.kind == "human" and judgment.verdict != "none"]
    if judgments:
        votes = _votes(judgments)
        return {pair: _plurality(counts) for pair, counts in votes.items()}
    if case.ranking is not None:
        tier = {name: place for place, names in enumerate(case.ranking) for name in names}
        names = sorted(tier)
        return {
            (first, second): TIED if tier[first] == tier[second] else FIRST if tier[first] < tier[second] else SECOND
            for place, first in enumerate(names)
            for second in names[place + 1 :]
        }
    return {
        _ordered(pair.better, pair.worse): FIRST if pair.better < pair.worse else SECOND for pair in case.pairs or ()
    }


class _CardCounter:
    """Counts by judge, category and language."""

    def __init__(self) -> None:
        self._tally = Tally(_WIDTH, rest=lambda _: ("rest",))
        self._units = PromptUnits()
        self._judges: dict[str, Counter[str]] = defaultdict(Counter)
        self._num_prompts = self._num_pairs = 0

    def add(self, case: Case, people: Mapping[_Pair, int]) -> None:
        """Count the judges' labels of one case."""
        unit = self._units.unit(case.prompt) % MOST_UNITS
        self._num_prompts += 1
        self._num_pairs += len(people)
        lengths = {response.id: num_characters(response) for response in case.responses}
        by_judge: defaultdict[str, list[Judgment]] = defaultdict(list)
        for judgment in case.judgments:
            if judgment.kind != "human":
                by_judge[judgment.judge].append(judgment)
        for judge, judgments in by_judge.items():
            votes = _votes(each for each in distinct_judgments(judgments) if each.verdict != "none")
            compared = {_ordered(judgment.left, judgment.right) for judgment in judgments}
            self._judges[judge]["unlabelled"] += len((compared & people.keys()) - votes.keys())
            sums = np.zeros(_WIDTH)
            for pair, counts in votes.items():
                if pair in people:
                    sums += _pair_columns(people[pair], _plurality(counts), lengths[pair[0]] - lengths[pair[1]])
            # Identical replies stay: without them, repeats that agree would be missing from the share that flips.
            for showings in _showings(judgments).values():
                sums += _showing_columns(showings)
            if sums[:NUM_CELLS].any():
                self._judges[judge]["prompts"] += 1
            self._add(judge, case, unit, sums)

    def cards(self, *, seed: int, num_resamples: int) -> JudgeCards:
        """Return the cards of all judges that share a pair with people."""
        draws = self._tally.draw(seed=seed, num_resamples=num_resamples)
        cards = [_card(judge, counts, draws) for judge, counts in self._judges.items() if counts["prompts"]]
        return JudgeCards(
            num_prompts=self._num_prompts,
            num_pairs=self._num_pairs,
            cards=tuple(sorted(cards, key=lambda card: (-(card.people.correlation.value or 0.0), card.judge))),
        )

    def _add(self, judge: str, case: Case, unit: int, sums: Floats) -> None:
        category = case.prompt.category[0] if case.prompt.category else "uncategorised"
        groups: tuple[Group, ...] = (
            ("judge", judge),
            ("category", judge, category),
            ("language", judge, case.prompt.language or "unknown"),
        )
        columns = np.concatenate([place * _WIDTH + np.arange(_WIDTH) for place in range(len(groups))])
        self._tally.add(Entries(groups, np.full(len(columns), unit), columns, np.tile(sums, len(groups))))


def _votes(judgments: Iterable[Judgment]) -> dict[_Pair, Counter[int]]:
    """Count the labels of each pair."""
    votes: defaultdict[_Pair, Counter[int]] = defaultdict(Counter)
    for judgment in judgments:
        votes[_ordered(judgment.left, judgment.right)][_label(judgment.left, judgment.right, judgment.verdict)] += 1
    return votes


def _plurality(counts: Counter[int]) -> int:
    most = max(counts.values())
    leading = [label for label, number in counts.items() if number == most]
    return leading[0] if len(leading) == 1 else TIED


def _ordered(left: str, right: str) -> _Pair:
    return (left, right) if left <= right else (right, left)


def _label(left: str, right: str, verdict: str) -> int:
    label = _LABELS[verdict]
    return label if left <= right else _TURNED[label]


def _showings(judgments: Iterable[Judgment]) -> dict[_Pair, list[_Showing]]:
    """Return the replies about each pair: every order that a combined judgment records, or the judgment itself."""
    showings: defaultdict[_Pair, list[_Showing]] = defaultdict(list)
    for judgment in judgments:
        pair = _ordered(judgment.left, judgment.right)
        for shown, outcome in _replies(judgment):
            if outcome in _LABELS:
                known = shown is not None and set(pair) <= set(shown)
                is_lower_first = shown.index(pair[0]) < shown.index(pair[1]) if shown is not None and known else None
                showings[pair].append(_Showing(is_lower_first, _label(judgment.left, judgment.right, outcome)))
    return showings


def _replies(judgment: Judgment) -> Iterator[tuple[list[str] | None, str]]:
    orders = (judgment.meta or {}).get("orders")
    if isinstance(orders, list):
        for order in orders:
            if isinstance(order, dict) and isinstance(order.get("shown"), list):
                yield order["shown"], str(order.get("outcome"))
    else:
        yield None if judgment.shown is None else list(judgment.shown), judgment.verdict


def _pair_columns(people: int, judge: int, longer_by: int) -> Floats:
    sums = np.zeros(_WIDTH)
    sums[people * NUM_LABELS + judge] = 1
    if TIED not in (people, judge) and longer_by:
        longer = FIRST if longer_by > 0 else SECOND
        sums[[_LONGER, _PEOPLE_LONGER, _UNEQUAL]] = judge == longer, people == longer, 1
    return sums


def _showing_columns(showings: Iterable[_Showing]) -> Floats:
    sums = np.zeros(_WIDTH)
    by_order: defaultdict[bool | None, list[int]] = defaultdict(list)
    for showing in showings:
        by_order[showing.is_lower_first].append(showing.label)
        if showing.is_lower_first is not None and showing.label != TIED:
            sums[_FIRST_SHOWN] += (showing.label == FIRST) == showing.is_lower_first
            sums[_STRICT_SHOWN] += 1
    if True in by_order and False in by_order:
        both = [_plurality(Counter(by_order[order])) for order in (True, False)]
        sums[[_ORDER, _BOTH_ORDERS]] = both[0] != both[1], 1
    for order, labels in by_order.items():
        # Verdicts in unknown orders may differ because the orders do.
        if order is not None and len(labels) > 1:
            sums[[_REPEAT, _REPEATED]] += len(set(labels)) > 1, 1
    return sums


def _card(judge: str, counts: Counter[str], draws: Draws) -> JudgeCard:
    totals = draws.totals([("judge", judge)])

    def share(above: int, below: int) -> Estimate:
        return estimate_shares(totals, lambda sums: (sums[..., [above]], sums[..., [below]]))[0]

    longer = estimate_share_difference(
        totals,
        lambda sums: (sums[..., _LONGER], sums[..., _UNEQUAL], sums[..., _PEOPLE_LONGER], sums[..., _UNEQUAL]),
        totals.point[_UNEQUAL],
    )
    nothing = Estimate(None, None, None, 0)
    return JudgeCard(
        judge=judge,
        num_prompts=counts["prompts"],
        num_unlabelled=counts["unlabelled"],
        people=_agreement(totals),
        first_preferred=share(_FIRST_SHOWN, _STRICT_SHOWN),
        longer_preferred=share(_LONGER, _UNEQUAL),
        longer_than_people=longer if totals.point[_UNEQUAL] else nothing,
        order_flips=share(_ORDER, _BOTH_ORDERS),
        repeat_flips=share(_REPEAT, _REPEATED),
        by_category=_each("category", judge, draws, name_form),
        by_language=_each("language", judge, draws, language_key),
    )


def _each(word: str, judge: str, draws: Draws, identity: Callable[[str], str]) -> dict[str, PeopleAgreement]:
    """Return the agreement in each category or language in which people labelled a pair; empty for a single one."""
    groups = [group for group in draws.groups if group[:2] == (word, judge)]
    spelling = common_spellings({group[2]: int(draws.point([group]).sum()) for group in groups}, identity)
    parts = {
        name: draws.totals([group for group in groups if spelling[group[2]] == name])
        for name in sorted(set(spelling.values()))
    }
    used = {name: totals for name, totals in parts.items() if totals.point[:NUM_CELLS].any()}
    return {name: _agreement(totals) for name, totals in used.items()} if len(used) > 1 else {}


def _agreement(totals: UnitSums) -> PeopleAgreement:
    same, strict = agreement_shares(totals)
    num_pairs = int(totals.point[:NUM_CELLS].sum())
    num_units = int(totals.by_unit[:, :NUM_CELLS].any(axis=1).sum())
    value, drawn = float(_correlation(totals.point)), _correlation(totals.resampled)
    correlation = interval(value, drawn, num_pairs, one_sample(num_units), CORRELATION)
    return PeopleAgreement(
        num_pairs=num_pairs,
        agreement=same,
        agreement_of_strict=strict,
        kappa=kappa_of(totals),
        correlation=correlation,
        effective_labels=correlation.transformed(lambda value: 1 / (1 - min(max(value, 0.0), _LARGEST) ** 2)),
    )


def _correlation(sums: Floats) -> Floats:
    """Return the correlation of confusion matrices, people's label first: (…, column) to (…)."""
    cells = sums[..., :NUM_CELLS].reshape(*sums.shape[:-1], NUM_LABELS, NUM_LABELS)
    product = (
        cells[..., FIRST, FIRST] + cells[..., SECOND, SECOND] - cells[..., FIRST, SECOND] - cells[..., SECOND, FIRST]
    )
    people, judge = (cells.sum(axis=axis)[..., :TIED].sum(axis=-1) for axis in (-1, -2))
    return ratio(product, np.sqrt(people * judge))
