"""Lines that are a verdict or a rating, with reasons at most: "B", "The second answer is better, because …", "7/10".

The sentences are those of ``data/verdict_words.toml``, by language. None of them can hold a negation. Reasons stand
behind a verdict or before it, and none of them may report the verdict or end in another one.
"""

import re
from collections.abc import Callable
from functools import cache
from itertools import count, islice

from steelyard.core.language_words import SIGNS, any_of, fold, language_words, whole_words
from steelyard.judging.reply_words import (
    VERDICT,
    announces,
    last_sentence,
    negates,
    negates_verdict,
    reports_verdict,
    without_quotations,
)
from steelyard.judging.verdict_words import answer_nouns, matching, score_lead, score_noun, score_points

_LONGEST_LINE = 200
"""A line that is nothing but a verdict is short; a limit keeps nested repetitions of its pattern cheap."""
_LONGEST_WHOLE = 1000
"""The longest line that is read at once: reading costs up to 0.1 ms a character. A longer one is read if an end says
something, and a very long one at its ends only: its end counts, where the beginning says nothing else."""
_LONGEST_READ = 4000
_END_OF_LINE = 480
_CUT = "\ue005"
"""The sign for what is left out before the end of a line (private use)."""
_MOST_LEADS = 2
_WHOLE = re.compile(r"(?<=\d)[.,]0{1,2}(?!\d)")
"""The decimals of a whole number: "8,0" is 8."""
_MOST_PARTS = 6
_NAME = r"[\[(\"'“「『«]*\s*(?P<{}>[A-Z])(?![A-Za-z])\s*[\])\"'”」』»]*"
_ANY_LETTER = re.compile(r"(?<![A-Za-z])[A-Z](?![A-Za-z])", re.IGNORECASE)
_CHOICE = re.compile(r"(?<![A-Za-z])[A-D](?![A-Za-z])")
_QUOTED_LETTER = re.compile(r"[\"“「『«]\s*([A-Z])\s*[\"”」』»]")
_OTHER_LETTER = "(?<![A-Za-z])(?!{})[A-D](?![A-Za-z])"
_LEAD = re.compile(r"[:,、،]\s*|\s[=\u2013\u2014-]{1,2}\s")
_STOP = r"\s*[.。!！।]?"
# Thai has no sign for the end of a sentence, but a space.
_SENTENCE_END = re.compile(r"[.!?。！？।](?:\s+|(?<=[。！？।]))|(?<=[\u0e00-\u0e7f])\s+(?=[\u0e00-\u0e7f])")
_AFTER_REASON = re.compile(rf"{_SENTENCE_END.pattern}|[;؛]\s?")
"""The end of a sentence of reasons. What stands before a semicolon may be a question, in Greek, but not a reason."""
_END = re.compile("[.!?。！？।؟]")
_SIGNS = " ,.;:!(-\u2013\u2014、。،؛।"


def label_of_line(line: str) -> str | None:
    """Return the label that a line names as the verdict, in any of several languages; null for any other line."""
    words = " ".join(line.split())
    if len(words) > _LONGEST_WHOLE:
        start, end = _values_at_ends(words, label_of_line)
        if len(words) > _LONGEST_READ or (start is None and end is None):
            return end if start in (None, end) else None
    words = with_letters(words)
    plain = " ".join(matching("degrees").sub(" ", words).split())
    texts = [words, plain, with_letters(plain, is_noun_needed=False)]
    # Two hedges may weigh two answers against each other: "perhaps A, perhaps B".
    letters = {*_CHOICE.findall(with_letters(words, is_noun_needed=False))}
    if len(letters) < 2 or len(_hedges().findall(words)) < 2:
        hedged = _hedges().sub(lambda match: match["undecided"] or " ", fold(plain, is_cased=True))
        hedged = " ".join(hedged.split()).strip(" ,、،")
        texts += [hedged, with_letters(hedged, is_noun_needed=False)]
    for text in dict.fromkeys(texts):
        if label := _value(text, _label, is_title):
            return label
    return None


def is_title(line: str) -> bool:
    """Return whether a line is the title of a part, such as "### Answer B" or "Answer B:"."""
    words = " ".join(line.split())
    return len(words) <= _LONGEST_LINE and _title().fullmatch(with_letters(words)) is not None


def is_tie(line: str) -> bool:
    """Return whether a line only says that the answers are equal, behind words that announce it or a reason.

    The reason is any text before the last sentence that names no answer and reports nothing.
    """
    words = " ".join(line.split())
    end = max((match.end() for match in _AFTER_REASON.finditer(words) if match.end() < len(words)), default=0)
    texts = [words] if len(words) <= _LONGEST_LINE else []
    if (
        0 < end <= _LONGEST_WHOLE
        and _ANY_LETTER.search(head := with_letters(words[:end], is_noun_needed=False)) is None
    ):
        texts += [] if negates(head) or reports_verdict(f"{last_sentence(head[:-1])}, {VERDICT}") else [words[end:]]
    for text in texts:
        lead = _LEAD.search(text)
        rest = text[lead.end() :] if lead is not None and announces(text[: lead.start()]) else ""
        if any(_ties().fullmatch(fold(each).strip(_SIGNS + "()[]\"'。.!")) for each in (text, rest)):
            return True
    return False


def rating_of_line(line: str) -> str | None:
    """Return the number of a line that is nothing but a rating and its reasons; null for any other line."""
    words = _WHOLE.sub("", " ".join(line.split()))
    if len(words) > _LONGEST_WHOLE:
        start, end = _values_at_ends(words, rating_of_line)
        if len(words) > _LONGEST_READ or (start is None and end is None):
            return end if start in (None, end) else None
    return _value(words, _rating, str.isdecimal)


def with_letters(text: str, *, is_noun_needed: bool = True) -> str:
    """Return the text with the letter of an answer for its place: "the second answer" is "answer B"."""
    if _place_word().search(text.replace("İ", "i").casefold()) is None:
        return text
    nouned, alone = _places()
    text = nouned.sub(lambda match: f"{match[match.lastindex or 0]} {'AABB'[(match.lastindex or 0) % 4 - 1]}", text)
    return text if is_noun_needed else alone.sub(lambda match: "AB"[(match.lastindex or 0) - 1], text)


def _values_at_ends(text: str, read: Callable[[str], str | None]) -> tuple[str | None, str | None]:
    """Return what the beginning and the end of a long text say, each alone."""
    plain = without_quotations(_QUOTED_LETTER.sub(r"\1", text))
    # Behind the sign only what stands after a reason is read: the end has no beginning.
    return read(plain[:_END_OF_LINE]), read(f"{_CUT} {plain[-_END_OF_LINE:]}")


def _value(text: str, read: Callable[[str], str | None], is_bare: Callable[[str], bool]) -> str | None:
    """Return what the text or its first or last part says, where the other parts are reasons for it.

    A sentence that is bare, a label or a number alone, is none of these parts unless a word such as "because" follows:
    it may be the title or the number of a part.
    """
    whole = read(text)
    if whole is not None:
        return whole
    text = without_quotations(_QUOTED_LETTER.sub(r"\1", text))
    values = {_before_reasons(text, read, is_bare), _after_reasons(text, read, is_bare)} - {None}
    return (values.pop() or None) if len(values) == 1 else None


def _before_reasons(text: str, read: Callable[[str], str | None], is_bare: Callable[[str], bool]) -> str | None:
    """Return what a text says before the reasons for it, or before a concession; null for nothing.

    The empty text stands for a value that is taken back or reported.
    """
    because = {
        match.start()
        for name in ("because", "although")
        for match in islice(matching(name).finditer(text), _MOST_PARTS)
    }
    ends = islice(_SENTENCE_END.finditer(text), _MOST_PARTS)
    sentences = {match.start() for match in ends if match[0][0] not in "?？"}
    for place in sorted(because | sentences):
        head = text[:place].strip(_SIGNS)
        value = read(head)
        if value is None or (place not in because and is_bare(head)):
            continue
        return "" if _is_taken_back(text[place:].strip(_SIGNS), value, read, is_reason=place in because) else value
    return None


def _after_reasons(text: str, read: Callable[[str], str | None], is_bare: Callable[[str], bool]) -> str | None:
    """Return what a text says after the reasons for it; as `_before_reasons` does."""
    sentences = {match.end() for match in _AFTER_REASON.finditer(text)}
    breaks, because = [*matching("breaks").finditer(text)], {*map(re.Match.end, matching("because").finditer(text))}
    clauses = {match.end() for match in (*breaks, *matching("ends").finditer(text))} - because
    clauses |= {match.start() for match in breaks if match.end() in clauses}
    if matching("breaks").match(text) or matching("because").match(text):
        clauses |= {match.end() for match in re.finditer("[,、،]", text)}
    for place in sorted(sentences | clauses, reverse=True)[:_MOST_PARTS]:
        rest = text[place:].strip(_SIGNS)
        value = read(rest)
        if value is None or (place in sentences and is_bare(rest)):
            continue
        sentence = f"{last_sentence(text[:place])} {VERDICT}"
        is_denied = negates_verdict(sentence, value if value.isalpha() else None)
        is_named = text[:place].rstrip(" ").endswith(":") and _ANY_LETTER.search(sentence) is not None
        return "" if is_denied or is_named or reports_verdict(sentence) else value
    return None


def _is_taken_back(rest: str, value: str, read: Callable[[str], str | None], *, is_reason: bool) -> bool:
    """Return whether what follows a value asks, denies or reports it, has another one, or turns to another answer."""
    if matching("undecided").search(fold(rest)) is not None:
        return True
    rest = with_letters(rest, is_noun_needed=False)
    concessions = [*islice(matching("although").finditer(rest), _MOST_PARTS)]
    conceded = (matching("because").split(rest[each.end() :], 1)[0].strip(_SIGNS) for each in concessions)
    if any(read(each) not in (None, value) for each in conceded):
        return True
    if concessions and not concessions[0].start():
        rest = rest[concessions[0].end() :].strip(_SIGNS)
    first, *others = [part.strip(_SIGNS) for part in _SENTENCE_END.split(rest)]
    end = _END.search(rest)
    if (end is not None and end[0] in "?？؟") or any(read(part) not in (None, value) for part in (first, *others)):
        return True
    # A reason may deny, and may report what an answer says; a clause behind it reports the verdict.
    clauses = re.split("[,;]", first) if is_reason else ["", first]
    sentence = f"{VERDICT}, {clauses[-1]}" if len(clauses) > 1 else VERDICT
    label = value if value.isalpha() else None
    if reports_verdict(sentence) or (not is_reason and negates_verdict(sentence, label)):
        return True
    excused = (matching("because"), matching("although"))
    turns = (each for each in matching("breaks").finditer(rest) if not any(words.match(each[0]) for words in excused))
    turn = next(turns, None) if label else None
    return turn is not None and re.search(_OTHER_LETTER.format(label), rest[turn.end() :]) is not None


def _label(words: str, *, leads: int = _MOST_LEADS) -> str | None:
    if len(words) > _LONGEST_LINE or _ANY_LETTER.search(words) is None:
        return None
    patterns, any_verdict = _verdicts()
    for pattern in patterns if any_verdict.fullmatch(words) else ():
        match = pattern.fullmatch(words)
        if match is not None:
            names = match.groupdict()
            others = {name.upper() for key, name in names.items() if key != "label" and name}
            label = names["label"].upper()
            return None if label in others else label
    lead = _LEAD.search(words)
    if lead is None or not leads or not announces(words[: lead.start()]):
        return None
    if reports_verdict(words[: lead.end()] + VERDICT) or _CHOICE.fullmatch(words[: lead.start()].strip()):
        return None
    return _label(words[lead.end() :], leads=leads - 1)


def _rating(words: str) -> str | None:
    if len(words) > _LONGEST_LINE:
        return None
    for pattern in _ratings():
        if (match := pattern.fullmatch(words)) is not None:
            return match["number"]
    match = _scores().fullmatch(words)
    if match is None:
        return None
    lead = match["lead"].casefold()
    names_score = score_noun().search(lead) is not None
    return match["number"] if not lead.strip(" [*") or (names_score and score_lead().fullmatch(lead)) else None


@cache
def _verdicts() -> tuple[tuple[re.Pattern[str], ...], re.Pattern[str]]:
    """Return the patterns of verdicts, an answer alone, then the sentences of each language; and one of all of them."""
    label, other = (rf"(?:{answer_nouns()}\s?)?{_NAME.format(name)}" for name in ("label", "other"))
    patterns = [label, rf"{label}\s*>\s*{other}"]
    for words in language_words().values():
        answer = rf"(?:{any_of(words.answer)}\s?)?"
        for template in words.verdicts:
            number = count()
            text = template.replace("{answer}", answer).replace("{x}", _NAME.format("label"))
            patterns.append(re.sub(r"\{y\}", lambda match, number=number: _NAME.format(f"other{next(number)}"), text))
    whole = re.sub(r"\(\?P<\w+>", "(?:", "|".join(patterns))
    return (
        tuple(re.compile(pattern + _STOP, re.IGNORECASE) for pattern in patterns),
        re.compile(f"(?:{whole}){_STOP}", re.IGNORECASE),
    )


@cache
def _hedges() -> re.Pattern[str]:
    """Return the pattern of a hedge with its commas; a word of indecision that holds one is a group of its own."""
    undecided, hedges = matching("undecided").pattern, matching("hedges").pattern
    return re.compile(rf"(?P<undecided>{undecided})|(?:[,、،]\s?)?(?:{hedges})[,、،]?", re.IGNORECASE)


@cache
def _ties() -> re.Pattern[str]:
    texts = [
        any_of([fold(text)]).replace(re.escape("{answer}"), any_of(map(fold, words.answer)))
        for words in language_words().values()
        for text in words.ties
    ]
    return re.compile("|".join(texts))


@cache
def _title() -> re.Pattern[str]:
    return re.compile(rf"{answer_nouns()}\s*[A-Z]\s*[:.]?", re.IGNORECASE)


@cache
def _place_word() -> re.Pattern[str]:
    """Return the pattern of a word or number for a place, in small letters: without one, a text names no place."""
    whole, inside = set[str](), set[str]()
    for words in language_words().values():
        (inside if words.inside else whole).update(place.casefold() for place in (*words.first, *words.second))
    return re.compile(f"{whole_words(whole)}|{any_of(inside)}|[12]")


@cache
def _places() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of an answer's place with a noun, two groups for each letter of a language, and without."""
    nouned, alone = list[str](), dict[str, list[str]]({"first": [], "second": []})
    for words in language_words().values():
        if not words.first:
            continue
        noun = f"({any_of(words.answer)})"
        for number, (name, places) in enumerate({"first": words.first, "second": words.second}.items(), start=1):
            place = any_of(places)
            pattern = rf"{place}\s?{noun}|{noun}\s?(?:{place}|{number}(?!\d))"
            nouned.append(pattern if words.inside else rf"(?<![{SIGNS}])(?:{pattern})(?![{SIGNS}])")
            alone[name].append(place if words.inside else whole_words(places))
    pairs = [f"({'|'.join(patterns)})" for patterns in alone.values()]
    return re.compile("|".join(nouned), re.IGNORECASE), re.compile("|".join(pairs), re.IGNORECASE)


@cache
def _ratings() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of sentences that give a rating, of each language."""
    points = rf"(?:\s*/\s*10|\s*{score_points()})"
    number = r"\[*\s*(?P<number>\d+)\s*\]*"
    patterns = list[re.Pattern[str]]()
    for words in language_words().values():
        for template in words.ratings:
            text = template.replace("{answer}", rf"(?:{any_of(words.answer)}\s?)?")
            text = text.replace("{n}", rf"{number}{points}?").replace("{p}", number + points)
            patterns.append(re.compile(text + _STOP, re.IGNORECASE))
    return tuple(patterns)


@cache
def _scores() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<lead>\D*?)\[*\s*(?P<number>\d+)\s*\]*\s*(?:/\s*10|{score_points()})?{_STOP}", re.IGNORECASE
    )
