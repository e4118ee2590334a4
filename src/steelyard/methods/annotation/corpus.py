"""The built-in corpus as values: prompts with a good answer, hand-written substitutions, and phrases."""

from itertools import pairwise

from steelyard.core.errors import RecordError
from steelyard.core.types import Message, Record


class Entry(Record, frozen=True, kw_only=True):
    """One prompt with its good answer; each of ``facts`` is a right fragment of the answer and a wrong one for it."""

    id: str
    language: str
    category: tuple[str, ...]
    messages: tuple[Message, ...]
    answer: str
    facts: tuple[tuple[str, str], ...]


class Phrases(Record, frozen=True, kw_only=True):
    """A language's empty sentences, and what stands between two; ``{topic}`` is the beginning of the question."""

    joint: str
    refusals: tuple[str, ...]
    hedges: tuple[str, ...]
    fillers: tuple[str, ...]
    repeats: tuple[str, ...]


def check_entry(entry: Entry) -> Entry:
    """The entry itself, if every kind of worse answer can be made of it. Raises RecordError saying why not."""
    if not entry.category:
        _refuse(entry, "has no category")
    if not entry.messages or entry.messages[-1].role != "user":
        _refuse(entry, "does not end with a turn of the user")
    if not entry.facts:
        _refuse(entry, "has no facts to substitute")
    for right, wrong in entry.facts:
        if entry.answer.count(right) != 1 or right == wrong or not wrong:
            _refuse(entry, f"has a fact {right!r} that is not exactly once in the answer, or a wrong one like it")
    places = sorted((entry.answer.index(right), len(right)) for right, _ in entry.facts)
    if any(start + length > later for (start, length), (later, _) in pairwise(places)):
        _refuse(entry, "has facts that overlap")
    return entry


def _refuse(entry: Entry, found: str) -> None:
    raise RecordError(f"corpus entry {entry.id!r} {found}", allowed="see methods/annotation/corpus.py")
