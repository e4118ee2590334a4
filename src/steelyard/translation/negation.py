"""Check of negation: a word of negation that the translation lost or added, in the clear cases only.

Languages negate by other means than words of negation: by prefixes, verbs such as "lack", or not at all. A negation is
lost where the source has a word of negation and the translation has none, nor an idiom with one; it is added where the
translation has one, and the source neither has one nor a word such as "without" or "refuse". Sentences are compared one
by one, aligned by their lengths where their numbers differ. Languages without a table of words are not checked.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from steelyard.core.language_words import any_of, fold, language_words, whole_words
from steelyard.translation.bench_lengths import Bead, TranslationLengths, align_sentences
from steelyard.translation.damage_kinds import DamageFinding, finding
from steelyard.translation.language_tables import WITHOUT_SPACES, damage_table
from steelyard.translation.passages import PassagePair


class Negations(NamedTuple):
    """The negations of a language: words that prove one, phrases with them that negate nothing, and near words."""

    words: re.Pattern[str]
    idioms: re.Pattern[str] | None
    near: re.Pattern[str]
    """All words of negation, and words such as "without" or "refuse"."""
    only: re.Pattern[str] | None
    """Words for "only", which an idiom such as "not only" turns into their reverse."""


@cache
def negations(language: str) -> Negations | None:
    """Return the patterns of a language's negations, over folded text; null where no table has them."""
    table, verdicts = damage_table(), language_words().get(language)
    strict, near, idioms, only = (
        _phrases(each.get(language, "")) for each in (table.negation, table.negative, table.idioms, table.only)
    )
    if verdicts is None and not strict:
        return None
    bounded = any_of if language in WITHOUT_SPACES else whole_words
    if verdicts is not None:
        words = [prefix + word for prefix in ("", *verdicts.prefixes) for word in verdicts.negation]
        strict, near, idioms = strict or words, near + words, idioms + list(verdicts.idioms)
    patterns = (
        re.compile(bounded(set(map(fold, each)))) if each else None for each in (strict, idioms, near + strict, only)
    )
    proof, phrases, close, alone = patterns
    assert proof is not None
    assert close is not None
    return Negations(proof, phrases, close, alone)


def _phrases(entry: str) -> list[str]:
    return [phrase.replace("_", " ") for phrase in entry.split()]


class _Sentence(NamedTuple):
    text: str
    strict: bool
    near: bool
    """Whether there is any word of negation: also in an idiom, or one such as "without"."""
    only: bool
    not_only: bool


def check_negation(pair: PassagePair, usual: TranslationLengths) -> Iterator[DamageFinding]:
    """Find the first sentence whose negation is lost or added."""
    source_words, target_words = negations(pair.source.code), negations(pair.target.code)
    if source_words is None or target_words is None or pair.source.code == pair.target.code:
        return
    source, target = pair.source.sentences, pair.target.sentences
    if len(source) != len(target):
        if not source or not target:
            return
        beads = align_sentences(pair, usual) if max(len(source), len(target)) > 2 else ()
        beads = [bead for bead in beads if bead.source and bead.target] or [
            Bead(range(len(source)), range(len(target)))
        ]
        source = tuple(" ".join(source[place] for place in bead.source) for bead in beads)
        target = tuple(" ".join(target[place] for place in bead.target) for bead in beads)
    for before, after in zip(_read(source, source_words), _read(target, target_words), strict=True):
        if (
            (before.strict and not after.near)
            or (after.strict and not before.near and not _is_question(after.text))
            or (before.only and not before.near and after.not_only)
        ):
            yield finding("negation", pair, before.text, after.text)
            return


def _is_question(text: str) -> bool:
    """Return whether a sentence asks: words of negation are particles of questions in Vietnamese, Thai and Chinese."""
    return text.rstrip(" \"'”’»」)").endswith(("?", "\uff1f", "\u061f", ";"))


def _read(sentences: Sequence[str], words: Negations) -> Iterator[_Sentence]:
    for sentence in sentences:
        text = f" {fold(sentence)} "
        strict = words.words.search(text) is not None
        not_only = False
        if strict and words.idioms is not None:
            strict = words.words.search(words.idioms.sub(" ", text)) is not None
            not_only = words.only is not None and any(
                words.only.search(f" {match[0].strip()} ") for match in words.idioms.finditer(text)
            )
        only = words.only is not None and words.only.search(text) is not None
        yield _Sentence(sentence, strict, strict or words.near.search(text) is not None, only, not_only)
