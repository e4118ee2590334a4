"""Checks of cases before a number: unwinnable pairs, hollow answers, repeated prompts, pictures, and languages."""

from collections import Counter
from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Literal, NamedTuple

import numpy as np

from steelyard.core.languages import language_key
from steelyard.core.numerics import Booleans
from steelyard.core.text import common_spellings, is_blank, is_same_text, prompt_text, response_text
from steelyard.core.types import Case, InputFinding
from steelyard.curation.conversion import has_picture

_MOST_EXAMPLES = 3


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
        self._named = {
            "unwinnable_pairs": [cases[pair.case].prompt.id for pair in unwinnable],
            "hollow_answers": [
                cases[case].prompt.id for case, place in better if is_blank(response_text(cases[case].responses[place]))
            ],
            "pictures": [case.prompt.id for case in cases if _has_picture(case)],
        }

    def join(self, other: "InputChecks") -> None:
        """Add the counts of another batch."""
        self.num_cases += other.num_cases
        self.num_pairs += other.num_pairs
        self._without_language += other._without_language
        self._languages += other._languages
        self._prompts += other._prompts
        for check, names in other._named.items():
            self._named[check] += names

    def findings(self, unwinnable: Literal["left out", "counted"]) -> tuple[InputFinding, ...]:
        """Return a finding for each property that occurs; ``unwinnable`` is what became of the unwinnable pairs.

        Prompts without a language are a finding where others have one.
        """
        suffix = "" if unwinnable == "left out" else f"_{unwinnable}"
        numbers = {
            f"unwinnable_pairs{suffix}": (self._named["unwinnable_pairs"], self.num_pairs),
            "hollow_answers": (self._named["hollow_answers"], self.num_pairs),
            "pictures": (self._named["pictures"], self.num_cases),
            "no_language": (self._without_language if self._languages else [], self.num_cases),
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


def _finding(check: str, count: int, total: int, names: Sequence[str] = ()) -> InputFinding:
    return InputFinding(check=check, count=count, total=total, examples=tuple(dict.fromkeys(names))[:_MOST_EXAMPLES])


def _digest(case: Case, names: Sequence[str]) -> bytes:
    """Return a digest of the prompt's text in its language; empty for a prompt without text."""
    key = f"{language_key(case.prompt.language or '')}{names[-1]}"
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest() if len(names) > 1 else b""


def _has_picture(case: Case) -> bool:
    texts = {"prompt": prompt_text(case)}
    return any(map(has_picture, (texts, case.meta, case.prompt.meta or {})))
