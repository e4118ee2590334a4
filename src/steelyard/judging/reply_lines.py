"""The lines of a reply without markup: Markdown, tags, table cells, boxes of formulas, and statements of certainty.

Every function takes time linear in the length of the text for any content: a reply may be written to stall the run.
"""

import re
from functools import cache

from steelyard.core.language_words import any_of, language_words

_DECORATION = re.compile(r"[*_`#~]+")
_TAG = re.compile(r"</?(?P<name>[^\W\d]\w{0,30}(?:[ :-]\w{1,20}){0,3}) ?/?>|<\|[a-z_]{1,20}\|>")
_QUOTING = re.compile(
    r"(?:^|[_ :-])(?:(?:[a-z]|\d+)$|quot|block|cite|citation|example|input|prompt|user|assistant|response|question"
    r"|think|thought|reason|analysis|source|script)",
    re.IGNORECASE,
)
"""Names of tags that hold the words of others or thoughts, or those of one answer: "quote", "answer_a"."""
_FORMATTING = frozenset(("b", "i", "p", "u", "em", "h1", "h2", "h3", "h4", "h5", "h6"))
_BOX = re.compile(
    r"(?:\$|\\[(\[]){0,2}\\boxed\{\s?(?:\\(?:text|math)(?:bf|rm|it|sf|tt)?\{([^{}\n]{1,40})\}|([^{}\n]{1,40}))\s?\}"
    r"(?:\$|\\[)\]]){0,2}"
)
_RULE = frozenset(" \t|:-")
"""The signs of the line below the head of a table."""
_SIGNS_AROUND = " \t$\u2192\u21d2\u2705\u2714\ufe0f\u2b50\U0001f449"
"""Signs around a verdict: those of a formula, arrows, check marks."""
_NUMBER = r"\d{1,3}(?:[.,]\d{1,4})?"


def plain_lines(text: str) -> list[str]:
    """Return the lines without markup, without empty ones and those that only state a certainty."""
    return [plain for line in text.splitlines() if (plain := plain_line(line))]


def plain_line(line: str) -> str:
    """Return a line without markup and certainty; a table's row of two cells as "first: second".

    The text is empty for a line that holds nothing else.
    """
    plain = _BOX.sub(lambda box: box[1] or box[2], _TAG.sub(_without_tag, line))
    plain = _DECORATION.sub("", plain).strip(_SIGNS_AROUND).strip()
    if plain.startswith("|") and plain.endswith("|"):
        plain = "" if _RULE.issuperset(plain) else _row(plain)
    return _without_certainty(plain)


def _without_tag(match: re.Match[str]) -> str:
    name = match["name"]
    is_kept = name is not None and name not in _FORMATTING and _QUOTING.search(name) is not None
    return match[0] if is_kept else ""


def _row(line: str) -> str:
    """Return a row of one or two cells as text; any other row as it is."""
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    if len(cells) > 2:
        return line
    return f"{cells[0].rstrip(':')}: {cells[1]}" if len(cells) == 2 and all(cells) else "".join(cells)


def _without_certainty(line: str) -> str:
    """Return a line without the certainty that it states in numbers: "B (80%)" is "B", "Confidence: 0.8" is nothing."""
    if not any(map(str.isdecimal, line[-12:])) and len(line) > 120:
        return line
    alone, behind = _certainty()
    if alone.fullmatch(line):
        return ""
    match = behind.search(line, max(0, len(line) - 80))
    # Several shares are those of the answers: "A - 60%, B - 40%".
    return line if match is None or "%" in line[: match.start()] else line[: match.start()].rstrip()


@cache
def _certainty() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the pattern of a line that only states a certainty, and that of a certainty at the end of a line."""
    words = any_of({word for each in language_words().values() for word in each.confidence})
    share = rf"{_NUMBER}\s?(?:%|/\s?\d+)"
    stated = rf"(?:{words}\s?[:=\u2013\u2014-]?\s?{_NUMBER}\s?(?:%|/\s?\d+)?|{share}\s?{words})"
    alone = rf"[(\[]?{stated}[)\]]?[.。]?"
    behind = (
        rf"(?:\s?[,;،、(\[\u2013\u2014-]\s?(?:{stated}|{_NUMBER}\s?%)|\s(?:\w{{1,5}}\s)?{share}\s(?:\w{{1,5}}\s)?{words})"
        r"[)\]]?[.。]?\Z"
    )
    return re.compile(alone, re.IGNORECASE), re.compile(behind, re.IGNORECASE)
