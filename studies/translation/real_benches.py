"""Benches for real reward models: XCOPA native, translated by Apertium and damaged on purpose; HumanEval-XL.

    python docs/howto/xcopa.py XCOPA xcopa.jsonl translated.jsonl
    python studies/translation/real_benches.py xcopa xcopa.jsonl translated.jsonl FOLDER [--number 200] [--share 0.2]
    python docs/howto/parallel_code.py PACK PROMPTS parallel.jsonl
    python studies/translation/real_benches.py code parallel.jsonl FOLDER [--number 20]

XCOPA: FOLDER/native.jsonl has items by people in five languages, and in English (from the Italian, by machine),
FOLDER/planted.jsonl those of a share of each language with one kind of damage, FOLDER/apertium.jsonl Spanish, Catalan
and Italian from that English (Italian by way of Spanish) and Malay from the Indonesian. Code: FOLDER/native.jsonl has
the functions with the shortest prompts in 23 languages, FOLDER/learn.jsonl the other functions in English.
FOLDER/checked.json names the items with damage, and those that the checks of translations find. `real_drop.py` reads
it with the scores of models.
"""

import json
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import typer
from corpora import Parallel
from damage import with_text
from false_drop import LANGUAGES, Damaged, damaged, found
from msgspec.structs import replace

import steelyard as sy
from steelyard.core.numerics import generator
from steelyard.core.types import Case
from steelyard.io.cases import read_cases

APERTIUM = {"es": ("en", "eng-spa"), "ca": ("en", "eng-cat"), "it": ("es", "spa-ita"), "ms": ("id", "ind-zlm")}
"""The language and the pair of Apertium from which each language is translated."""

app = typer.Typer()


def by_language(path: Path) -> dict[str, list[Case]]:
    """Return the cases of each language, in the order of their ids."""
    cases = defaultdict[str, list[Case]](list)
    for case in read_cases(path):
        cases[str(case.prompt.language)].append(case)
    return {name: sorted(each, key=lambda case: case.prompt.id) for name, each in cases.items()}


def in_language(case: Case, language: str) -> Case:
    """Return the case with another language."""
    return replace(case, prompt=replace(case.prompt, language=language))


def translate(cases: Sequence[Case], language: str, pair: str) -> list[Case]:
    """Return the cases translated by Apertium, a text a paragraph."""
    texts = [text for case in cases for text in (case.prompt.messages[0].content, *(r.text for r in case.responses))]
    assert all(text and "\n\n" not in text for text in texts)
    done = subprocess.run(
        ["apertium", "-u", pair], input="\n\n".join(texts), text=True, capture_output=True, check=True
    )
    translated = done.stdout.rstrip("\n").split("\n\n")
    assert len(translated) == len(texts), f"{pair}: {len(translated)} texts of {len(texts)}"
    places, made = iter(translated), []
    for case in cases:
        changed = in_language(case, language)
        for place in range(1 + len(case.responses)):
            changed = with_text(changed, place, next(places))
        made.append(changed)
    return made


def write_checks(folder: Path, sets: dict[str, dict[str, list[Damaged]]]) -> None:
    """Write for each set and language which items are damaged, by kind, and which are found."""
    checked = {
        name: {
            language: {
                "planted": {each.item.target.prompt.id: each.kind for each in items if each.kind},
                "found": [each.item.target.prompt.id for each, flag in zip(items, found(items), strict=True) if flag],
            }
            for language, items in languages.items()
        }
        for name, languages in sets.items()
    }
    (folder / "checked.json").write_text(json.dumps(checked, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    for name, languages in checked.items():
        for language, each in languages.items():
            hits = set(each["found"])
            print(
                f"{name}, {language}: {len(sets[name][language])} items, {len(each['planted'])} damaged,"
                f" {len(hits & set(each['planted']))} of these found, {len(hits - set(each['planted']))} others"
            )


def unchanged(sources: Sequence[Case], targets: Sequence[Case]) -> list[Damaged]:
    """Return translations in which nothing was planted."""
    return [Damaged(Parallel(*pair), "") for pair in zip(sources, targets, strict=True)]


@app.command()
def xcopa(cases: Path, translated: Path, folder: Path, *, number: int = 200, share: float = 0.2, seed: int = 0) -> None:
    """Write the benches of XCOPA."""
    folder.mkdir(parents=True, exist_ok=True)
    native, sources = by_language(cases), by_language(translated)
    rng = generator(seed, "real drop")
    chosen = rng.permutation(len(sources["it"]))[:number]
    native = {name: [native[name][place] for place in chosen] for name in LANGUAGES}
    sources = {name: [in_language(sources[name][place], "en") for place in chosen] for name in LANGUAGES}
    english = sources["it"]
    pairs = {name: list(map(Parallel, sources[name], native[name])) for name in LANGUAGES}
    planted = {name: list(damaged(pairs, name, rng, share)) for name in LANGUAGES}
    sy.write_cases(folder / "native.jsonl", [*english, *(case for name in LANGUAGES for case in native[name])])
    sy.write_cases(
        folder / "planted.jsonl", [each.item.target for name in LANGUAGES for each in planted[name] if each.kind]
    )
    done = {"en": english, "id": native["id"]}
    for language, (source, pair) in APERTIUM.items():
        done[language] = translate(done[source], language, pair)
    engine = {name: done[name] for name in APERTIUM}
    sy.write_cases(folder / "apertium.jsonl", [case for each in engine.values() for case in each])
    by_engine = {name: unchanged(done["id" if name == "ms" else "en"], each) for name, each in engine.items()}
    plain = {name: unchanged(sources[name], native[name]) for name in LANGUAGES}
    write_checks(folder, {"native": plain, "damaged": planted, "apertium": by_engine})


@app.command()
def code(parallel: Path, folder: Path, number: int = 20) -> None:
    """Write the benches of HumanEval-XL."""
    folder.mkdir(parents=True, exist_ok=True)
    cases = by_language(parallel)
    english = cases["eng_Latn"]
    order = sorted(range(len(english)), key=lambda place: len(english[place].prompt.messages[0].content))
    chosen = {name: [each[place] for place in order[:number]] for name, each in cases.items()}
    sy.write_cases(folder / "native.jsonl", [case for each in chosen.values() for case in each])
    sy.write_cases(folder / "learn.jsonl", [english[place] for place in order[number:]])
    # The checks learn the lengths of a language from all of its functions.
    every = {name: unchanged(english, each) for name, each in cases.items() if name != "eng_Latn"}
    write_checks(folder, {"native": every})


if __name__ == "__main__":
    app()
