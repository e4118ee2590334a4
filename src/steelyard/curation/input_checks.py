"""Checks of the input before a number: pairs, ties, repeated prompts, pictures, languages, and reversed scores."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import compress
from typing import Literal, NamedTuple

import numpy as np

from steelyard.core.iteration import batched
from steelyard.core.languages import language_key
from steelyard.core.numerics import Booleans
from steelyard.core.text import common_spellings, is_blank, is_same_text, prompt_text, response_text
from steelyard.core.types import Case, InputFinding
from steelyard.curation.conversion import has_picture
from steelyard.ranking.pairs import IndexedPair, ties_of
from steelyard.statistics.groups import prompt_names
from steelyard.statistics.intervals import Estimate

_MOST_EXAMPLES = 3
_CASES_A_BATCH = 1024
_CHANCE = 0.5
_FAR = 1.5


class CasePair(NamedTuple):
    """A pair of one of several cases: the position of the case, and those of both responses within it."""

    case: int
    better: int
    worse: int


def are_unwinnable(cases: Sequence[Case], pairs: Sequence[CasePair]) -> Booleans:
    """Return whether no model can win each pair, as its texts are equal or both empty; shape (pair,)."""
    texts = ([response_text(cases[pair.case].responses[place]) for place in pair[1:]] for pair in pairs)
    return np.fromiter((is_same_text(*both) for both in texts), np.bool_, len(pairs))


class InputChecks:
    """Counts of the properties of cases that a reader of numbers on them should know; the counts of batches add up.

    ``pairs`` can be won, ``unwinnable`` ones cannot; ``names`` are the `prompt_names` of the cases.
    """

    def __init__(
        self,
        cases: Sequence[Case] = (),
        pairs: Collection[CasePair] = (),
        unwinnable: Collection[CasePair] = (),
        names: Sequence[tuple[str, ...]] = (),
    ) -> None:
        self.num_cases, self.num_pairs = len(cases), len(pairs) + len(unwinnable)
        self._without_language = [case.prompt.id for case in cases if not case.prompt.language]
        self._languages = Counter(case.prompt.language for case in cases if case.prompt.language)
        self._prompts = [_digest(case, names_of) for case, names_of in zip(cases, names, strict=True)]
        better = dict.fromkeys(pair[:2] for pair in pairs)
        ordered: dict[int, list[IndexedPair]] = defaultdict(list)
        for pair in (*pairs, *unwinnable):
            ordered[pair.case].append(IndexedPair(pair.better, pair.worse))
        self._named = {
            "unwinnable_pairs": [cases[pair.case].prompt.id for pair in unwinnable],
            "hollow_answers": [
                cases[case].prompt.id for case, place in better if is_blank(response_text(cases[case].responses[place]))
            ],
            "unread_ties": [
                case.prompt.id
                for number, case in enumerate(cases)
                if case.judgments
                for _ in ties_of(case, ordered.get(number, ()))
            ],
            "pictures": [
                case.prompt.id
                for case in cases
                if any(map(has_picture, ({"prompt": prompt_text(case)}, case.meta, case.prompt.meta or {})))
            ],
        }

    @property
    def num_ties(self) -> int:
        """The number of pairs that were judged equal."""
        return len(self._named["unread_ties"])

    def join(self, other: "InputChecks") -> None:
        """Add the counts of another batch."""
        self.num_cases += other.num_cases
        self.num_pairs += other.num_pairs
        self._without_language += other._without_language
        self._languages += other._languages
        self._prompts += other._prompts
        for check, names in other._named.items():
            self._named[check] += names

    def findings(
        self,
        unwinnable: Literal["left out", "counted", "used"],
        *,
        needs_language: bool = False,
        reads_ties: bool = False,
    ) -> tuple[InputFinding, ...]:
        """Return a finding for each property that occurs; ``unwinnable`` is what became of the unwinnable pairs.

        Prompts without a language are a finding where others have one, or where a rule ``needs_language``; pairs that
        were judged equal are one unless the caller ``reads_ties``.
        """
        suffix = "" if unwinnable == "left out" else f"_{unwinnable}"
        numbers = {
            f"unwinnable_pairs{suffix}": (self._named["unwinnable_pairs"], self.num_pairs),
            "hollow_answers": (self._named["hollow_answers"], self.num_pairs),
            "unread_ties": ([] if reads_ties else self._named["unread_ties"], self.num_pairs + self.num_ties),
            "pictures": (self._named["pictures"], self.num_cases),
            "no_language": (self._without_language if needs_language or self._languages else [], self.num_cases),
        }
        findings = [_finding(check, len(names), total, names) for check, (names, total) in numbers.items()]
        prompts = [digest for digest in self._prompts if digest]
        findings.append(_finding("repeated_prompts", len(prompts) - len(set(prompts)), len(prompts)))
        common = common_spellings(self._languages, language_key)
        others = [name for name in self._languages if common[name] != name]
        spellings = [spelling for name in others for spelling in (common[name], name)]
        num_others = sum(self._languages[name] for name in others)
        findings.append(_finding("language_spellings", num_others, self.num_cases, spellings))
        return tuple(finding for finding in findings if finding.count)


def check_cases(
    cases: Iterable[Case],
    pairs: Callable[[Case], Iterable[IndexedPair]],
    *,
    needs_language: bool = False,
    reads_ties: bool = False,
) -> tuple[InputFinding, ...]:
    """Check the cases of a verb that uses all their ``pairs``."""
    checks = InputChecks()
    for batch in batched(cases, _CASES_A_BATCH):
        every = [CasePair(number, *pair[:2]) for number, case in enumerate(batch) for pair in pairs(case)]
        is_unwinnable = are_unwinnable(batch, every)
        winnable, unwinnable = list(compress(every, ~is_unwinnable)), list(compress(every, is_unwinnable))
        checks.join(InputChecks(batch, winnable, unwinnable, list(map(prompt_names, batch))))
    return checks.findings("used", needs_language=needs_language, reads_ties=reads_ties)


def judged_pairs(case: Case) -> Iterator[IndexedPair]:
    """Yield the better and the worse response of each two that a judgment orders, once."""
    position = {response.id: index for index, response in enumerate(case.responses)}
    ends: dict[IndexedPair, None] = {}
    for judgment in case.judgments:
        left, right = position[judgment.left], position[judgment.right]
        if judgment.verdict in ("left", "right"):
            ends[IndexedPair(left, right) if judgment.verdict == "left" else IndexedPair(right, left)] = None
    yield from ends


def below_chance(accuracy: Estimate, num_reversed: int, *, model: str) -> tuple[InputFinding, ...]:
    """Return a finding if far more pairs are in the opposite order than in the right one: lower may be better."""
    if accuracy.value is None or not is_far_below(accuracy.value, accuracy.high, num_reversed / accuracy.n):
        return ()
    return (InputFinding(check="below_chance", count=num_reversed, total=accuracy.n, details={"model": model}),)


def is_far_below(accuracy: float, high: float | None, reversed_share: float) -> bool:
    """Return whether an accuracy with the upper bound ``high`` is far below chance."""
    return high is not None and high < _CHANCE and reversed_share > _FAR * accuracy


def _finding(check: str, count: int, total: int, names: Sequence[str] = ()) -> InputFinding:
    return InputFinding(check=check, count=count, total=total, examples=tuple(dict.fromkeys(names))[:_MOST_EXAMPLES])


def _digest(case: Case, names: Sequence[str]) -> bytes:
    """Return a digest of the prompt's text in its language; empty for a prompt without text."""
    key = f"{language_key(case.prompt.language or '')}{names[-1]}"
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest() if len(names) > 1 else b""
