"""Figures of answers that were cut off: by the server, inside a block or brackets, or inside a sentence.

Each function returns a number that grows with the fault, and 0 (or null) where there is none, in time that is linear in
the length of the text. A missing final mark alone proves little: headlines, titles, names, items of lists, signatures
and many short answers of people have none. It counts where the text before it is written in sentences with marks, or
where the last word cannot end a sentence.
"""

import re
from collections.abc import Callable
from unicodedata import category

import numpy as np

from steelyard.core.languages import language_part
from steelyard.core.scripts import SCRIPTS
from steelyard.responses.subject import Subject

IsOpenEnd = Callable[[str, str | None], bool]
"""Returns whether the last words of a text in a language need more after them (`AnswerPhrases.is_open_end`)."""

LIST_ITEM = re.compile(r"^\s*(?:[-*+•·]|\(?[\da-zA-Z]{1,3}[.)、]|[（(]?[一二三四五六七八九十]{1,3}[）)、.])\s*")
STOPPED = {"length", "max_tokens", "max_length", "model_length", "max_output_tokens", "token_limit"}
_FENCE_LINE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_BRACKETS = {
    "(": ")",
    "[": "]",
    "{": "}",
    "（": "）",
    "【": "】",
    "「": "」",
    "『": "』",
    "《": "》",
    "“": "”",
    "«": "»",
}
_CLOSING = {close: opening for opening, close in _BRACKETS.items()}
_ANY_BRACKET = re.compile(f"[{re.escape(''.join((*_BRACKETS, *_CLOSING)))}]")
_FINAL = r".!?。！？…؟۔।॥։።។။"
_AFTER_FINAL = r"\"'”’」』）)】\]》»*_~`"
_SENTENCE_END = re.compile(rf"[{_FINAL}][{_AFTER_FINAL}]*(?=\s|$|[^\x00-\x7f])")
_ENDS_WITH_MARK = re.compile(rf"[{_FINAL}][{_AFTER_FINAL}]*$")
_ANNOUNCES = re.compile(r"[,:，、：،]$")
_OPENS = re.compile(r"[-–—/&+(\[{（【「『《“«„@\\]$")
_ADDRESS = re.compile(r"(?:://|www\.|@)\S*$|\w\.(?:com|org|net|edu|gov|info|cn|de|fr|io|jp|ru|uk|html?|pdf|py)$", re.I)
_NO_SENTENCE = re.compile(
    r"^\s*(?:#|\||>|https?://|[-=*_]{3,}$)"  # heading, table, quotation, address, rule
    r"|^\s*[\w.]+\([^()]*(?:\([^()]*\)[^()]*)*\)\s*(?:(?:#|//).*)?$|^(?:    |\t)\S|[=:]\s*\S*\d\S*$"  # code, a value
)
_WITHOUT_FINAL_MARKS = {"th", "lo"}
_SCRIPTS_WITHOUT = [SCRIPTS.index("Thai"), SCRIPTS.index("Lao")]
_ANNOUNCED = 20.0
_LONGEST_END = 400
_SHORTEST_OWN_LINE = 15
"""Letters of a last line without any mark, below which it may be a title, a name or a signature."""


def stopped_at_limit(subject: Subject) -> float:
    """Return 1 if the server stopped the answer at a number of tokens, by ``meta``.

    ``finish_reason`` is that of the server; ``samples`` are those of `sample`, and all of them have to end so.
    """
    meta = subject.response.meta or {}
    samples = meta.get("samples")
    ends = [each.get("end") for each in samples if isinstance(each, dict)] if isinstance(samples, list) else []
    reasons = ends or [meta.get("finish_reason")]
    return float(all(str(reason).lower() in STOPPED for reason in reasons))


def open_blocks(subject: Subject) -> float:
    """Count blocks of code and formulas that are opened and never closed."""
    text = subject.text
    number = len(_FENCE_LINE.findall(text)) % 2
    without_code = subject.without_code
    number += without_code.count("$$") % 2
    number += max(0, len(re.findall(r"\\\[", without_code)) - len(re.findall(r"\\\]", without_code)))
    number += max(0, without_code.count("\\begin{") - without_code.count("\\end{"))
    return float(number)


def open_brackets(subject: Subject) -> float:
    """Count brackets and quotation marks that the last paragraph of the prose opens and does not close."""
    paragraphs = [part for part in subject.prose.split("\n") if part.strip()]
    if not paragraphs or subject.text.rstrip().endswith(("```", "~~~")):
        return 0.0
    stack: list[str] = []
    for bracket in _ANY_BRACKET.findall(paragraphs[-1]):
        if bracket in _BRACKETS:
            stack.append(bracket)
        elif stack and stack[-1] == _CLOSING[bracket]:
            stack.pop()
    return float(len(stack))


def letters_after_last_mark(subject: Subject, is_open_end: IsOpenEnd) -> float | None:
    """Return how many letters follow the last final mark of the last line, a Han character as three.

    Null where the end says nothing: languages without final marks, code, tables, headings, and texts that are not
    written in sentences with marks. A comma or colon at the end, or a word that needs another one after it, adds 20
    and always counts.
    """
    text = subject.text.rstrip()
    if not text or text.endswith(("```", "~~~", "$$", "\\]")):
        return 0.0
    line = text.rpartition("\n")[2][-_LONGEST_END:]
    if _has_no_final_marks(subject) or _NO_SENTENCE.search(line):
        return None
    if subject.task in ("code", "math") and not _reads_as_prose(line):
        return None
    if is_finished(text):
        return 0.0
    ends = [match.end() for match in _SENTENCE_END.finditer(line)]
    num_letters = size_of(line[ends[-1] if ends else 0 :])
    if _ANNOUNCES.search(text) or is_open_end(line, subject.language):
        return num_letters + _ANNOUNCED
    return num_letters if _has_marks_before(text, line, len(ends), num_letters) else None


def is_finished(text: str) -> bool:
    """Return whether a text ends with neither a letter nor a mark that opens or announces more.

    Digits, emoji, closing quotation marks and signs end a text as well as a final mark does; so does an address.
    """
    last = text[-1]
    if _ADDRESS.search(text[-200:]):
        return True
    if category(last)[0] in "LM" and last != "\ufe0f":
        return False
    return _ANNOUNCES.search(last) is None and _OPENS.search(last) is None


def size_of(text: str) -> float:
    """Return the number of letters, a Han character as three."""
    return float(sum(3 if "\u3400" <= character <= "\u9fff" else character.isalpha() for character in text))


def _has_no_final_marks(subject: Subject) -> bool:
    if language_part(subject.language) in _WITHOUT_FINAL_MARKS:
        return True
    # An unlabelled text in such a script, or one in a language of another script, ends without a mark as well.
    return bool(np.isin(subject.codes[-_LONGEST_END:], _SCRIPTS_WITHOUT).any())


def _reads_as_prose(line: str) -> bool:
    letters = sum(character.isalpha() or character == " " for character in line)
    return letters > 0.85 * len(line) and " " in line.strip()


def _has_marks_before(text: str, line: str, num_ends: int, num_letters: float) -> bool:
    """Return whether what precedes the unfinished sentence is written in sentences that end with marks.

    Lines before the last one decide, list items for a list item; a text of one line needs a finished sentence.
    """
    before = [each for each in text.split("\n")[:-1] if each.strip()]
    if not before:
        return num_ends >= 1
    if LIST_ITEM.match(line):
        items = [each for each in before if LIST_ITEM.match(each)]
        return len(items) >= 2 and _mostly_end_with_marks(items)
    if not num_ends and num_letters < _SHORTEST_OWN_LINE:
        return False
    sentences = [each for each in before if not LIST_ITEM.match(each) and not _is_heading(each)]
    return _mostly_end_with_marks(sentences) if sentences else num_ends >= 1


def _mostly_end_with_marks(lines: list[str]) -> bool:
    return 2 * sum(_ENDS_WITH_MARK.search(line.rstrip()) is not None for line in lines) >= len(lines)


def _is_heading(line: str) -> bool:
    return _ANNOUNCES.search(line.rstrip()) is not None or _NO_SENTENCE.search(line) is not None
