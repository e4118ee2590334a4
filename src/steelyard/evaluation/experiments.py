"""Experiments: the arms that `ablate` and `sweep` trained over several seeds, their differences, and their growth."""

from steelyard.core.types import JsonObject, Record
from steelyard.evaluation.bench_table import BenchColumn
from steelyard.evaluation.comparison import PairedDifference
from steelyard.statistics.intervals import Estimate


class ArmValue(Record, frozen=True, kw_only=True):
    """An arm in one column of its bench: the value of a seed drawn at random, those of the seeds, and their spread."""

    column: BenchColumn
    value: Estimate
    by_seed: tuple[float, ...]
    spread: float


class ColumnDifference(Record, frozen=True, kw_only=True):
    """One arm minus another in one column; ``p_corrected`` for all differences and columns (Holm)."""

    column: BenchColumn
    difference: Estimate
    p: float
    p_corrected: float


class Arm(Record, frozen=True):
    """One arm over all its seeds: sizes of its training, its measures, and the standard deviation over seeds.

    Accuracy and exact match are those of a seed drawn at random: statistics are summed over seeds before prompts are
    redrawn. ``num_prompts`` and ``num_pairs`` are means over the trainings; ``spread`` is of the accuracy. ``values``
    are those of all columns of the bench: its headline, and accuracy and exact match of its subsets. With several kinds
    of bench every arm has an entry for each, whose name begins with the kind (``bench``).
    """

    name: str
    num_prompts: float
    num_pairs: float
    num_weights: int
    accuracy: Estimate
    exact_match: Estimate
    accuracy_by_seed: tuple[float, ...]
    spread: float
    bench: str | None = None
    values: tuple[ArmValue, ...] = ()

    @property
    def trained(self) -> str:
        """The name of the arm without that of its bench."""
        return self.name.removeprefix(f"{self.bench}: ")


class SweptArm(Arm, frozen=True, kw_only=True):
    """An arm of a sweep with its backbone, the start of that, its share of the data, and its settings."""

    model: str
    start: str
    share: float
    settings: JsonObject


class ArmDifference(PairedDifference, frozen=True, kw_only=True, omit_defaults=False):
    """One arm minus another over the same seeds."""

    columns: tuple[ColumnDifference, ...] = ()


class Growth(Record, frozen=True, kw_only=True):
    """The gain in accuracy of each doubling of a size (``by``: pairs or weights) along one line of arms."""

    name: str
    by: str
    per_doubling: Estimate
    p: float
    sizes: tuple[float, ...]


class AblationSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``ablate``, and the content of ``ablation.json``."""

    arms: tuple[Arm, ...]
    differences: tuple[ArmDifference, ...]
    correction: str


class SweepSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``sweep``, and the content of ``sweep.json``; ``starts`` compares equal sizes."""

    arms: tuple[SweptArm, ...]
    growth: tuple[Growth, ...]
    starts: tuple[ArmDifference, ...]
    correction: str
