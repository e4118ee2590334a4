"""The built-in corpus: read from the package, chosen evenly, divided into training and test prompts."""

import tomllib
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

import msgspec

from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.seeds import generator
from steelyard.core.types import Case
from steelyard.methods.annotation.corpus import Entry, Phrases, check_entry
from steelyard.methods.annotation.drafts import prompt_of
from steelyard.methods.annotation.worsening import Material
from steelyard.methods.curation.splits import split_cases
from steelyard.stages.simulate.settings import Config


class Corpus(NamedTuple):
    """Every entry of every language, and the phrases of each language."""

    entries: tuple[Entry, ...]
    phrases: dict[str, Phrases]

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that have entries, sorted."""
        return tuple(sorted({entry.language for entry in self.entries}))


def read_corpus() -> Corpus:
    """The corpus as it is installed, every entry checked."""
    folder = files("steelyard") / "data"
    entries: list[Entry] = []
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if file.name.startswith("corpus."):
            lines = file.read_text(encoding="utf-8").split("\n")
            entries += [check_entry(msgspec.json.decode(line, type=Entry)) for line in lines if line.strip()]
    tables = tomllib.loads((folder / "phrases.toml").read_text(encoding="utf-8"))
    return Corpus(tuple(entries), {name: msgspec.convert(table, Phrases) for name, table in tables.items()})


def choose_entries(corpus: Corpus, config: Config) -> tuple[Entry, ...]:
    """The entries asked for; fewer than all are drawn evenly from categories and languages, as the seed says."""
    own = [entry for entry in corpus.entries if entry.language in config.languages]
    if config.num_prompts is None:
        return tuple(own)
    if not 4 <= config.num_prompts <= len(own):
        raise ConfigError(
            f"num_prompts is {config.num_prompts}",
            where="simulate",
            allowed=f"4 to {len(own)}, or none given: all in {', '.join(config.languages)}",
        )
    taken: Counter[tuple[str, str]] = Counter()
    ranked: list[tuple[int, int, int]] = []
    for order, place in enumerate(generator(config.seed, "choice").permutation(len(own)).tolist()):
        stratum = (own[place].category[0], own[place].language)
        ranked.append((taken[stratum], order, place))
        taken[stratum] += 1
    return tuple(own[place] for _, _, place in sorted(ranked)[: config.num_prompts])


def split_entries(entries: Sequence[Entry], config: Config) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Training and test prompts: each has its share of every category and language."""
    shares = {"train": 1 - config.test_share, "test": config.test_share}
    names = split_cases([Case(prompt=prompt_of(entry), responses=()) for entry in entries], shares, seed=config.seed)
    train, test = (tuple(entry for entry, name in zip(entries, names, strict=True) if name == part) for part in shares)
    return train, test


def material_of(entry: Entry, part: Sequence[Entry], corpus: Corpus) -> Material:
    """What worse answers to the entry are made of: only its own part lends, so that no test answer is trained on.

    A part without another language borrows from the corpus, which then trains and tests nothing in that language.
    Raises EvidenceError for a part too small to lend.
    """
    others = [own for own in part if own.language == entry.language and own.category[0] != entry.category[0]]
    foreign = [own for own in part if own.language != entry.language]
    spare = [own for own in corpus.entries if own.language not in {one.language for one in part}]
    if not others or not (foreign or spare):
        raise EvidenceError(
            f"{len(part)} prompts are too few: no answer of another category can stand in for that to {entry.id!r}",
            where="simulate",
            do="raise num_prompts, or change test_share",
        )
    return Material(entry, corpus.phrases[entry.language], tuple(others), tuple(foreign or spare))
