"""How much of a drop between languages that damage makes disappears when the items that the checks find are left out.

Run: python studies/translation/false_drop.py DATA

The translations are real (XCOPA, by people), the damage is planted, and the **reward model is simulated**: it is right
on 85% of the English items, agrees with its English verdict on 92% of the items of every language, guesses where a text
that it compares was damaged, follows the texts of swapped responses, and ties equal ones. So the true drop is known,
and the same in all languages.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import typer
from corpora import Parallel, xcopa
from damage import PLANTS, Rng, planted, responses_planted

import steelyard as sy
from steelyard.core.numerics import generator
from steelyard.core.types import Scores
from steelyard.translation.bench_lengths import length_limits
from steelyard.translation.damage import find_damage
from steelyard.translation.wording import target_languages

LANGUAGES = ("it", "zh", "id", "tr", "vi")
RIGHT, AGREES = 0.85, 0.92
SHARE = 0.1
"""The share of the items of a language that are damaged."""


class Damaged(NamedTuple):
    """An item as it was planted: the kind of damage, empty for none, and whether the model's verdict is affected."""

    item: Parallel
    kind: str


def damaged(languages: dict[str, list[Parallel]], language: str, rng: Rng, share: float = SHARE) -> Iterator[Damaged]:
    """Yield the items of a language, a share of them with one kind of damage drawn among those that fit."""
    for number, item in enumerate(languages[language]):
        if rng.random() >= share:
            yield Damaged(item, "")
            continue
        kinds = [*PLANTS, "equal_responses", "swapped_responses"]
        for kind in rng.permutation(kinds):
            if kind in PLANTS:
                target = planted(item, PLANTS[kind][1], rng, languages=languages, language=language, number=number)
            else:
                target = dict(responses_planted(item)).get(kind, Parallel(item.source, None)).target
            if target is not None:
                yield Damaged(Parallel(item.source, target), str(kind))
                break
        else:
            yield Damaged(item, "")


def verdicts(items: Sequence[Damaged], english: Sequence[bool], rng: Rng) -> list[float]:
    """Return the margin of the simulated model on each item: above 0 where it is right, 0 for a tie."""
    margins = []
    for each, is_right in zip(items, english, strict=True):
        margin = 1.0 if is_right == (rng.random() < AGREES) else -1.0
        if each.kind == "equal_responses":
            margin = 0.0
        elif each.kind == "swapped_responses":
            margin = -margin
        elif each.kind:
            margin = 1.0 if rng.random() < 0.5 else -1.0
        margins.append(margin)
    return margins


def found(items: Sequence[Damaged]) -> list[bool]:
    """Return whether the checks find damage in each item."""
    limits = length_limits((each.item.source, each.item.target) for each in items)
    languages = target_languages(each.item.target for each in items)
    return [
        bool(find_damage(each.item.source, each.item.target, limits=limits, languages=names))
        for each, names in zip(items, languages, strict=True)
    ]


def by_language(margins: dict[str, list[float]], left_out: set[int]) -> tuple[sy.Estimate, sy.Estimate]:
    """Return the mean drop from English and the mean kappa with it, over the items that stay."""
    cases, scores = [], []
    for language, values in margins.items():
        for number, margin in enumerate(values):
            if number in left_out:
                continue
            prompt = sy.Prompt(
                id=f"p{number}",
                messages=(sy.Message(role="user", content=f"item {number} {language}"),),
                language=language,
            )
            responses = tuple(sy.Response(id=name, text=f"{name} {number} {language}") for name in "ab")
            cases.append(sy.Case(prompt=prompt, responses=responses, ranking=(("a",), ("b",))))
            scores.append(Scores(prompt=f"p{number}", language=language, scores={"a": margin, "b": 0.0}))
    evaluated = sy.evaluate(None, sy.Cases(cases), scores=scores, baselines=())
    summary = sy.languages([evaluated]).summary
    return summary.drop.absolute, summary.kappa


def main(data: Path, seed: int = 0) -> None:
    """Print the drop and kappa of undamaged, damaged and checked items."""
    languages = {name: items for name, items in xcopa(data) if name in LANGUAGES}
    number = min(map(len, languages.values()))
    rng = generator(seed, "false drop")
    english = [bool(each) for each in rng.random(number) < RIGHT]
    plain = {"en": [1.0 if right else -1.0 for right in english]}
    margins, marked, truly = dict(plain), set[int](), set[int]()
    undamaged = dict(plain)
    num_damaged = num_found = num_false = 0
    for language in languages:
        items = list(damaged(languages, language, rng))
        flags = found(items)
        margins[language] = verdicts(items, english, rng)
        undamaged[language] = verdicts([each._replace(kind="") for each in items], english, rng)
        marked |= {place for place, flag in enumerate(flags) if flag}
        truly |= {place for place, each in enumerate(items) if each.kind}
        num_damaged += sum(bool(each.kind) for each in items)
        num_found += sum(flag and bool(each.kind) for each, flag in zip(items, flags, strict=True))
        num_false += sum(flag and not each.kind for each, flag in zip(items, flags, strict=True))
    print(f"{number} items, {', '.join(languages)}; {num_damaged} of {number * len(languages)} damaged,")
    print(f"  {num_found} of these found, {num_false} others accused")
    for label, values, left_out in (
        ("undamaged, all items", undamaged, set()),
        ("damaged, all items", margins, set()),
        ("damaged, without the items found", margins, marked),
        ("damaged, without the items that are damaged", margins, truly),
    ):
        drop, kappa = by_language(values, left_out)
        print(f"  {label} ({number - len(left_out)}): drop {drop}, kappa {kappa}")


if __name__ == "__main__":
    typer.run(main)
