"""Figures of the cleaning rules by their definition, without anything that spares work: what the fast ones must equal.

Hashes are summed character by character, every pattern is searched in every text, and brackets are counted one by one.
"""

import re
import tomllib
from functools import cached_property
from importlib.resources import files

import msgspec
import numpy as np

from steelyard.prompts.languages import prose as prose_to_identify
from steelyard.responses import faults, unfinished
from steelyard.responses.phrases import AnswerPhrases, CleaningTable
from steelyard.responses.subject import _FORMULA, LETTER_WEIGHTS, Subject

TABLE = msgspec.convert(
    tomllib.loads(files("steelyard").joinpath("data/cleaning.toml").read_text(encoding="utf-8")), CleaningTable
)
UNREAD = re.compile(
    r"`[^`\n]{1,300}`"
    r"|(?:https?://|www\.)[^\s<>，。；）】」]+|[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,63}"
    r"|</?[A-Za-z][^<>\n]{0,200}>"
    r"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|『[^』\n]{1,200}』|«[^»\n]{1,200}»|《[^》\n]{1,100}》|„[^“”\n]{1,200}[“”]"
    r"|(?<!\w)\"[^\"\n]{1,200}\"(?!\w)"
)
LEFTOVER_CODES = re.compile(r"\\u[0-9a-fA-F]{4}|&#\d{2,6};|&(?:nbsp|quot|amp|lt|gt);|<0x[0-9A-F]{2}>|[Ġ▁]\w|Ċ")
CODE_BLOCK = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL)
ADDRESS = re.compile(r"https?://\S+|www\.\S+|\S+@\S+\.\w+")
PAIRS = dict(zip("([{（【「『《“«", ")]}）】」』》”»", strict=True))


class PlainPhrases(AnswerPhrases):
    """Every name is tried at every place, and every answer is searched for refusals."""

    @cached_property
    def _name(self):
        words = sorted(TABLE.names.words, key=len, reverse=True)
        return re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(words)})(?![A-Za-z_]|\d)")

    def refusals(self, subject):
        code = re.split("[-_]", subject.language or "")[0].lower()
        groups = [TABLE.refusals[name] for name in dict.fromkeys((code, "en"))] if code in TABLE.refusals else None
        patterns = "|".join(f"(?:{each})" for group in groups or TABLE.refusals.values() for each in group)
        beginning = subject.text[:320].translate(str.maketrans({"’": "'", "ʼ": "'", "＇": "'", "‘": "'"}))
        return float(sum(match.start() <= 160 for match in re.finditer(patterns, beginning, re.IGNORECASE)))


class PlainSubject(Subject):
    """A response whose prose is searched for addresses of e-mail whether it has a mark of them or not."""

    @cached_property
    def prose(self):
        text = self.without_code
        if "$" in text or "\\" in text:
            text = _FORMULA.sub("@", text)
        return UNREAD.sub("@", text)


def plain_hashes(text, size):
    """Return the polynomial of every run of characters, modulo 2^64, as Python integers."""
    values = [ord(character) * 0x9E3779B97F4A7C15 % 2**64 for character in text]
    values = [value ^ (value >> 29) for value in values]
    hashes = []
    for start in range(len(text) - size + 1):
        total = 0
        for value in values[start : start + size]:
            total = (total * 0xBF58476D1CE4E5B9 + value) % 2**64
        hashes.append(total)
    return hashes


def plain_windows(text, size):
    return [text[start : start + size] for start in range(len(text) - size + 1)]


def is_dense(subject):
    codes = subject.codes
    return LETTER_WEIGHTS[codes].sum() > 1.5 * max(1, np.count_nonzero(codes))


def repeated(subject):
    size = 10 if is_dense(subject) else 30
    if len(subject.text) < 3 * size:
        return None
    windows = plain_windows(subject.text, size)
    return 1 - len(set(windows)) / len(windows)


def echoed(subject):
    prompt, text = subject.prompt.strip(), subject.text.strip()
    size = 6 if is_dense(subject) else 16
    if subject.size < 20 or len(prompt) <= size or len(text) <= size:
        return 0.0
    letters = sum(3 if "\u3400" <= character <= "\u9fff" else character.isalpha() for character in prompt)
    if letters >= 20 and text.startswith(prompt):
        return 1.0
    copied, windows = set(plain_windows(prompt, size)), plain_windows(subject.text, size)
    return sum(window in copied for window in windows) / len(windows)


def brackets(subject):
    paragraphs = [part for part in subject.prose.split("\n") if part.strip()]
    if not paragraphs or subject.text.rstrip().endswith(("```", "~~~")):
        return 0.0
    stack = []
    for character in paragraphs[-1]:
        if character in PAIRS:
            stack.append(character)
        elif stack and PAIRS[stack[-1]] == character:
            stack.pop()
    return float(len(stack))


def broken(subject):
    text = subject.text
    if not text:
        return 0.0
    number = int(faults._is_broken()[subject.points].sum()) + 3 * len(list(faults._MOJIBAKE.finditer(text)))
    leftovers = len(LEFTOVER_CODES.findall(subject.prose))
    return 1000 * (number + (leftovers if leftovers > 1 else 0)) / len(text)


def to_identify(text):
    rest = ADDRESS.sub(" ", CODE_BLOCK.sub(" ", text))
    return rest if any(map(str.isalpha, rest)) else text


FAST, PLAIN = AnswerPhrases(TABLE), PlainPhrases(TABLE)


def figures(response, *, prompt, language):
    """Return the figures of one response by the fast path and by the plain one, to compare."""
    fast, plain = (kind(response, prompt=prompt, language=language, task="text") for kind in (Subject, PlainSubject))
    repeats = repeated(plain)
    return (
        {
            "prose": fast.prose,
            "repeated": None if repeats is None else faults.repeated_windows(fast),
            "echoed": faults.echoed_share(fast),
            "brackets": unfinished.open_brackets(fast),
            "broken": faults.broken_characters(fast),
            "refusals": FAST.refusals(fast),
            "names": FAST.own_names(fast.text),
            "to identify": prose_to_identify(fast.text),
        },
        {
            "prose": plain.prose,
            "repeated": repeats,
            "echoed": echoed(plain),
            "brackets": brackets(plain),
            "broken": broken(plain),
            "refusals": PLAIN.refusals(plain),
            "names": PLAIN.own_names(plain.text),
            "to identify": to_identify(plain.text),
        },
    )
