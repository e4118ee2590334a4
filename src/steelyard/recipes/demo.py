"""The demo: the recipe of that name, and how far its rankings agree with the answer key that only a simulation has."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.core.types import Case, Run
from steelyard.io.cases import read_cases
from steelyard.ranking.pairs import pairs_of
from steelyard.recipes.recipes import find_recipe, read_recipe
from steelyard.recipes.run import run


class Share(NamedTuple):
    """So many of ``total``."""

    number: int
    total: int


class Demo(NamedTuple):
    """What the demo did: the run of each of the recipe's stages, and where the page is.

    ``right_by_key``: of the pairs that the resolved rankings order, those ordered as in the answer key.
    """

    runs: dict[str, Run]
    right_by_key: Share
    page: Path


def demo(out: Path, settings: Mapping[str, Any] | None = None, *, seed: int = 0, redo_from: str | None = None) -> Demo:
    """Simulate, resolve, make a backbone, train, evaluate beside baselines, report; finished stages are skipped.

    ``settings`` (stage, then key) stand over the recipe's. Raises OutputError where a folder holds a run of others.
    """
    done = run(read_recipe(find_recipe("demo"), settings, seed=seed), out, redo_from=redo_from)
    runs = {one.name: one.run for one in done}
    ranked, gold = (out / name for name in ("resolved/cases.jsonl", "simulated/gold.jsonl"))
    return Demo(runs, right_by_key(read_cases(ranked), read_cases(gold)), out / "report" / "report.html")


def right_by_key(ranked: Iterable[Case], gold: Iterable[Case]) -> Share:
    """How many of the pairs across tiers are ordered so in the answer key, whose cases come in the same order."""
    number, total = 0, 0
    for case, key in zip(ranked, gold, strict=True):
        true = {(key.responses[pair.better].id, key.responses[pair.worse].id) for pair in pairs_of(key, "tiers")}
        pairs = pairs_of(case, "tiers")
        number += sum((case.responses[pair.better].id, case.responses[pair.worse].id) in true for pair in pairs)
        total += len(pairs)
    return Share(number, total)
