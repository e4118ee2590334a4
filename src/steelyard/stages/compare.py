"""The verb `compare`: all pairwise differences of evaluations of one bench, corrected for multiple comparisons."""

from collections.abc import Sequence
from pathlib import Path

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import EvidenceError
from steelyard.core.remedies import Advice, Command
from steelyard.core.types import Counts, Run
from steelyard.evaluation.comparison import ComparisonSummary, compare_models
from steelyard.evaluation.evaluations import read_evaluations
from steelyard.io.data_files import find_runs
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import Argument, Option, RunFolder, Verb
from steelyard.statistics.significance import NUM_RESAMPLES


class Config(BaseConfig, frozen=True):
    """The resampling of prompts."""

    num_resamples: Positive = NUM_RESAMPLES
    """The number of bootstrap resamples of prompts."""
    seed: int = 0
    """The seed of the resamples."""


_DEFAULT = Config()


VERB = Verb(
    "Comparisons and reports",
    60,
    (
        Argument("runs", "Evaluations of the same file: their folders, folders of runs, or quoted patterns."),
        Option("out", "The folder for the result, run.json."),
    ),
)


def compare(
    runs: Sequence[RunFolder], out: Path, config: Config = _DEFAULT, *, force: bool = False
) -> Run[ComparisonSummary]:
    """Compare models on the same prompts: significant differences, and the smallest that this many prompts can show.

    Each bootstrap sample of prompts serves both models of a pair; p-values are corrected for the number of pairs.
    Evaluations of different prompts, or by different rules, are refused.

    Example: `steelyard compare evaluated-a evaluated-b --out compared`

    Raises EvidenceError for fewer than two evaluations, for a repeated folder, whose comparison with itself would count
    in the correction of the others, and for evaluations of different prompts or settings.

    >>> compared = sy.compare([sy.evaluate("longer", cases), sy.evaluate("shorter", cases)])
    >>> compared.summary.comparisons[0].accuracy.value
    1.0
    >>> compared.table[0]["first"]
    'longer'
    """
    runs = find_runs(runs, "evaluate")
    if len({folder.resolve() for folder in runs}) < len(runs):
        raise EvidenceError(
            "a folder is named twice", do=Advice("name each folder of `", Command("evaluate"), "` once")
        )
    if len(runs) < 2:
        raise EvidenceError(
            f"a comparison needs at least two evaluations, got {len(runs)}",
            do=Advice("name two or more folders of `", Command("evaluate"), "`"),
        )
    evaluations = read_evaluations(runs)
    inputs = {f"run.{number}": folder / "run.json" for number, folder in enumerate(runs, 1)}

    def write(result: Result) -> None:
        findings = [finding for model in evaluations.evaluated for finding in model.run.findings]
        result.findings = tuple(finding for place, finding in enumerate(findings) if finding not in findings[:place])
        result.summary = compare_models(evaluations, num_resamples=config.num_resamples, seed=config.seed)
        noted = {"prompts": len(evaluations.evaluated[0].statistics)}
        if evaluations.num_unshared:
            noted["prompts with a pair of equal texts in one evaluation only, left out"] = evaluations.num_unshared
        result.counts = Counts(num_in=len(runs), num_used=len(runs), noted=noted)

    return run_stage(out, "compare", Run[ComparisonSummary], write, config=config, inputs=inputs, force=force)
