"""The demos: the recipes of simulated and of real data.

Of simulated data the answer key tells how many verdicts and ordered pairs are right.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from steelyard.core.types import Case, JsonObject, Run
from steelyard.io.cases import read_cases
from steelyard.io.lines import read_toml
from steelyard.ranking.pairs import pairs_of
from steelyard.recipes.recipe import build_recipe, find_recipe, read_recipe
from steelyard.recipes.run import run
from steelyard.stages.gemma import check_installed

Key = dict[tuple[str, str | None], frozenset[tuple[str, str]]]
"""For each case the ids of the better and the worse response of every pair."""


class PairShare(NamedTuple):
    """``number`` of ``total`` pairs or verdicts."""

    number: int
    total: int

    @property
    def share(self) -> float:
        """The number as a share of the total; NaN of none."""
        return self.number / self.total if self.total else float("nan")


class RightByKey(NamedTuple):
    """The pairs and strict verdicts that are as in the answer key.

    ``ranked``: pairs across the tiers that were resolved from people's verdicts. ``llm``: the LLM's verdicts;
    ``supervised``: those of them that were kept.
    """

    ranked: PairShare
    llm: PairShare
    supervised: PairShare


class Demo(NamedTuple):
    """The run of each stage of the recipe, the agreement with the answer key, and the page."""

    runs: dict[str, Run]
    right_by_key: RightByKey
    page: Path


def demo(out: Path, settings: JsonObject | None = None, *, seed: int = 0, redo_from: str | None = None) -> Demo:
    """Simulate, resolve, train, supervise, debias, train again, evaluate with baselines, report.

    Finished stages are skipped. ``settings`` (stage, then key) override the recipe's. Raises OutputError where a folder
    holds a run of others.
    """
    completed = run(read_recipe(find_recipe("demo"), settings, seed=seed), out, redo_from=redo_from)
    key = read_key(read_cases(out / "simulated" / "gold.jsonl"))
    right = RightByKey(
        right_pairs(read_cases(out / "human" / "cases.jsonl"), key),
        right_verdicts(read_cases(out / "simulated" / "llm.jsonl"), key),
        right_verdicts(read_cases(out / "supervised" / "cases.jsonl"), key),
    )
    return Demo({stage.name: stage.run for stage in completed}, right, out / "report" / "report.html")


class RealDemo(NamedTuple):
    """The run of each stage of the recipe, and the page."""

    runs: dict[str, Run]
    page: Path


def real_demo(
    out: Path,
    settings: JsonObject | None = None,
    *,
    model: str | None = None,
    seed: int = 0,
    redo_from: str | None = None,
) -> RealDemo:
    """Do the same with people's answers to HalluQA and GPT-4's labels, on Gemma 3 270M or another ``model``.

    Raises MissingPartError before anything runs where Gemma is not installed, and else as `demo`.
    """
    path = find_recipe("demo_real")
    content = read_toml(path)
    if model is None:
        check_installed()
    else:
        del content["stages"]["backbone"]
        name = str(Path(model).resolve()) if Path(model).exists() else model
        for stage in ("human_model", "model"):
            content["stages"][stage]["model"] = name
    completed = run(build_recipe(content, path, settings, seed=seed), out, redo_from=redo_from)
    return RealDemo({stage.name: stage.run for stage in completed}, out / "report" / "report.html")


def read_key(gold: Iterable[Case]) -> Key:
    """Return the better and the worse response of every pair across the tiers of the answer key."""
    return {
        case.key: frozenset(
            (case.responses[pair.better].id, case.responses[pair.worse].id) for pair in pairs_of(case, "tiers")
        )
        for case in gold
    }


def right_pairs(ranked: Iterable[Case], key: Key) -> PairShare:
    """Count the pairs across tiers, and those that the answer key orders the same way."""
    right = [
        (case.responses[pair.better].id, case.responses[pair.worse].id) in key[case.key]
        for case in ranked
        for pair in pairs_of(case, "tiers")
    ]
    return PairShare(sum(right), len(right))


def right_verdicts(judged: Iterable[Case], key: Key) -> PairShare:
    """Count the strict verdicts, and those that the answer key orders the same way."""
    right: list[bool] = []
    for case in judged:
        for judgment in case.judgments:
            if judgment.verdict in ("left", "right"):
                ends = (judgment.left, judgment.right)
                right.append((ends if judgment.verdict == "left" else ends[::-1]) in key[case.key])
    return PairShare(sum(right), len(right))
