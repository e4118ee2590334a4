"""Running an ablation: every arm and seed as one recipe, then the arms side by side on the same prompts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from steelyard.core.types import Run
from steelyard.files.atomic import write_text, written
from steelyard.files.results import read_run
from steelyard.methods.measures.accuracy import Integers
from steelyard.methods.measures.aggregation import ACCURACY, EXACT_MATCH, Estimate, by_category, estimate_macro
from steelyard.methods.measures.comparison import Comparison, compare, holm
from steelyard.methods.measures.resampling import Items, resample
from steelyard.methods.measures.strata import Layout
from steelyard.pipelines.ablations import HUMAN, LLM, Ablation, ablation_recipe, arms_of, run_name
from steelyard.pipelines.run import run
from steelyard.stages.compare.reading import read_beside

TABLE_FILE, PLOT_FILE = "ablation.json", "ablation.svg"
_NUM_RESAMPLES = 2000


class Arm(NamedTuple):
    """One arm over all its seeds: what it was trained on, its measures, and how far its seeds lie apart.

    Accuracy and exact match are those of a seed drawn at random: statistics are summed over seeds before prompts are
    redrawn. ``spread`` is the standard deviation of the accuracy over seeds; ``num_pairs`` the mean number trained on.
    """

    name: str
    num_prompts: float
    num_pairs: float
    accuracy: Estimate
    exact_match: Estimate
    by_seed: tuple[float, ...]

    @property
    def spread(self) -> float:
        """The standard deviation over seeds."""
        return float(np.std(self.by_seed, ddof=1))


class Against(NamedTuple):
    """An arm minus another, paired by prompt over the same seeds."""

    first: str
    second: str
    comparison: Comparison
    p_corrected: float


class Ablated(NamedTuple):
    """The whole table."""

    arms: tuple[Arm, ...]
    against: tuple[Against, ...]

    def record(self) -> dict[str, Any]:
        """The table as it is written."""
        return {
            "arms": [
                {
                    "name": one.name,
                    "num_prompts": one.num_prompts,
                    "num_pairs": one.num_pairs,
                    "accuracy": one.accuracy.record(),
                    "exact_match": one.exact_match.record(),
                    "accuracy_by_seed": list(one.by_seed),
                    "spread": one.spread,
                }
                for one in self.arms
            ],
            "differences": [
                {"first": one.first, "second": one.second, **one.comparison.record(), "p_corrected": one.p_corrected}
                for one in self.against
            ],
            "correction": "Holm, over all differences here",
        }


def ablate(ablation: Ablation, path: Path, out: Path) -> Ablated:
    """Train and evaluate every arm with every seed, and write ``ablation.json`` and ``ablation.svg``.

    Finished stages are skipped: after a kill, or with a further seed or arm, the same folder goes on. Raises what the
    stages raise.
    """
    run(ablation_recipe(ablation, path), out)
    found = _table(ablation, out)
    with written(out / TABLE_FILE) as file:
        file.write(msgspec.json.format(msgspec.json.encode(found.record()), indent=2) + b"\n")
    write_text(out / PLOT_FILE, _drawn(found))
    return found


def references(ablation: Ablation) -> tuple[str, ...]:
    """The arms that every other is held against: the human and the LLM arm, else the first."""
    return (HUMAN, LLM) if ablation.human is not None else arms_of(ablation)[:1]


def _table(ablation: Ablation, out: Path) -> Ablated:
    names = arms_of(ablation)
    beside = read_beside([out / run_name(arm, seed) for arm in names for seed in ablation.seeds])
    seeds = len(ablation.seeds)
    tables = {
        arm: np.sum([one.statistics for one in beside.evaluated[index * seeds : (index + 1) * seeds]], axis=0)
        for index, arm in enumerate(names)
    }
    arms = tuple(
        _arm(
            arm,
            tables[arm],
            beside.layout,
            trained=[read_run(out / f"{arm}.{seed}.model") for seed in ablation.seeds],
            evaluated=[one.run for one in beside.evaluated[index * seeds : (index + 1) * seeds]],
        )
        for index, arm in enumerate(names)
    )
    return Ablated(arms, _differences(tables, beside.layout, references(ablation)))


def _arm(name: str, table: Integers, layout: Layout, *, trained: Sequence[Run], evaluated: Sequence[Run]) -> Arm:
    totals = resample(Items(layout, table, _NUM_RESAMPLES), seed=0)
    categories = by_category(totals.cells)
    # Sums over seeds divide away in a share; only n has to be counted once.
    accuracy, exact = (estimate_macro(totals, categories, share) for share in (ACCURACY, EXACT_MATCH))
    return Arm(
        name,
        float(np.mean([one.summary["num_prompts"] for one in trained])),
        float(np.mean([one.summary["num_pairs"] for one in trained])),
        accuracy._replace(n=accuracy.n // len(evaluated)),
        exact._replace(n=exact.n // len(evaluated)),
        tuple(one.summary["accuracy"]["value"] for one in evaluated),
    )


def _differences(tables: Mapping[str, Integers], layout: Layout, against: Sequence[str]) -> tuple[Against, ...]:
    pairs = [
        (arm, other) for other in against for arm in tables if arm != other and (other, arm) not in _twice(against)
    ]
    found = [compare(layout, tables[arm], tables[other], num_resamples=_NUM_RESAMPLES, seed=0) for arm, other in pairs]
    corrected = holm([one.p_accuracy for one in found])
    return tuple(Against(*pair, one, p) for pair, one, p in zip(pairs, found, corrected, strict=True))


def _twice(against: Sequence[str]) -> set[tuple[str, str]]:
    """Pairs of references that stand the other way round already."""
    return {(first, second) for index, first in enumerate(against) for second in against[index + 1 :]}


def _drawn(found: Ablated) -> str:
    import vl_convert

    from steelyard.methods.reporting.ablation import ablation_figure

    rows = [(one.name, one.accuracy, one.by_seed) for one in found.arms]
    return vl_convert.vegalite_to_svg(ablation_figure(rows))
