"""How much of the drop and of the loss of kappa that damage makes disappears with the items that the checks find.

    python studies/translation/real_drop.py planted FOLDER MODEL... [--num-resamples 2000] [--seed 0]
    python studies/translation/real_drop.py translated FOLDER MODEL...
    python studies/translation/real_drop.py code FOLDER MODEL...

FOLDER is that of `real_benches.py` with the scores of each MODEL, MODEL-native.jsonl, MODEL-planted.jsonl and
MODEL-apertium.jsonl (`reward_scores.py` or `steelyard score`). Drops are in points of accuracy, ties wrong, and kappas
compare verdicts (right, tie, wrong) with those in English; both are means over languages. Items are resampled in all
languages together, 95% intervals are percentiles. What damage alone makes is the difference of the same items with it
and without it; the share that disappears is one less what is left of it, over the items that stay.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import typer

from steelyard.core.numerics import Floats, Integers, generator
from steelyard.io.cases import read_cases

Verdicts = dict[str, dict[str, int]]
"""Of each language and prompt: 1 where the better response has the higher score, 0 for a tie, -1 otherwise."""

app = typer.Typer()


def read_verdicts(folder: Path, model: str, name: str) -> Verdicts:
    """Return the verdicts of a model on a case file of the folder."""
    scores = {}
    for line in (folder / f"{model}-{name}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        scores[row["prompt"], row["language"]] = row["scores"]
    verdicts: Verdicts = {}
    for case in read_cases(folder / f"{name}.jsonl"):
        assert case.ranking is not None
        of_case = scores[case.prompt.id, case.prompt.language]
        (better,), (worse,) = case.ranking
        verdicts.setdefault(str(case.prompt.language), {})[case.prompt.id] = int(
            np.sign(of_case[better] - of_case[worse])
        )
    return verdicts


class Figures(NamedTuple):
    """The accuracy in English, the mean drop and the mean kappa: of the items, then of each resample."""

    english: Floats
    drop: Floats
    kappa: Floats


class Bench:
    """Verdicts of one model in English, to compare with those in other languages, and resamples of the items."""

    def __init__(self, english: Mapping[str, int], *, num_resamples: int, seed: int) -> None:
        self.ids = sorted(english)
        self._english = np.array([english[each] for each in self.ids])
        draws = generator(seed, "items").integers(len(self.ids), size=(num_resamples, len(self.ids)))
        counts = np.stack([np.bincount(draw, minlength=len(self.ids)) for draw in draws])
        # The first row is the items as they are.
        self._weights = np.concatenate([np.ones((1, len(self.ids))), counts])

    def figures(self, verdicts: Verdicts, left_out: Mapping[str, Collection[str]]) -> Figures:
        """Return the figures of the items that stay in each language; English has the same ones."""
        drops, kappas, english = [], [], []
        for language, of_language in verdicts.items():
            out = left_out.get(language, ())
            weights = self._weights * np.array([each not in out for each in self.ids])
            total = weights.sum(1)
            other = np.array([of_language[each] for each in self.ids])
            english.append(weights @ (self._english > 0) / total)
            drops.append(english[-1] - weights @ (other > 0) / total)
            kappas.append(_kappa(self._english, other, weights))
        return Figures(np.mean(english, 0), np.mean(drops, 0), np.mean(kappas, 0))


def _kappa(first: Integers, second: Integers, weights: Floats) -> Floats:
    """Return Cohen's kappa of two series of labels (right, tie, wrong) for each row of weights."""
    total = weights.sum(1)
    same = weights @ (first == second) / total
    chance = sum((weights @ (first == label)) * (weights @ (second == label)) for label in (-1, 0, 1)) / total**2
    return (same - chance) / np.maximum(1 - chance, 1e-12)


def shown(values: Floats, scale: float = 1.0, digits: int = 1) -> str:
    """Return a value with the interval of its resamples."""
    low, high = np.nanquantile(values[1:], [0.025, 0.975]) * scale
    return f"{values[0] * scale:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def print_row(label: str, number: str, figures: Figures) -> None:
    """Print the drop and kappa of some items."""
    print(f"| {label} | {number} | {shown(figures.drop, 100)} | {shown(figures.kappa, digits=3)} |")


def in_all(items: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    """Return the items of any language for each language: what is damaged in one is left out in all."""
    return dict.fromkeys(items, set().union(*items.values()))


def listed(folder: Path, name: str, key: str = "found") -> dict[str, set[str]]:
    """Return the items of each language that are found, or planted."""
    checked = json.loads((folder / "checked.json").read_text("utf-8"))[name]
    return {language: set(items[key]) for language, items in checked.items()}


@app.command()
def planted(folder: Path, models: list[str], *, num_resamples: int = 2000, seed: int = 0) -> None:
    """Print what damage on purpose does, and what is left of it."""
    found, damaged = (listed(folder, "damaged", key) for key in ("found", "planted"))
    for model in models:
        plain = read_verdicts(folder, model, "native")
        english = plain.pop("en")
        changed = read_verdicts(folder, model, "planted")
        harmed = {name: of | changed.get(name, {}) for name, of in plain.items()}
        bench = Bench(english, num_resamples=num_resamples, seed=seed)
        before, after = bench.figures(plain, {}), bench.figures(harmed, {})
        print(f"\n{model}: accuracy in English {shown(before.english, 100)}, others", end=" ")
        print(f"{shown(before.english - before.drop, 100)}\n\n| items | number | drop | kappa |\n|---|--:|---|---|")
        print_row("undamaged", str(len(bench.ids)), before)
        print_row("damaged", str(len(bench.ids)), after)
        sets = {
            "without the items found in any language": in_all(found),
            "without the items damaged in any language": in_all(damaged),
            "in each language without those found in it": found,
            "in each language without those damaged in it": damaged,
        }
        for label, out in sets.items():
            sizes = sorted({len(bench.ids) - len(each) for each in out.values()})
            print_row(label, "-".join(map(str, dict.fromkeys((sizes[0], sizes[-1])))), bench.figures(harmed, out))
        for place, (label, scale, digits) in enumerate((("drop, points", 100, 1), ("kappa", 1, 3)), start=1):
            made = after[place] - before[place]
            print(f"\n{label}: damage alone makes {shown(made, scale, digits)}", end="")
            # A resample in which damage changes nothing has no share that disappears.
            made = np.where(made == 0, np.nan, made)
            for name, out in (("any", in_all(found)), ("its own", found)):
                left = bench.figures(harmed, out)[place] - bench.figures(plain, out)[place]
                print(f"; without those found in {name} language {shown(left, scale, digits)}", end="")
                print(f", disappears {shown(1 - left / made, 100, 0)}%", end="")
        print()


@app.command()
def translated(folder: Path, models: list[str], *, num_resamples: int = 2000, seed: int = 0) -> None:
    """Print the drops and kappas of Apertium's translations beside those by people."""
    for model in models:
        plain = read_verdicts(folder, model, "native")
        english = plain.pop("en")
        by_engine = read_verdicts(folder, model, "apertium")
        bench = Bench(english, num_resamples=num_resamples, seed=seed)
        print(f"\n{model}\n\n| items | number | drop | kappa |\n|---|--:|---|---|")
        for name, verdicts, key in (("people", plain, "native"), ("Apertium", by_engine, "apertium")):
            found = listed(folder, key)
            for language, of_language in verdicts.items():
                print_row(f"{name}, {language}", str(len(bench.ids)), bench.figures({language: of_language}, {}))
                if out := found[language]:
                    left = bench.figures({language: of_language}, found)
                    print_row(f"{name}, {language}, without those found", str(len(bench.ids) - len(out)), left)
        people, engine = bench.figures({"it": plain["it"]}, {}), bench.figures({"it": by_engine["it"]}, {})
        print(f"\nItalian, Apertium minus people: drop {shown(engine.drop - people.drop, 100)}", end=", ")
        print(f"kappa {shown(engine.kappa - people.kappa, digits=3)}")


@app.command()
def code(folder: Path, models: list[str], *, num_resamples: int = 2000, seed: int = 0) -> None:
    """Print the drops and kappas of HumanEval-XL with and without the items found."""
    for model in models:
        verdicts = read_verdicts(folder, model, "native")
        english = verdicts.pop("eng_Latn")
        bench = Bench(english, num_resamples=num_resamples, seed=seed)
        found = {name: items & set(bench.ids) for name, items in listed(folder, "native").items()}
        plain, rest = bench.figures(verdicts, {}), bench.figures(verdicts, found)
        print(f"\n{model}: accuracy in English {shown(plain.english, 100)}, others", end=" ")
        print(f"{shown(plain.english - plain.drop, 100)}\n\n| items | number | drop | kappa |\n|---|--:|---|---|")
        print_row("all", str(len(bench.ids)), plain)
        sizes = [len(bench.ids) - len(each) for each in found.values()]
        print_row("in each language without those found in it", f"{min(sizes)}-{max(sizes)}", rest)
        change = Figures(rest.english, rest.drop - plain.drop, rest.kappa - plain.kappa)
        print_row("what leaving out changes", "", change)


if __name__ == "__main__":
    app()
