"""Checks of the input before a number: pairs, ties, repeated prompts, pictures, languages, and reversed scores."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import starmap
from typing import Literal

import numpy as np

from steelyard.core.iteration import batched
from steelyard.core.languages import language_key
from steelyard.core.numerics import Booleans, Integers
from steelyard.core.text import common_spellings, is_blank, is_same_text, opening, prompt_text, response_text
from steelyard.core.types import Case, InputFinding
from steelyard.curation.conversion import has_picture
from steelyard.ranking.pairs import IndexedPair, ties_of
from steelyard.statistics.groups import prompt_names
from steelyard.statistics.intervals import Estimate

_MOST_EXAMPLES = 3
_CASES_A_BATCH = 1024
_CHANCE = 0.5
_FAR = 1.5
_NO_PAIRS: Integers = np.empty((3, 0), np.int64)


def pair_table(pairs: Iterable[Iterable[IndexedPair]]) -> Integers:
    """Return the pairs of each of several cases: the case, and the better and the worse response; shape (3, pair)."""
    rows = [(case, *pair[:2]) for case, of_case in enumerate(pairs) for pair in of_case]
    return np.array(rows, np.int64).reshape(-1, 3).T


def are_unwinnable(cases: Sequence[Case], pairs: Integers) -> Booleans:
    """Return whether no model can win each pair of a `pair_table`, as its texts are equal or both empty; (pair,)."""
    texts = [list(map(response_text, case.responses)) for case in cases]
    openings = [list(map(opening, of_case)) for of_case in texts]

    def is_unwinnable(case: int, better: int, worse: int) -> bool:
        begins = openings[case][better], openings[case][worse]
        return (begins[0] == begins[1] or "" in begins) and is_same_text(texts[case][better], texts[case][worse])

    return np.fromiter(starmap(is_unwinnable, pairs.T.tolist()), np.bool_, pairs.shape[1])


class InputChecks:
    """Counts of the properties of cases that a reader of numbers on them should know; the counts of batches add up.

    ``pairs`` can be won, ``unwinnable`` ones cannot, both as a `pair_table`; ``names`` are the `prompt_names` of
    the cases.
    """

    def __init__(
        self,
        cases: Sequence[Case] = (),
        pairs: Integers = _NO_PAIRS,
        unwinnable: Integers = _NO_PAIRS,
        names: Sequence[tuple[str, ...]] = (),
    ) -> None:
        self.num_cases, self.num_pairs = len(cases), pairs.shape[1] + unwinnable.shape[1]
        self._without_language = [case.prompt.id for case in cases if not case.prompt.language]
        self._languages = Counter(case.prompt.language for case in cases if case.prompt.language)
        self._prompts = [_digest(case, names_of) for case, names_of in zip(cases, names, strict=True)]
        # Judgments that nothing was made of yet have no pairs, so that their ties are no share of the pairs.
        ordered: dict[int, list[IndexedPair]] = {
            number: []
            for number, case in enumerate(cases)
            if case.judgments and (case.ranking is not None or case.pairs is not None)
        }
        if ordered:
            for case, better, worse in np.concatenate([pairs, unwinnable], axis=1).T.tolist():
                if case in ordered:
                    ordered[case].append(IndexedPair(better, worse))
        self._named = {
            "unwinnable_pairs": [cases[case].prompt.id for case in unwinnable[0].tolist()],
            "hollow_answers": [
                cases[case].prompt.id
                for case, better in dict.fromkeys(zip(*pairs[:2].tolist(), strict=True))
                if is_blank(response_text(cases[case].responses[better]))
            ],
            "unread_ties": [
                cases[case].prompt.id for case, of_case in ordered.items() for _ in ties_of(cases[case], of_case)
            ],
            "pictures": [
                case.prompt.id
                for case in cases
                if any(map(has_picture, filter(None, ({"prompt": prompt_text(case)}, case.meta, case.prompt.meta))))
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
        every = pair_table(map(pairs, batch))
        is_unwinnable = are_unwinnable(batch, every)
        names = list(map(prompt_names, batch))
        checks.join(InputChecks(batch, every[:, ~is_unwinnable], every[:, is_unwinnable], names))
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
