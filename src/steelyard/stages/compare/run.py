"""One comparison from run folders to ``run.json``: every pair of evaluations, corrected for how many there are."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Counts, Run
from steelyard.evaluation.evaluations import Beside, read_beside
from steelyard.evaluation.headlines import ranking_of
from steelyard.evaluation.measures.coverage import unlike_coverage
from steelyard.io.progress import log, track
from steelyard.io.run_folder import read_run, result_folder
from steelyard.stages.compare.headline import Ranked, compare_headlines
from steelyard.statistics.blocks import draw_blocks
from steelyard.statistics.comparison import Comparison, holm, ranks_beyond_doubt
from steelyard.statistics.comparison import compare as compare_tables
from steelyard.statistics.paired_means import paired_mean
from steelyard.statistics.standings import Drawing, bounded_p

_LEVEL = 0.05


class Config(BaseConfig, frozen=True):
    """How often prompts are redrawn; more resamples show smaller p-values."""

    num_resamples: Positive = 10_000
    """The number of bootstrap resamples of prompts; more show smaller p-values."""
    seed: int = 0
    """The seed of the resamples."""


_DEFAULT = Config()


def compare(runs: Sequence[Path], out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run:
    """Compare every two of the evaluations in ``runs``, and rank them as far as the data allow.

    Raises EvidenceError for fewer than two, or for evaluations of other prompts or under another protocol.
    """
    if len(runs) < 2:
        raise EvidenceError("one evaluation alone", do="name two or more --out folders of `steelyard evaluate`")
    beside = read_beside(runs)
    inputs = {f"run.{number}": folder / "run.json" for number, folder in enumerate(runs, 1)}
    with result_folder(out, "compare", config=config, inputs=inputs, seed=config.seed, force=force) as result:
        if result.is_finished:
            log(f"{out} is finished already: equal inputs and settings")
            return read_run(out)
        result.summary = _summary(beside, config)
        result.counts = Counts(
            num_in=len(runs), num_used=len(runs), noted={"prompts": len(beside.evaluated[0].statistics)}
        )
    return read_run(out)


def _summary(beside: Beside, config: Config) -> dict[str, Any]:
    pairs = list(combinations(range(len(beside.evaluated)), 2))
    found = [
        compare_tables(
            beside.layout,
            beside.evaluated[first].statistics,
            beside.evaluated[second].statistics,
            num_resamples=config.num_resamples,
            seed=config.seed,
        )
        for first, second in track(pairs, "comparing", total=len(pairs))
    ]
    ranked = compare_headlines(beside, pairs, num_resamples=config.num_resamples, seed=config.seed)
    beyond = _beyond_accuracy(beside, pairs, config)
    bounded = _bounded(beside, pairs, found, ranked, config)
    corrected = holm([one.p_accuracy for one in found])
    exact = holm([one.p_exact_match for one in found])
    return {
        "bench": beside.evaluated[0].run.summary["bench"],
        **ranked.record,
        "unlike_coverage": unlike_coverage({one.name: one.run.summary.get("coverage") for one in beside.evaluated}),
        "models": _models(beside, pairs, _better(found, bounded, ranked), ranked.name),
        "comparisons": [
            {
                "first": beside.evaluated[first].name,
                "second": beside.evaluated[second].name,
                **one.record(),
                "p_accuracy_corrected": own,
                "p_exact_match_corrected": other,
                "p_bounded": p_bounded,
                "headline": headline,
                "measures": measures,
            }
            for (first, second), one, own, other, p_bounded, headline, measures in zip(
                pairs, found, corrected, exact, bounded, ranked.differences or [None] * len(pairs), beyond, strict=True
            )
        ],
        "correction": "Holm, over all comparisons here",
    }


def _beyond_accuracy(
    beside: Beside, pairs: Sequence[tuple[int, int]], config: Config
) -> list[dict[str, dict[str, Any]]]:
    """Of each comparison the other measures by name, their p-values corrected over all comparisons of the measure."""
    blocks = draw_blocks(beside.labels, num_resamples=config.num_resamples, seed=config.seed)
    found: list[dict[str, dict[str, Any]]] = [{} for _ in pairs]
    for name in beside.evaluated[0].measures:
        sides = [[beside.evaluated[index].measures[name] for index in pair] for pair in pairs]
        differences = [paired_mean(blocks, first, second) for first, second in sides]
        told = [index for index, own in enumerate(differences) if own.p is not None]
        corrected = holm([differences[index].p or 0.0 for index in told])
        for index, own in enumerate(differences):
            found[index][name] = own.record() | {"p_corrected": None}
        for index, p_value in zip(told, corrected, strict=True):
            found[index][name]["p_corrected"] = p_value
    return found


def _bounded(
    beside: Beside, pairs: Sequence[tuple[int, int]], found: Sequence[Comparison], ranked: Ranked, config: Config
) -> list[float]:
    """Return corrected p-values of what ranks, with the pairs right that the worse model alone has no score for."""
    p_values = [one.p_accuracy for one in found]
    if ranked.differences is not None:
        p_values = [one["p"] for one in ranked.differences]
    unscored = [one.unscored for one in beside.evaluated]
    if any(own.pairs for own in unscored):
        drawing = Drawing(beside.layout, ranking_of(beside).formula, config.num_resamples, config.seed)
        tables = [one.statistics for one in beside.evaluated]
        drawn = drawing.draw(tables)
        bounds = [bounded_p(drawing, tables, unscored, pair, drawn) for pair in pairs]
        p_values = [max(both) for both in zip(p_values, bounds, strict=True)]
    return holm(p_values)


def _better(found: Sequence[Comparison], bounded: Sequence[float], ranked: Ranked) -> list[float]:
    """Of each comparison above 0 where the first is better beyond doubt by what ranks, below where the second is."""
    values = [one.accuracy.value or 0.0 for one in found]
    if ranked.differences is not None:
        values = [one["value"] for one in ranked.differences]
    return [value if p_value < _LEVEL else 0.0 for value, p_value in zip(values, bounded, strict=True)]


def _models(
    beside: Beside, pairs: Sequence[tuple[int, int]], better: Sequence[float], ranked_by: str
) -> list[dict[str, Any]]:
    """Each evaluation with its headline and the ranks that it may have; the best first."""
    differs = np.zeros((len(beside.evaluated),) * 2, dtype=bool)
    for (first, second), difference in zip(pairs, better, strict=True):
        if difference:
            differs[(first, second) if difference > 0 else (second, first)] = True
    ranks = ranks_beyond_doubt(differs)
    rows = [
        {
            "name": own.name,
            "folder": str(own.folder),
            "value": own.run.summary[ranked_by],
            "accuracy": own.run.summary["accuracy"],
            "exact_match": own.run.summary["exact_match"],
            "coverage": own.run.summary.get("coverage"),
            "bounds": own.run.summary.get("bounds", {}).get("accuracy"),
            "best_rank": best,
            "worst_rank": worst,
        }
        for own, (best, worst) in zip(beside.evaluated, ranks, strict=True)
    ]
    return sorted(rows, key=lambda row: -row["value"]["value"])
