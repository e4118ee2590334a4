"""The built-in corpus: prompts with good answers and hand-written substitutions, phrases, and their choice."""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

from steelyard.core.errors import ConfigError, RecordError
from steelyard.core.numerics import generator
from steelyard.core.types import Message, Record


class CorpusEntry(Record, frozen=True, kw_only=True):
    """One prompt with its good answer. Each of ``facts`` is a right fragment of the answer and a wrong substitute."""

    id: str
    language: str
    category: tuple[str, ...]
    messages: tuple[Message, ...]
    answer: str
    facts: tuple[tuple[str, str], ...]


class Phrases(Record, frozen=True, kw_only=True):
    """A language's empty sentences, and the text between two; ``{topic}`` is the beginning of the question."""

    joint: str
    refusals: tuple[str, ...]
    hedges: tuple[str, ...]
    fillers: tuple[str, ...]
    repeats: tuple[str, ...]


def check_entry(entry: CorpusEntry) -> CorpusEntry:
    """Return the entry if every kind of worse answer can be made of it. Raises RecordError with the reason if not."""
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


def _refuse(entry: CorpusEntry, problem: str) -> None:
    raise RecordError(f"corpus entry {entry.id!r} {problem}", allowed="see annotation/corpus.py")


def choose_entries(
    entries: Sequence[CorpusEntry], languages: Collection[str], number: int | None, *, seed: int
) -> tuple[CorpusEntry, ...]:
    """Choose entries in the languages: all, or a number drawn evenly from categories and languages.

    Raises ConfigError for fewer than 4 entries, or more than there are.
    """
    candidates = [entry for entry in entries if entry.language in languages]
    if number is None:
        return tuple(candidates)
    if not 4 <= number <= len(candidates):
        raise ConfigError(
            f"num_prompts is {number}",
            where="simulate",
            allowed=f"4 to {len(candidates)}, or none given: all in {', '.join(languages)}",
        )
    taken: Counter[tuple[str, str]] = Counter()
    ranked: list[tuple[int, int, int]] = []
    for order, place in enumerate(generator(seed, "choice").permutation(len(candidates)).tolist()):
        stratum = (candidates[place].category[0], candidates[place].language)
        ranked.append((taken[stratum], order, place))
        taken[stratum] += 1
    return tuple(candidates[place] for _, _, place in sorted(ranked)[:number])
