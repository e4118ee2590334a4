"""Debiasing by downsampling (CHEEMS, section 4.2): equal numbers of pairs whose better answer is longer and is shorter.

The pairs are split into those whose better response has more of a feature (is longer) and those where it has less. Of
the larger group a random part stays, as large as the smaller group. Pairs with equally much take no side and stay.
"""

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.languages import language_key
from steelyard.core.numerics import Booleans, Integers
from steelyard.core.remedies import FILE, Advice, Command, Remedy
from steelyard.core.text import name_form, num_markdown_marks, number_of, verb_for
from steelyard.core.types import Case, Counts, Record, Response, Scores
from steelyard.ranking.judgment_table import NO_LANGUAGE
from steelyard.ranking.pairs import UNLISTED, IndexedPair, PairChoice, num_beyond_listed, pairs_of
from steelyard.statistics.groups import UNCATEGORISED, PromptUnits
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unit_bootstrap import share_of

Within = Literal["overall", "category", "language", "both"]
ValueT = TypeVar("ValueT")
Length = Callable[[Response], float]
DEFAULT_MATCHED = 0.1


_DOWNSAMPLED = "downsampled"


class Config(BaseConfig, frozen=True):
    """``by`` is the feature, ``within`` the groups that are balanced, ``pairs`` the pairs of a case that count.

    ``tokenizer`` (a folder or hub name) counts length in its tokens rather than in characters. Pairs whose lengths
    differ by at most ``length_tolerance`` of the longer one (null is 0.1) are length-matched: with scores, a model's
    accuracy on them is measured before and after.
    """

    by: Literal["length", "markdown", "author"] = "length"
    """Feature to balance: length, marks of Markdown, or authors against each other."""
    within: Within = "overall"
    """Balance overall, or within each category, each language, or both."""
    tokenizer: str | None = None
    """Measure length in the tokens of this tokenizer (a folder or hub name), not in characters."""
    pairs: PairChoice | None = None
    """Which pairs count. Default: a case's listed pairs, or else all across tiers."""
    length_tolerance: float | None = None
    """With scores: the largest difference of lengths, as a share of the longer, that counts as equal. Default: 0.1."""
    seed: int = 0
    """The seed of the pairs that are dropped."""

    @property
    def tolerance(self) -> float:
        """Return ``length_tolerance``, or its default."""
        return DEFAULT_MATCHED if self.length_tolerance is None else self.length_tolerance


class PairSide(NamedTuple):
    """The side of one pair: 1, its better response has more of the feature; -1, less; 0, neither.

    Pairs are balanced among those of the same ``group``.
    """

    side: int
    group: tuple[str, ...]


class PairSurvey(NamedTuple):
    """Columns with one entry for each pair of a file, in order, and the names that ``group`` numbers.

    ``margin`` is the model's score of the better response minus that of the worse, NaN where it has none.
    ``num_unlisted`` counts the pairs that their case, which lists pairs, does not list.
    """

    side: Integers
    group: Integers
    priority: NDArray[np.uint64]
    prompt: Integers
    is_matched: Booleans
    is_longer: Booleans
    margin: NDArray[np.float64]
    groups: tuple[tuple[str, ...], ...]
    pairs_of_case: Integers
    num_unlisted: int = 0

    def accuracy(self, *, seed: int) -> Estimate:
        """Return the share of the scored pairs that the scores order as they are."""
        return share_of(self.prompt, ~np.isnan(self.margin), self.margin > 0, seed=seed)


class Balance(Record, frozen=True):
    """The pairs of a group by side, and the share of ``more`` among those with a side; null where none has one."""

    num_more: int
    num_less: int
    num_equal: int
    share_more: float | None


class BeforeAfter(Record, Generic[ValueT], frozen=True):
    """A value over all pairs and over the pairs that stay."""

    before: ValueT
    after: ValueT


class GroupBalance(Record, frozen=True):
    """The sides of one group's pairs."""

    group: tuple[str, ...]
    before: Balance
    after: Balance


class DebiasedAccuracy(Record, frozen=True):
    """The share of pairs whose better response the model scores higher; equal scores are wrong.

    Pairs without a score are left out and counted. ``length_tolerance`` is the largest difference of matched lengths.
    """

    num_unscored: int
    length_tolerance: float
    all: BeforeAfter[Estimate]
    length_matched: BeforeAfter[Estimate]
    better_is_longer: BeforeAfter[Estimate]
    better_is_not_longer: BeforeAfter[Estimate]


class DebiasSummary(Record, frozen=True):
    """The sides overall and by group, the share of pairs whose better response is longer, and a model's accuracy."""

    by: str
    unit: str
    within: Within
    overall: BeforeAfter[Balance]
    groups: tuple[GroupBalance, ...]
    longer_is_better: BeforeAfter[Estimate]
    accuracy: DebiasedAccuracy | None


def survey_pairs(cases: Iterable[tuple[Case, Scores | None]], config: Config, length: Length) -> PairSurvey:
    """Return an entry for each pair of each case, in order; ``length`` measures a response."""
    side, matched, longer = array("b"), array("b"), array("b")
    group, prompt, per_case = array("q"), array("q"), array("q")
    priorities, margin = array("Q"), array("d")
    numbers: dict[tuple[str, ...], int] = {}
    number_of_spelling: dict[tuple[str, ...], int] = {}
    spellings: Counter[tuple[str, ...]] = Counter()
    prompts = PromptUnits()
    num_unlisted = 0
    for case, scores in cases:
        pairs = pairs_of(case, config.pairs)
        lengths = [length(response) for response in case.responses]
        unit = prompts.unit(case.prompt) if pairs else -1
        per_case.append(len(pairs))
        num_unlisted += num_beyond_listed(case, pairs)
        for pair, pair_side in zip(pairs, _sides(case, pairs, lengths, config), strict=True):
            side.append(pair_side.side)
            spellings[pair_side.group] += 1
            if pair_side.group not in number_of_spelling:
                identity = _identity(pair_side.group, config.within)
                number_of_spelling[pair_side.group] = numbers.setdefault(identity, len(numbers))
            group.append(number_of_spelling[pair_side.group])
            priorities.append(priority(case, pair, seed=config.seed))
            prompt.append(unit)
            matched.append(is_matched(pair, lengths, config.tolerance))
            longer.append(lengths[pair.better] > lengths[pair.worse])
            margin.append(_margin(case, pair, scores))
    groups = dict[int, tuple[str, ...]]()
    for spelling, _ in spellings.most_common():
        groups.setdefault(number_of_spelling[spelling], spelling)
    return PairSurvey(
        side=np.array(side, np.int64),
        group=np.array(group, np.int64),
        priority=np.array(priorities, np.uint64),
        prompt=np.array(prompt, np.int64),
        is_matched=np.array(matched, bool),
        is_longer=np.array(longer, bool),
        margin=np.array(margin, np.float64),
        groups=tuple(groups[number] for number in range(len(groups))),
        pairs_of_case=np.array(per_case, np.int64),
        num_unlisted=num_unlisted,
    )


def _sides(
    case: Case, pairs: tuple[IndexedPair, ...], lengths: Sequence[float], config: Config
) -> tuple[PairSide, ...]:
    """Return the side of each pair by the feature that is balanced."""
    if config.by == "author":
        return sides_by_author(case, pairs, config.within)
    if config.by == "markdown":
        marks = [num_markdown_marks(response) for response in case.responses]
        return sides_by_value(case, pairs, marks, config.within)
    return sides_by_value(case, pairs, lengths, config.within)


def _margin(case: Case, pair: IndexedPair, scores: Scores | None) -> float:
    """Return the better response's score minus the worse one's; NaN without either."""
    if scores is None:
        return np.nan
    better = scores.scores[case.responses[pair.better].id]
    worse = scores.scores[case.responses[pair.worse].id]
    return np.nan if better is None or worse is None else better - worse


def sides_by_value(
    case: Case, pairs: Sequence[IndexedPair], values: Sequence[float], within: Within
) -> tuple[PairSide, ...]:
    """Return the side of each pair by a number that each of the case's responses has."""
    group = group_of(case, within)
    return tuple(PairSide(int(np.sign(values[pair.better] - values[pair.worse])), group) for pair in pairs)


def sides_by_author(case: Case, pairs: Sequence[IndexedPair], within: Within) -> tuple[PairSide, ...]:
    """Return the side of each pair by its better response's author; every two authors are balanced separately.

    ``more`` is the author whose name sorts last. A pair with one author or an unknown one takes no side.
    """
    sides = []
    for pair in pairs:
        better, worse = case.responses[pair.better].author, case.responses[pair.worse].author
        if better is None or worse is None or better == worse:
            sides.append(PairSide(0, group_of(case, within)))
        else:
            group = (*group_of(case, within), min(better, worse), max(better, worse))
            sides.append(PairSide(1 if better > worse else -1, group))
    return tuple(sides)


def group_of(case: Case, within: Within) -> tuple[str, ...]:
    """Return the group that the case's pairs are balanced in: first-tier category, language, both, or all cases."""
    category = case.prompt.category[0] if case.prompt.category else UNCATEGORISED
    language = case.prompt.language or NO_LANGUAGE
    names = {"overall": (), "category": (category,), "language": (language,), "both": (category, language)}
    return names[within]


def _identity(group: tuple[str, ...], within: Within) -> tuple[str, ...]:
    """Return the group with its category and language in the one form of all their spellings; authors stay."""
    category, language = (name_form,), (language_key,)
    forms = {"overall": (), "category": category, "language": language, "both": (*category, *language)}[within]
    return (*(form(name) for form, name in zip(forms, group, strict=False)), *group[len(forms) :])


def priority(case: Case, pair: IndexedPair, *, seed: int) -> int:
    """Return a random number of 64 bits that depends on the seed and the pair alone, not on its place in a file."""
    ends = (case.responses[pair.better].id, case.responses[pair.worse].id)
    text = "\x1f".join((str(seed), case.prompt.id, case.prompt.language or "", *ends))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def is_matched(pair: IndexedPair, lengths: Sequence[float], tolerance: float) -> bool:
    """Return whether the two lengths differ by at most a share of the longer one."""
    better, worse = lengths[pair.better], lengths[pair.worse]
    return abs(better - worse) <= tolerance * max(better, worse)


def balance_sides(side: Integers, group: Integers, priorities: NDArray[np.uint64]) -> Booleans:
    """Return which pairs stay: in each group the smaller side, as many of the larger side, and pairs of neither side.

    Of the larger side those of lowest priority number stay, and of equal numbers the earlier.
    """
    # Three cells a group, in the order of the sides -1, 0 and 1.
    cell = group * 3 + side + 1
    num_cells = 3 * (int(group.max(initial=-1)) + 1)
    sizes = np.bincount(cell, minlength=num_cells)
    quota = np.minimum(sizes[0::3], sizes[2::3])[group]
    # `lexsort` sorts by its last key first, and is stable: equal priorities stay in the order of the file.
    order = np.lexsort((priorities, cell))
    starts = np.concatenate([[0], np.cumsum(sizes)])[cell[order]]
    place = np.empty(len(side), np.int64)
    place[order] = np.arange(len(side)) - starts
    return (side == 0) | (place < quota)


def count_sides(side: Integers, group: Integers, num_groups: int) -> tuple[Balance, ...]:
    """Count the pairs of each group by side; the tuple is indexed by the group's number."""
    counts = np.bincount(group * 3 + side + 1, minlength=3 * num_groups).reshape(num_groups, 3)
    return tuple(
        Balance(num_more=more, num_less=less, num_equal=equal, share_more=more / (more + less) if more + less else None)
        for less, equal, more in counts.tolist()
    )


def check_settings(config: Config, *, with_scores: bool) -> None:
    """Raises ConfigError for a setting without effect, and for a share outside its range."""
    if config.tokenizer is not None and config.by == "author":
        raise ConfigError("tokenizer with by=author", do="a tokenizer measures length")
    if config.length_tolerance is None:
        return
    if not with_scores:
        raise ConfigError(
            f"length_tolerance is {config.length_tolerance}, and there are no scores",
            where="debias",
            do=Advice(
                "give ",
                Remedy("scores", FILE),
                ": length_tolerance selects the pairs on which their accuracy is measured",
            ),
        )
    if not 0 <= config.length_tolerance < 1:
        raise ConfigError(
            f"length_tolerance is {config.length_tolerance}", where="debias", allowed="0 or more, and below 1"
        )


def choose_pairs(survey: PairSurvey, config: Config, *, where: str) -> Booleans:
    """Return which pairs stay. Raises EvidenceError where there is nothing to balance, or no pair would stay."""
    if not len(survey.side):
        raise EvidenceError("no case has a pair", where=where, do=Advice("rank the cases first: ", Command("resolve")))
    if config.by == "author" and not survey.side.any():
        raise EvidenceError("no pair has two different known authors", where=where, do="debias by another feature")
    stays = balance_sides(survey.side, survey.group, survey.priority)
    if not stays.any():
        raise EvidenceError(
            f"all {number_of(len(stays), 'pair')} {verb_for(len(stays), 'is', 'are')} on one side: nothing would stay",
            where=where,
            do="debias by another feature",
        )
    return stays


def count_pairs(survey: PairSurvey, stays: Booleans, num_without: int) -> Counts:
    """Return the counts of pairs; ``num_without`` cases had pairs and have none left."""
    num_dropped = int((~stays).sum())
    noted = {
        "cases": len(survey.pairs_of_case),
        "cases without a pair": int((survey.pairs_of_case == 0).sum()),
        "cases left without a pair": num_without,
        "pairs on neither side": int((survey.side == 0).sum()),
        UNLISTED: survey.num_unlisted,
    }
    return Counts(
        num_in=len(stays),
        num_used=int(stays.sum()),
        dropped={_DOWNSAMPLED: num_dropped} if num_dropped else {},
        noted={name: number for name, number in noted.items() if number},
    )


def summarize(survey: PairSurvey, stays: Booleans, config: Config, *, with_scores: bool) -> DebiasSummary:
    """Return the sides before and after, overall and by group, and the accuracy of the scores."""
    subsets = np.ones(len(stays), bool), stays
    overall = (count_sides(survey.side[subset], np.zeros(int(subset.sum()), np.int64), 1)[0] for subset in subsets)
    by_group = (count_sides(survey.side[subset], survey.group[subset], len(survey.groups)) for subset in subsets)

    def share(counted: Booleans, right: Booleans) -> BeforeAfter[Estimate]:
        return BeforeAfter(*(share_of(survey.prompt, subset & counted, right, seed=config.seed) for subset in subsets))

    accuracy = None
    if with_scores:
        is_scored, is_right = ~np.isnan(survey.margin), survey.margin > 0
        accuracy = DebiasedAccuracy(
            num_unscored=int((~is_scored).sum()),
            length_tolerance=config.tolerance,
            all=share(is_scored, is_right),
            length_matched=share(is_scored & survey.is_matched, is_right),
            better_is_longer=share(is_scored & survey.is_longer, is_right),
            better_is_not_longer=share(is_scored & ~survey.is_longer, is_right),
        )
    return DebiasSummary(
        by=config.by,
        unit=f"tokens of {config.tokenizer}" if config.tokenizer else "characters",
        within=config.within,
        overall=BeforeAfter(*overall),
        groups=tuple(GroupBalance(*row) for row in zip(survey.groups, *by_group, strict=True)),
        longer_is_better=share(subsets[0], survey.is_longer),
        accuracy=accuracy,
    )
