"""The entries of the built-in corpus, and worse answers made of them by code, which together make ranked cases.

Each kind of worse answer degrades a good answer by a severity from 0 to 1. It is a pure function of the material, the
severity and a random generator. Lengths are chosen so that over all kinds the longer of two answers is the better one
about as often as not.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from steelyard.core.checks import UniqueIds, content_id
from steelyard.core.errors import ConfigError, RecordError
from steelyard.core.numerics import generator
from steelyard.core.types import Case, Message, Meta, Prompt, Record, Response

GOOD = "good_answer"
GOOD_QUALITY = 1.0
SOURCE = "built-in corpus"
_SIMULATED: Meta = {"simulated": True}

# A word, a run of white space, or one character; characters of scripts without spaces between words stand alone.
_UNIT = re.compile(r"[^\W\u2e80-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff]+|\s+|.", re.DOTALL)
_SENTENCE = re.compile(r".+?(?:[。！？]+[”’」』）]*\s*|[.!?]+[\"')]*\s+|\n+|$)", re.DOTALL)
_LIST_NUMBER = re.compile(r"\s*\d+\.\s+")
_ITEM_START = re.compile(r"^(\s*)\d+\. ", re.MULTILINE)
_WORDLESS_END = re.compile(r"[\W_]+$")
_WINDOW = 12
"""The words, or characters where words are not spaced, that are shuffled among each other."""
# The end of a clause: Chinese marks anywhere, Latin ones before a space or at the end ("42.195" has none).
_CLAUSE_END = re.compile(r"[，。？！；：]|[.?!;:](?=\s|$)|\n")
_INNER_QUOTES = str.maketrans({"“": "‘", "”": "’", '"': "'"})
_FEWEST_TOPIC_UNITS, _LONGEST_TOPIC = 4, 60


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
    # Sorted by how many of their stratum come before: each round takes one entry of every stratum that has one left.
    for order, place in enumerate(generator(seed, "choice").permutation(len(candidates)).tolist()):
        stratum = (candidates[place].category[0], candidates[place].language)
        ranked.append((taken[stratum], order, place))
        taken[stratum] += 1
    return tuple(candidates[place] for _, _, place in sorted(ranked)[:number])


class Material(NamedTuple):
    """The material of a worse answer: the entry, the phrases of its language, and entries that lend their answers.

    ``others`` are in the entry's language and of another first-tier category; ``foreign`` in another language.
    """

    entry: CorpusEntry
    phrases: Phrases
    others: tuple[CorpusEntry, ...]
    foreign: tuple[CorpusEntry, ...]


def wrong_fact(material: Material, severity: float, rng: np.random.Generator) -> str:
    """Apply some or all of the hand-written substitutions: fluent, on topic, and false."""
    entry = material.entry
    count = 1 + math.floor(severity * (len(entry.facts) - 1) + 0.5)
    text = entry.answer
    for index in rng.choice(len(entry.facts), count, replace=False):
        text = text.replace(*entry.facts[index])
    return text


def incomplete(material: Material, severity: float, rng: np.random.Generator) -> str:
    """Leave out whole sentences and list items, first those that hold the facts: true but incomplete.

    One at severity 0, up to half of them at 1. Code blocks stay whole: a program without a line has another fault.
    """
    answer = material.entry.answer
    sentences = sentences_of(answer)
    prose = [
        place
        for place, text in enumerate(sentences)
        if text.strip() and "```" not in text and "".join(sentences[:place]).count("```") % 2 == 0
    ]
    with_facts = [place for place in prose if any(right in sentences[place] for right, _ in material.entry.facts)]
    order = [*rng.permutation(with_facts), *rng.permutation([place for place in prose if place not in with_facts])]
    dropped = set(order[: min(max(1, round(severity * len(prose) / 2)), len(prose) - 1)])
    if not dropped:
        return truncated(material, severity, rng)
    text = ""
    for place, sentence in enumerate(sentences):
        if place not in dropped:
            text += sentence
        elif not text.endswith("\n"):
            text += sentence[len(sentence.rstrip()) :]
    numbers = itertools.count(1)
    return _ITEM_START.sub(lambda match: f"{match[1]}{next(numbers)}. ", text.strip())


def off_topic(material: Material, severity: float, rng: np.random.Generator) -> str:
    """Return the good answer to a prompt of another category. The severity has no effect."""
    del severity
    return material.others[rng.integers(len(material.others))].answer


def truncated(material: Material, severity: float, rng: np.random.Generator) -> str:
    """Keep the first 80 to 35 % of the characters, broken off inside a sentence."""
    answer = material.entry.answer
    share = 0.8 - 0.45 * severity
    start = answer[: max(1, round(len(answer) * share) + int(rng.integers(-3, 4)))]
    return _WORDLESS_END.sub("", start) or answer[:1]


def garbled(material: Material, severity: float, rng: np.random.Generator) -> str:
    """Shuffle words, or characters where words are not spaced, in 40 to 100 % of the windows of twelve.

    In each such window one unit is repeated, or sometimes dropped, so that the length gives no cue.
    """
    units = _UNIT.findall(material.entry.answer)
    text: list[str] = []
    share = 0.4 + 0.6 * severity
    for start in range(0, len(units), _WINDOW):
        window = units[start : start + _WINDOW]
        if start == 0 or rng.random() < share:
            words = [unit for unit in window if not unit.isspace()]
            rng.shuffle(words)
            words = words + words[:1] if rng.random() < 0.6 else words[1:] or words
            # The window's white space is distributed between the words.
            spaces = [unit for unit in window if unit.isspace()]
            per_word = len(spaces) / max(1, len(words))
            placed: list[str] = []
            for index, word in enumerate(words):
                due = round(per_word * (index + 1)) - round(per_word * index)
                placed.append(word)
                placed += [spaces.pop(0) for _ in range(min(due, len(spaces)))]
            text += placed
        else:
            text += window
    return "".join(text)


def evasive(material: Material, severity: float, rng: np.random.Generator) -> str:
    """Return sentences without a definite statement, after a refusal from a severity of one half on; of any length."""
    phrases, answer = material.phrases, material.entry.answer
    target = len(answer) * rng.uniform(0.5, 1.9)
    sentences = [phrases.refusals[rng.integers(len(phrases.refusals))]] if severity >= 0.5 else []
    for index in rng.permutation(len(phrases.hedges)):
        if sentences and sum(map(len, sentences)) >= target:
            break
        sentences.append(phrases.hedges[index])
    return phrases.joint.join(sentences).replace("{topic}", _topic(material.entry))


def padded_out(material: Material, severity: float, rng: np.random.Generator) -> str:
    """Insert empty sentences and repetitions into the good answer: 25 to 85 % longer."""
    phrases, answer = material.phrases, material.entry.answer
    sentences = _SENTENCE.findall(answer)
    places = [place for place in range(1, len(sentences) + 1) if "".join(sentences[:place]).count("```") % 2 == 0]
    fillers = [phrases.fillers[index] for index in rng.permutation(len(phrases.fillers))]
    added: list[tuple[int, str]] = []
    while sum(len(extra) for _, extra in added) < len(answer) * (0.25 + 0.6 * severity):
        place = places[rng.integers(len(places))]
        repeated = phrases.repeats[rng.integers(len(phrases.repeats))] + sentences[place - 1].strip()
        added.append((place, fillers.pop() if fillers and rng.random() < 0.6 else repeated))
    for place, extra in sorted(added, key=lambda addition: -addition[0]):
        sentences.insert(place, phrases.joint + extra + phrases.joint)
    return "".join(sentences).rstrip()


def code_switched(material: Material, severity: float, rng: np.random.Generator) -> str:
    """Replace one to three fifths of the sentences by sentences of an answer in another language."""
    sentences = _SENTENCE.findall(material.entry.answer)
    donor = material.foreign[rng.integers(len(material.foreign))]
    lent = [sentence.strip() for sentence in _SENTENCE.findall(donor.answer) if sentence.strip()]
    count = max(1, round(len(sentences) * (0.2 + 0.4 * severity)))
    for place in rng.choice(len(sentences), min(count, len(sentences)), replace=False):
        white = sentences[place][len(sentences[place].rstrip()) :]
        sentences[place] = lent[rng.integers(len(lent))] + white
    return "".join(sentences)


class Degradation(NamedTuple):
    """A kind of worse answer: the function that makes it, and its latent quality at severity 0 and at severity 1."""

    make: Callable[[Material, float, np.random.Generator], str]
    best: float
    worst: float

    def quality(self, severity: float) -> float:
        """Return the latent quality at a severity: a good answer has 1, a useless one about 0."""
        return self.best * (1 - severity) + self.worst * severity


DEGRADATIONS: Mapping[str, Degradation] = {
    "padded_out": Degradation(padded_out, 0.80, 0.60),
    "incomplete": Degradation(incomplete, 0.75, 0.45),
    "wrong_fact": Degradation(wrong_fact, 0.70, 0.40),
    "truncated": Degradation(truncated, 0.65, 0.30),
    "code_switched": Degradation(code_switched, 0.60, 0.35),
    "evasive": Degradation(evasive, 0.40, 0.25),
    "garbled": Degradation(garbled, 0.30, 0.05),
    "off_topic": Degradation(off_topic, 0.20, 0.20),
}


class DrawnDegradation(NamedTuple):
    """A kind of worse answer, and its severity from 0 to 1."""

    kind: str
    severity: float

    @property
    def quality(self) -> float:
        """The latent quality of an answer with this degradation."""
        return DEGRADATIONS[self.kind].quality(self.severity)


class Draft(NamedTuple):
    """One response: its text, how it was made (`GOOD` or a kind of `DEGRADATIONS`), and its latent quality."""

    text: str
    made_by: str
    quality: float


def draw_degradations(kinds: Sequence[str], number: int, rng: np.random.Generator) -> tuple[DrawnDegradation, ...]:
    """Draw degradations of different kinds, equally likely, with uniform severity. Raises ConfigError for few kinds."""
    if len(kinds) < number:
        raise ConfigError(f"{len(kinds)} kinds for {number} worse answers of different kinds", where="num_worse")
    severities = rng.random(len(kinds))
    chosen = rng.choice(len(kinds), number, replace=False)
    return tuple(DrawnDegradation(kinds[int(index)], float(severities[index])) for index in chosen)


def write_drafts(material: Material, degradations: Sequence[DrawnDegradation], *, seed: int) -> tuple[Draft, ...]:
    """Return the good answer, then one with each degradation. Texts depend on entry, degradation and seed alone."""
    drafts = [Draft(material.entry.answer, GOOD, GOOD_QUALITY)]
    for drawn in degradations:
        # A generator for each text: the other degradations of the entry do not change it.
        rng = generator(seed, "worse", material.entry.id, drawn.kind)
        text = DEGRADATIONS[drawn.kind].make(material, drawn.severity, rng)
        drafts.append(Draft(text, drawn.kind, drawn.quality))
    return tuple(drafts)


def gold_case(entry: CorpusEntry, drafts: Sequence[Draft], *, seed: int) -> Case:
    """Return the prompt with its responses, shuffled, and the true ranking by latent quality: equal ones share a tier.

    Only ``meta`` records how a response was made: its id is a hash of its text, and its place is random.
    """
    order = generator(seed, "order", entry.id).permutation(len(drafts))
    shuffled = [drafts[index] for index in order]
    ids = UniqueIds().take_all(content_id(draft.text) for draft in shuffled)
    levels = sorted({draft.quality for draft in shuffled}, reverse=True)
    return Case(
        prompt=prompt_of(entry),
        responses=tuple(
            Response(id=name, text=draft.text, meta={"made_by": draft.made_by, "quality": round(draft.quality, 4)})
            for name, draft in zip(ids, shuffled, strict=True)
        ),
        ranking=tuple(
            tuple(name for name, draft in zip(ids, shuffled, strict=True) if draft.quality == level) for level in levels
        ),
        meta=_SIMULATED,
    )


def prompt_of(entry: CorpusEntry) -> Prompt:
    """Return the prompt of an entry."""
    return Prompt(id=entry.id, messages=entry.messages, language=entry.language, category=entry.category, source=SOURCE)


def _topic(entry: CorpusEntry) -> str:
    """Return the first clause of the last question for a quotation: more if it is very short, less if it is long."""
    question = entry.messages[-1].content.strip()
    ends = [*(end.start() for end in _CLAUSE_END.finditer(question)), len(question)]
    clauses = (question[:end] for end in ends)
    clause = next((text for text in clauses if len(_words(text)) >= _FEWEST_TOPIC_UNITS), question)
    unclosed = max(clause.rfind("“"), clause.rfind('"'))
    if clause.count("“") > clause.count("”") or clause.count('"') % 2:
        before = clause[:unclosed]
        clause = before if len(_words(before)) >= _FEWEST_TOPIC_UNITS else before + clause[unclosed + 1 :]
    units = _UNIT.findall(clause.strip())
    while sum(map(len, units)) > _LONGEST_TOPIC:
        units.pop()
    topic = "".join(units)
    is_whole = topic == clause.strip()
    return (topic if is_whole else f"{_WORDLESS_END.sub('', topic)} …").translate(_INNER_QUOTES)


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, the number of a list item with its first sentence; joined they are the text."""
    parts: list[str] = []
    for sentence in _SENTENCE.findall(text):
        if parts and _LIST_NUMBER.fullmatch(parts[-1]):
            parts[-1] += sentence
        else:
            parts.append(sentence)
    return parts


def _words(text: str) -> list[str]:
    return [unit for unit in _UNIT.findall(text) if not unit.isspace()]


def _refuse(entry: CorpusEntry, problem: str) -> None:
    raise RecordError(f"corpus entry {entry.id!r} {problem}", allowed="see annotation/corruptions.py")
