"""Lines that are nothing but a verdict or a rating: "B", "I choose answer B", "B is better than A", "score: 7/10".

The sentences are those of ``data/verdict_words.toml``, by language. None of them can hold a negation.
"""

import re
from functools import cache
from itertools import count

from steelyard.judging.reply_words import announces
from steelyard.judging.verdict_words import announcement, any_of, language_words

_LONGEST_LINE = 200
"""A line that is nothing but a verdict is short; a limit keeps nested repetitions of its pattern cheap."""
_MOST_LEADS = 2
_NAME = r"[\[(\"'“「『«]*\s*(?P<{}>[A-Z])(?![A-Za-z])\s*[\])\"'”」』»]*"
_ANY_LETTER = re.compile(r"(?<![A-Za-z])[A-Z](?![A-Za-z])", re.IGNORECASE)
_LEAD = re.compile(r"[:,、،]\s*")
_STOP = r"\s*[.。!！।]?"


def label_of_line(line: str) -> str | None:
    """Return the label that a line names as the verdict, in any of several languages; null for any other line."""
    words = " ".join(line.split())
    if len(words) > _LONGEST_LINE or _ANY_LETTER.search(words) is None:
        return None
    return _label(words, leads=_MOST_LEADS)


def is_title(line: str) -> bool:
    """Return whether a line is the title of a part, such as "### Answer B" or "Answer B:"."""
    words = " ".join(line.split())
    return len(words) <= _LONGEST_LINE and _title().fullmatch(words) is not None


def rating_of_line(line: str) -> str | None:
    """Return the number of a line that is nothing but a rating; null for any other line."""
    words = " ".join(line.split())
    match = _rating().fullmatch(words) if len(words) <= _LONGEST_LINE else None
    if match is None:
        return None
    lead = match["lead"].casefold()
    names_score = _score().search(lead) is not None
    return match["number"] if not lead.strip(" [*") or (names_score and _score_lead().fullmatch(lead)) else None


def _label(words: str, *, leads: int) -> str | None:
    for pattern in _verdicts():
        match = pattern.fullmatch(words)
        if match is not None:
            names = match.groupdict()
            others = {name.upper() for key, name in names.items() if key != "label" and name}
            return None if names["label"].upper() in others else names["label"]
    lead = _LEAD.search(words)
    if lead is None or not leads or not announces(words[: lead.start()]):
        return None
    return _label(words[lead.end() :], leads=leads - 1)


@cache
def _verdicts() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of verdicts: an answer alone, then the sentences of each language."""
    patterns = [rf"(?:{_answers()}\s?)?{_NAME.format('label')}"]
    for words in language_words().values():
        answer = rf"(?:{any_of(words.answer)}\s?)?"
        for template in words.verdicts:
            number = count()
            text = template.replace("{answer}", answer).replace("{x}", _NAME.format("label"))
            patterns.append(re.sub(r"\{y\}", lambda match, number=number: _NAME.format(f"other{next(number)}"), text))
    return tuple(re.compile(pattern + _STOP, re.IGNORECASE) for pattern in patterns)


@cache
def _title() -> re.Pattern[str]:
    return re.compile(rf"{_answers()}\s*[A-Z]\s*[:.]?", re.IGNORECASE)


def _answers() -> str:
    return any_of({noun for words in language_words().values() for noun in words.answer})


@cache
def _rating() -> re.Pattern[str]:
    points = any_of({word for words in language_words().values() for word in words.points})
    return re.compile(rf"(?P<lead>\D*?)\[*\s*(?P<number>\d+)\s*\]*\s*(?:/\s*10|{points})?{_STOP}", re.IGNORECASE)


@cache
def _score() -> re.Pattern[str]:
    return re.compile(any_of({word.casefold() for words in language_words().values() for word in words.score}))


@cache
def _score_lead() -> re.Pattern[str]:
    """Return the pattern of the words before a rating: nouns for a score and words that announce it."""
    return re.compile(rf"(?:{_score().pattern}|{announcement().pattern})+")
