"""Evidence of a bench about negations: what most translations of a sentence do with it.

A source negates by an idiom, or says by a verb what other languages negate: "non vedevo l'ora" is "I looked forward to
it" in all of them. Where most translations of a sentence negate it and the source does not, or the reverse, the
difference is the source's, and no translation is accused of it. Texts of several sentences are left out: their
translations agree or differ in other sentences than the one in question. So are English sources: their words are known
best, and a translator that loses a negation in all languages has to be found.
"""

from collections import Counter

from steelyard.core.language_words import fold
from steelyard.core.languages import language_part
from steelyard.core.text import prompt_text, response_text
from steelyard.core.types import Case
from steelyard.translation.damage_kinds import DamageFinding
from steelyard.translation.negation import negations
from steelyard.translation.passages import PROMPT, source_passages

_FEWEST, _MOST = 4, 0.75
"""Translations that say something about a source, and the share of them above which the difference is its own."""


class SharedNegations:
    """The texts of a bench's sources that most translations negate otherwise than the source.

    `add` takes all pairs of the bench; `is_of_source` then answers about their findings.
    """

    def __init__(self) -> None:
        self._sources: dict[str, tuple[bool | None, ...]] = {}
        self._total = Counter[tuple[str, str]]()
        self._different = Counter[tuple[str, str]]()

    def add(self, source: Case, target: Case) -> None:
        """Take a source and one of its translations, whose responses have the same order."""
        prompt = source.prompt.id
        if language_part(source.prompt.language) == "en":
            return
        if prompt not in self._sources:
            read = zip(source_passages(source), _are_negated(source), strict=True)
            self._sources[prompt] = tuple(is_negated if len(each.sentences) == 1 else None for each, is_negated in read)
        if all(each is None for each in self._sources[prompt]):
            return
        places = (PROMPT, *(f"response {each.id}" for each in source.responses))
        for place, before, after in zip(places, self._sources[prompt], _are_negated(target), strict=False):
            if before is not None and after is not None:
                self._total[prompt, place] += 1
                self._different[prompt, place] += before is not after

    def is_of_source(self, prompt: str, finding: DamageFinding) -> bool:
        """Return whether a finding of negation is in a text that most translations negate otherwise than the source."""
        number, different = self._total[prompt, finding.place], self._different[prompt, finding.place]
        return finding.kind == "negation" and number >= _FEWEST and different > _MOST * number


def _are_negated(case: Case) -> tuple[bool | None, ...]:
    """Return whether each text has a word that proves a negation, or a property such as "non-empty".

    Null in a language without a table of words.
    """
    words = negations(language_part(case.prompt.language))
    texts = (prompt_text(case), *map(response_text, case.responses))
    if words is None:
        return (None,) * len(texts)
    matches = (words.roles.finditer(f" {fold(each)} ") for each in texts)
    return tuple(any(match.lastgroup in {"proof", "prefixed"} for match in each) for each in matches)
