"""The verb `compare`: evaluations of one bench side by side, every two of them, corrected for how many there are."""

from collections.abc import Sequence
from pathlib import Path

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Counts, Run
from steelyard.evaluation.comparison import ComparisonSummary, compare_models
from steelyard.evaluation.evaluations import read_evaluations
from steelyard.io.run_folder import Result, run_stage
from steelyard.statistics.significance import NUM_RESAMPLES


class Config(BaseConfig, frozen=True):
    """How often prompts are resampled."""

    num_resamples: Positive = NUM_RESAMPLES
    """The number of bootstrap resamples of prompts."""
    seed: int = 0
    """The seed of the resamples."""


_DEFAULT = Config()


def compare(
    runs: Sequence[Path], out: Path, config: Config = _DEFAULT, *, force: bool = False
) -> Run[ComparisonSummary]:
    """Compare every two of the evaluations in ``runs``, and rank them as far as the data allow.

    Raises EvidenceError for fewer than two, or for evaluations of other prompts or under another protocol.
    """
    if len(runs) < 2:
        raise EvidenceError("one evaluation alone", do="name two or more --out folders of `steelyard evaluate`")
    evaluations = read_evaluations(runs)
    inputs = {f"run.{number}": folder / "run.json" for number, folder in enumerate(runs, 1)}

    def write(result: Result) -> None:
        result.summary = compare_models(evaluations, num_resamples=config.num_resamples, seed=config.seed)
        result.counts = Counts(
            num_in=len(runs), num_used=len(runs), noted={"prompts": len(evaluations.evaluated[0].statistics)}
        )

    return run_stage(out, "compare", Run[ComparisonSummary], write, config=config, inputs=inputs, force=force)
