"""Labels that are sentences on two answers, in the languages of judges' verdicts: "回答二更好", "A est meilleure"."""

import re
from functools import cache

from steelyard.core.types import Verdict
from steelyard.curation.verdict_labels import choice_of, named_side
from steelyard.judging.verdict_lines import is_tie, label_of_line

_LONGEST = 60
"""The longest label that is read as a sentence: a longer cell is a reason."""


@cache
def verdict_of_label(label: str, names: tuple[str, ...]) -> Verdict | None:
    """Return the verdict of a label on two answers of these names; null for a number, and for any other text.

    A label is a word or a name, or a sentence in which a name stands for its answer.
    """
    text = label.strip()
    if (verdict := choice_of(label, names)) or len(names) != 2 or len(text) > _LONGEST or text.isdecimal():
        return verdict
    for name, letter in sorted(zip(names, "AB", strict=True), key=lambda pair: -len(pair[0])):
        if not re.fullmatch("[A-Za-z]?", name.strip()):
            whole = rf"(?<![A-Za-z0-9]){re.escape(name.strip())}(?![A-Za-z0-9])"
            text = re.sub(whole, f"\0{letter}", text, flags=re.IGNORECASE)
    if "\0" in text:
        letter = label_of_line(text.replace("\0", ""))
        return "left" if letter == "A" else "right" if letter == "B" else None
    letter = label_of_line(text)
    if letter in ("A", "B"):
        return named_side(letter, names) or ("left" if letter == "A" else "right")
    return "tie" if is_tie(text) else None
