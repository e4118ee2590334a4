"""What the checks of translations find and accuse where the source is not English.

    python studies/translation/sources.py DATA [--half even|odd] [--only XCOPA] [--number 4] [--seed 0] [--alarms]

DATA is a folder with the published files of XCOPA, MultiJail and HumanEval-XL, whose items are the same in all
languages: each language is the source of all others in turn. Negations are planted as ``damage.py`` does, into
``--number`` items of each pair of languages. Tables are in Markdown, with Wilson intervals; ``--alarms`` prints the
findings in unchanged items, and what was not found. ``--half`` takes every other item of each language.
"""

from collections import Counter, defaultdict
from pathlib import Path

import typer
from corpora import Parallel, humaneval, multijail, xcopa
from damage import Rng, plant_lost_negation, plant_negation, planted, print_miss, share

from steelyard.core.numerics import generator
from steelyard.core.types import Case
from steelyard.translation.bench_lengths import length_limits
from steelyard.translation.damage import find_damage
from steelyard.translation.damage_kinds import DamageFinding
from steelyard.translation.shared_negations import SharedNegations
from steelyard.translation.wording import TargetLanguage, target_languages

_PLANTS = {"negation lost": plant_lost_negation, "negation added": plant_negation}


def by_language(data: Path, name: str) -> dict[str, list[Case]]:
    """The cases of a set by language. English is left out where it is a machine translation, or has other text."""
    read = {"XCOPA": xcopa, "MultiJail": multijail, "HumanEval-XL": humaneval}[name]
    pairs = dict(read(data))
    english = {"en": [each.source for each in next(iter(pairs.values()))]} if name == "MultiJail" else {}
    return english | {language: [each.target for each in items] for language, items in pairs.items()}


class Counts:
    """What is found from one source language: unchanged items by kind of finding, and planted damage."""

    def __init__(self) -> None:
        self.items = 0
        self.accused = Counter[str]()
        self.planted = Counter[str]()
        self.found = Counter[str]()

    def add(self, found: list[DamageFinding]) -> None:
        """Count the findings of an unchanged item."""
        self.items += 1
        self.accused.update({each.kind for each in found} | ({"any"} if found else set()))

    def join(self, other: "Counts") -> None:
        """Add the counts of another language."""
        self.items += other.items
        for mine, its in zip(self._counters(), other._counters(), strict=True):
            mine.update(its)

    def _counters(self) -> tuple[Counter[str], ...]:
        return self.accused, self.planted, self.found

    def row(self) -> str:
        """The cells of a table."""
        kinds = ", ".join(f"{kind} {number}" for kind, number in self.accused.most_common() if kind != "any")
        alarms = [share(self.accused[kind], self.items) for kind in ("any", "negation")]
        recall = [share(self.found[kind], self.planted[kind]) for kind in _PLANTS]
        return " | ".join((*alarms, kinds, *recall))


class Bench:
    """The translations of one source language into all others, with what they teach."""

    def __init__(self, source: str, cases: dict[str, list[Case]]) -> None:
        self.translations = {
            target: list(map(Parallel, cases[source], items)) for target, items in cases.items() if target != source
        }
        self.limits = length_limits(item for items in self.translations.values() for item in items)
        self.shared = SharedNegations()
        for items in self.translations.values():
            for item in items:
                self.shared.add(*item)

    def find(self, item: Parallel, languages: tuple[TargetLanguage | None, ...] | None) -> list[DamageFinding]:
        """The findings of an item, as the verb has them."""
        found = find_damage(*item, limits=self.limits, languages=languages)
        return [each for each in found if not self.shared.is_of_source(item.source.prompt.id, each)]

    def find_planted(self, name: str, item: Parallel, counts: Counts, rng: Rng, *, alarms: bool) -> None:
        """Count the planted negations of an item that are found, where the unchanged item has no such finding."""
        if any(each.kind == "negation" for each in self.find(item, None)):
            return
        for kind, plant in _PLANTS.items():
            damaged = planted(item, plant, rng, languages={}, language="", number=0)
            if damaged is None:
                continue
            pair = Parallel(item.source, damaged)
            is_found = any(each.kind == "negation" for each in self.find(pair, None))
            counts.planted[kind] += 1
            counts.found[kind] += is_found
            if alarms and not is_found:
                print_miss(f"{kind}, {name}", pair)


def main(data: Path, *, half: str = "", only: str = "", number: int = 4, seed: int = 0, alarms: bool = False) -> None:
    """Print the tables."""
    for name in (each for each in ("XCOPA", "MultiJail", "HumanEval-XL") if only in ("", each)):
        cases = by_language(data, name)
        if half:
            cases = {language: items[("even", "odd").index(half) :: 2] for language, items in cases.items()}
        measure(name, cases, number, seed, alarms=alarms)


def measure(name: str, cases: dict[str, list[Case]], number: int, seed: int, *, alarms: bool) -> None:
    """Print the tables of a set."""
    identified = {language: target_languages(items) for language, items in cases.items()}
    by_source, by_target = defaultdict[str, Counts](Counts), defaultdict[str, Counts](Counts)
    for source in cases:
        bench = Bench(source, cases)
        for target, items in bench.translations.items():
            rows, title = (by_source[source], by_target[target]), f"{name}, {source}>{target}"
            for item, languages in zip(items, identified[target], strict=True):
                found = bench.find(item, languages)
                for counts in rows:
                    counts.add(found)
                for each in found if alarms else ():
                    print(f"### {title}: {each.kind}\n- {each.before!r}\n  {each.after!r}")
            rng = generator(seed, title)
            for place in rng.permutation(len(items))[:number]:
                bench.find_planted(title, items[place], rows[0], rng, alarms=alarms)
    for side, table in (("source", by_source), ("target", by_target)):
        print(f"\n## {name}, by {side}\n\n| language | any finding | negation | kinds | lost, found | added, found |")
        print("|---|---|---|---|---|---|")
        total = Counts()
        for language, counts in table.items():
            print(f"| {language} | {counts.row()} |")
            total.join(counts)
        print(f"| all | {total.row()} |")


if __name__ == "__main__":
    typer.run(main)
