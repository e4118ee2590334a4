"""The words with which judges announce, negate and report verdicts: ``data/verdict_words.toml`` as patterns.

Patterns take time linear in the length of the text for any content: a reply may be written to stall the run.
"""

import re
from functools import cache

from steelyard.core.language_words import SIGNS, any_of, fold, language_words, whole_words


@cache
def matching(field: str) -> re.Pattern[str]:
    """Return a pattern of the words of a field in all languages: whole words, or parts of the text."""
    whole, inside = set[str](), set[str]()
    for words in language_words().values():
        for word in getattr(words, field):
            # A word that begins with a sign holds its bounds.
            (inside if words.inside or word.startswith(",") else whole).add(fold(word))
    alternatives = [whole_words(whole)] * bool(whole) + [any_of(inside)] * bool(inside)
    return re.compile("|".join(alternatives), re.IGNORECASE)


@cache
def announcement() -> re.Pattern[str]:
    """Return the pattern of an announcement. Its repetition is possessive: its time is linear."""
    words = {fold(word) for each in language_words().values() if not each.inside for word in each.announces}
    inside = {fold(word) for each in language_words().values() if each.inside for word in each.announces}
    elided = {word for word in words if word.endswith("'")}
    return re.compile(
        rf"(?:{any_of(words - elided)}(?![{SIGNS}])|{any_of(elided)}|{any_of(inside)}"
        r"|\[the (?:begin|end) of [a-z ]{1,40}\]|[\s:,*_#\-–—()\[\]`\"'，、：；。،؛.…])*+"
    )


@cache
def words_by_language() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the languages in which each word is a negation, and those in which it is an ordinary word."""
    negations, common = dict[str, set[str]](), dict[str, set[str]]()
    for language, words in language_words().items():
        if words.inside:
            continue
        prefixed = {fold(prefix + word) for prefix in ("", *words.prefixes) for word in words.negation}
        for word in prefixed | {fold(word) for word in words.worse}:
            negations.setdefault(word, set()).add(language)
        for word in words.common:
            common.setdefault(fold(word), set()).add(language)
    return negations, common


@cache
def negation_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of single words with endings, of phrases, and of parts of the text."""
    each = [(words, fold(word)) for words in language_words().values() for word in (*words.negation, *words.worse)]
    inside = {word for words, word in each if words.inside}
    endings = {word for words, word in each if not words.inside and "*" in word and " " not in word}
    phrases = {word for words, word in each if not words.inside and " " in word}
    return (
        re.compile(any_of(endings)),
        re.compile(whole_words(phrases)),
        re.compile(any_of(inside)),
    )


@cache
def break_pattern() -> re.Pattern[str]:
    """Return the pattern of a clause that begins with a conjunction and goes on."""
    return re.compile(rf"(?:{matching('breaks').pattern})\s*(?=\S)", re.IGNORECASE)


@cache
def reporting() -> tuple[re.Pattern[str], list[tuple[re.Pattern[str], re.Pattern[str]]]]:
    """Return the pattern of verbs that are enough alone, and for other languages those of speakers and verbs."""
    alone, inside, pairs = set[str](), set[str](), list[tuple[re.Pattern[str], re.Pattern[str]]]()
    by_source = list[str]()
    for words in language_words().values():
        verbs, quotes = set(map(fold, words.reports)), set(map(fold, (*words.quotes, *words.declines)))
        bounded = any_of if words.inside else whole_words
        if words.speakers:
            pairs.append((re.compile(bounded(map(fold, words.speakers))), re.compile(bounded(verbs))))
        (inside if words.inside else alone).update(quotes if words.speakers else quotes | verbs)
        if words.according:
            source, noun = bounded(map(fold, words.according)), any_of(map(fold, words.answer))
            by_source.append(rf"{source}\s?(?:[{SIGNS}]{{1,4}}\s)?{noun}|{noun}\s?[^\s,]{{1,8}}?\s?{source}")
    return re.compile("|".join([whole_words(alone), any_of(inside), *by_source])), pairs


@cache
def answer_nouns() -> str:
    """Return the pattern of a noun for an answer, in any language."""
    return any_of({noun for words in language_words().values() for noun in words.answer})


@cache
def score_points() -> str:
    """Return the pattern of a word after a number of points."""
    return any_of({word for words in language_words().values() for word in words.points})


@cache
def score_noun() -> re.Pattern[str]:
    """Return the pattern of a noun for a score."""
    return re.compile(any_of({word.casefold() for words in language_words().values() for word in words.score}))


@cache
def score_lead() -> re.Pattern[str]:
    """Return the pattern of the words before a rating: nouns for a score and words that announce it."""
    return re.compile(rf"(?:{score_noun().pattern}|{announcement().pattern})+")
