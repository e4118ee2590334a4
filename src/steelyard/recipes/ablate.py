"""Running an ablation: every arm and seed as one recipe, then the arms side by side on the same prompts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.io.atomic import atomic_write, write_text
from steelyard.recipes.ablations import HUMAN, LLM, Ablation, ablation_recipe, arms_of
from steelyard.recipes.arms import Against, Arm, Measured, differences, read_arms
from steelyard.recipes.run import run

TABLE_FILE, PLOT_FILE = "ablation.json", "ablation.svg"


class Ablated(NamedTuple):
    """The whole table."""

    arms: tuple[Arm, ...]
    against: tuple[Against, ...]

    def record(self) -> dict[str, Any]:
        """The table as it is written."""
        return {
            "arms": [one.record() for one in self.arms],
            "differences": [one.record() for one in self.against],
            "correction": "Holm, over all differences here",
        }


def ablate(ablation: Ablation, path: Path, out: Path) -> Ablated:
    """Train and evaluate every arm with every seed, and write ``ablation.json`` and ``ablation.svg``.

    Finished stages are skipped: after a kill, or with a further seed or arm, the same folder goes on. Raises what the
    stages raise.
    """
    run(ablation_recipe(ablation, path), out)
    found = _table(ablation, out)
    with atomic_write(out / TABLE_FILE) as file:
        file.write(msgspec.json.format(msgspec.json.encode(found.record()), indent=2) + b"\n")
    write_text(out / PLOT_FILE, _drawn(found))
    return found


def references(ablation: Ablation) -> tuple[str, ...]:
    """The arms that every other is held against: the human and the LLM arm, else the first."""
    return (HUMAN, LLM) if ablation.human is not None else arms_of(ablation)[:1]


def _table(ablation: Ablation, out: Path) -> Ablated:
    measured = read_arms(arms_of(ablation), ablation.seeds, out)
    return Ablated(measured.arms, _differences(measured, references(ablation)))


def _differences(measured: Measured, against: Sequence[str]) -> tuple[Against, ...]:
    tables = measured.statistics
    pairs = [
        (arm, other) for other in against for arm in tables if arm != other and (other, arm) not in _twice(against)
    ]
    return differences(measured, pairs)


def _twice(against: Sequence[str]) -> set[tuple[str, str]]:
    """Pairs of references that stand the other way round already."""
    return {(first, second) for index, first in enumerate(against) for second in against[index + 1 :]}


def _drawn(found: Ablated) -> str:
    import vl_convert

    from steelyard.report.ablation import ablation_figure

    rows = [(one.name, one.accuracy, one.by_seed) for one in found.arms]
    return vl_convert.vegalite_to_svg(ablation_figure(rows))
