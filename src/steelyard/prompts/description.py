"""The statistics of a data set (CHEEMS, Table 1): prompts, responses, comparisons, and mean lengths of their texts.

A comparison is an ordered pair of the ranking or of the listed pairs, so that ties are none. The mean lengths of chosen
and rejected responses are over comparisons: a response that is in three of them counts three times. Lengths in
characters are Unicode code points of all turns, those in tokens leave out the special tokens and the chat template.

Memory grows with the number of groups, not with the number of cases.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from steelyard.core.languages import language_key
from steelyard.core.text import name_form, num_characters
from steelyard.core.types import Case, Record, Response
from steelyard.ranking.judgment_table import NO_LANGUAGE
from steelyard.ranking.pairs import PairChoice, pairs_of
from steelyard.statistics.groups import UNCATEGORISED, cell_of

CountTokens = Callable[[Sequence[str]], Sequence[int]]
"""A function from texts to their numbers of tokens."""
_BATCH = 256
"""The cases whose texts are tokenized together."""


class MeanLengths(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Mean lengths of prompts, of responses, and of the chosen and rejected responses of comparisons; null for none."""

    prompt: float | None
    response: float | None
    chosen: float | None
    rejected: float | None


class GroupStatistics(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The statistics of one group of cases, or of the responses of one author.

    The prompts and comparisons of an author are those in which it has a response; a comparison of two authors counts
    for both. ``num_judgments`` counts those with a verdict; ``tokens`` is null without a tokenizer.
    """

    num_prompts: int
    num_responses: int
    responses_per_prompt: float | None
    num_comparisons: int
    num_judgments: int
    characters: MeanLengths
    tokens: MeanLengths | None


class DescribeSummary(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The statistics of all cases and of each group; a grouping is empty where no case has its field.

    ``num_unranked`` counts the cases with judgments and without a ranking, which have no comparisons yet.
    """

    overall: GroupStatistics
    by_category: dict[str, GroupStatistics]
    by_language: dict[str, GroupStatistics]
    by_source: dict[str, GroupStatistics]
    by_subset: dict[str, GroupStatistics]
    by_author: dict[str, GroupStatistics]
    num_unranked: int
    tokenizer: str | None


GROUPINGS = ("category", "language", "source", "subset", "author")
"""The groupings of a summary, in its order: each has a field ``by_NAME``."""


class _Lengths(NamedTuple):
    """The length of a prompt, and of each of its responses, in one unit."""

    prompt: int
    responses: tuple[int, ...]


class _Total:
    """The sum of some lengths with their number."""

    __slots__ = ("number", "total")

    def __init__(self) -> None:
        self.number = self.total = 0

    def add(self, length: int) -> None:
        self.number += 1
        self.total += length

    @property
    def mean(self) -> float | None:
        return self.total / self.number if self.number else None


class _LengthTotals:
    """The totals of one unit of length in one group."""

    __slots__ = ("chosen", "prompt", "rejected", "response")

    def __init__(self) -> None:
        self.prompt, self.response, self.chosen, self.rejected = _Total(), _Total(), _Total(), _Total()

    def means(self) -> MeanLengths:
        return MeanLengths(
            prompt=self.prompt.mean,
            response=self.response.mean,
            chosen=self.chosen.mean,
            rejected=self.rejected.mean,
        )


class _DescribedGroup:
    """The running statistics of one group."""

    __slots__ = ("lengths", "num_comparisons", "num_judgments", "num_prompts", "num_responses")

    def __init__(self, num_units: int) -> None:
        self.num_prompts = self.num_responses = self.num_comparisons = self.num_judgments = 0
        self.lengths = tuple(_LengthTotals() for _ in range(num_units))

    def statistics(self) -> GroupStatistics:
        return GroupStatistics(
            num_prompts=self.num_prompts,
            num_responses=self.num_responses,
            responses_per_prompt=self.num_responses / self.num_prompts if self.num_prompts else None,
            num_comparisons=self.num_comparisons,
            num_judgments=self.num_judgments,
            characters=self.lengths[0].means(),
            tokens=self.lengths[1].means() if len(self.lengths) > 1 else None,
        )


class _DescribedCase(NamedTuple):
    """A case with its comparisons (better, worse), its strict and tied judgments by position, and its lengths."""

    case: Case
    comparisons: tuple[tuple[int, int], ...]
    judged: tuple[tuple[int, int], ...]
    lengths: tuple[_Lengths, ...]

    def add_to(self, group: _DescribedGroup, members: frozenset[int] | None = None) -> None:
        """Add the case to a group; with ``members`` only these responses and what they are part of."""
        chosen = range(len(self.case.responses)) if members is None else members
        group.num_prompts += 1
        group.num_responses += len(chosen)
        better = [pair for pair in self.comparisons if pair[0] in chosen]
        worse = [pair for pair in self.comparisons if pair[1] in chosen]
        group.num_comparisons += len({*better, *worse})
        group.num_judgments += sum(left in chosen or right in chosen for left, right in self.judged)
        for totals, lengths in zip(group.lengths, self.lengths, strict=True):
            totals.prompt.add(lengths.prompt)
            for place in chosen:
                totals.response.add(lengths.responses[place])
            for first, _ in better:
                totals.chosen.add(lengths.responses[first])
            for _, second in worse:
                totals.rejected.add(lengths.responses[second])


def describe_cases(
    cases: Iterable[Case],
    pairs: PairChoice | None = None,
    *,
    count_tokens: CountTokens | None = None,
    tokenizer: str | None = None,
) -> DescribeSummary:
    """Return the statistics of the cases. ``tokenizer`` is the name under which the token counts are recorded.

    Raises EvidenceError where a case lacks what the choice of pairs needs (`pairs_of`).
    """
    num_units = 1 if count_tokens is None else 2
    overall, num_unranked = _DescribedGroup(num_units), 0
    groups: dict[str, dict[str, _DescribedGroup]] = {name: {} for name in GROUPINGS}
    spellings: dict[tuple[str, str], str] = {}
    for measured in _measured(cases, pairs, count_tokens):
        case = measured.case
        measured.add_to(overall)
        num_unranked += bool(measured.judged and case.ranking is None and case.pairs is None)
        for grouping, name, identity in _names(case):
            # Other spellings count under the first one.
            spelling = spellings.setdefault((grouping, identity), name)
            measured.add_to(_group_in(groups[grouping], spelling, num_units))
        for name, members in _by_author(case).items():
            measured.add_to(_group_in(groups["author"], name, num_units), members)
    tables = {f"by_{name}": _largest_first(table) for name, table in groups.items()}
    return DescribeSummary(overall=overall.statistics(), num_unranked=num_unranked, tokenizer=tokenizer, **tables)


def _group_in(table: dict[str, _DescribedGroup], name: str, num_units: int) -> _DescribedGroup:
    group = table.get(name)
    if group is None:
        group = table[name] = _DescribedGroup(num_units)
    return group


def _names(case: Case) -> Iterator[tuple[str, str, str]]:
    """Yield each grouping of prompts with the case's group, its name and its identity; categories are first tiers."""
    category, subset, language = cell_of(case)
    yield "category", category, name_form(category)
    yield "language", language or NO_LANGUAGE, language_key(language or NO_LANGUAGE)
    for grouping, name in (("source", case.prompt.source), ("subset", subset)):
        yield grouping, name or NO_LANGUAGE, name or NO_LANGUAGE


def _by_author(case: Case) -> dict[str, frozenset[int]]:
    """Return the positions of each author's responses."""
    places: dict[str, list[int]] = {}
    for place, response in enumerate(case.responses):
        places.setdefault(response.author or NO_LANGUAGE, []).append(place)
    return {name: frozenset(members) for name, members in places.items()}


def _largest_first(table: Mapping[str, _DescribedGroup]) -> dict[str, GroupStatistics]:
    """Return the groups by their number of prompts, then by name; none where every case lacks the field."""
    if set(table) <= {NO_LANGUAGE, UNCATEGORISED}:
        return {}
    ordered = sorted(table.items(), key=lambda item: (-item[1].num_prompts, item[0]))
    return {name: group.statistics() for name, group in ordered}


def _measured(
    cases: Iterable[Case], pairs: PairChoice | None, count_tokens: CountTokens | None
) -> Iterator[_DescribedCase]:
    iterator = iter(cases)
    while batch := list(islice(iterator, _BATCH)):
        units = [
            [
                _Lengths(
                    sum(len(message.content) for message in case.prompt.messages),
                    tuple(map(num_characters, case.responses)),
                )
                for case in batch
            ]
        ]
        if count_tokens is not None:
            units.append(_token_lengths(batch, count_tokens))
        for case, *lengths in zip(batch, *units, strict=True):
            comparisons = tuple((pair.better, pair.worse) for pair in pairs_of(case, pairs))
            place = {response.id: index for index, response in enumerate(case.responses)}
            strict_and_tied = (each for each in case.judgments if each.verdict != "none")
            judged = tuple((place[each.left], place[each.right]) for each in strict_and_tied)
            yield _DescribedCase(case, comparisons, judged, tuple(lengths))


def _token_lengths(cases: Sequence[Case], count_tokens: CountTokens) -> list[_Lengths]:
    """Return the lengths of the cases in tokens, each turn tokenized alone; all texts are tokenized in one call."""
    turns = [[[message.content for message in case.prompt.messages], *map(_turns, case.responses)] for case in cases]
    counts = iter(count_tokens(list(chain.from_iterable(chain.from_iterable(turns)))))
    sums = [[sum(islice(counts, len(texts))) for texts in of_case] for of_case in turns]
    return [_Lengths(prompt, tuple(responses)) for prompt, *responses in sums]


def _turns(response: Response) -> list[str]:
    return [response.text] if response.text is not None else [turn.content for turn in response.messages or ()]
