"""The demo: the recipe of that name, and the agreement of its rankings with the simulation's answer key."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from steelyard.core.types import Case, JsonObject, Run
from steelyard.io.cases import read_cases
from steelyard.ranking.pairs import pairs_of
from steelyard.recipes.recipe import find_recipe, read_recipe
from steelyard.recipes.run import run


class PairShare(NamedTuple):
    """``number`` of ``total`` pairs."""

    number: int
    total: int


class Demo(NamedTuple):
    """The run of each stage of the recipe, and the page.

    ``right_by_key``: of the pairs that the resolved rankings order, those ordered as in the answer key.
    """

    runs: dict[str, Run]
    right_by_key: PairShare
    page: Path


def demo(out: Path, settings: JsonObject | None = None, *, seed: int = 0, redo_from: str | None = None) -> Demo:
    """Simulate, resolve, make a backbone, train, evaluate with baselines, report; finished stages are skipped.

    ``settings`` (stage, then key) override the recipe's. Raises OutputError where a folder holds a run of others.
    """
    completed = run(read_recipe(find_recipe("demo"), settings, seed=seed), out, redo_from=redo_from)
    runs = {stage.name: stage.run for stage in completed}
    ranked, gold = (out / name for name in ("resolved/cases.jsonl", "simulated/gold.jsonl"))
    return Demo(runs, right_by_key(read_cases(ranked), read_cases(gold)), out / "report" / "report.html")


def right_by_key(ranked: Iterable[Case], gold: Iterable[Case]) -> PairShare:
    """Count the pairs across tiers that the answer key orders the same way; both files have the same order of cases."""
    number, total = 0, 0
    for case, key in zip(ranked, gold, strict=True):
        true = {(key.responses[pair.better].id, key.responses[pair.worse].id) for pair in pairs_of(key, "tiers")}
        pairs = pairs_of(case, "tiers")
        number += sum((case.responses[pair.better].id, case.responses[pair.worse].id) in true for pair in pairs)
        total += len(pairs)
    return PairShare(number, total)
