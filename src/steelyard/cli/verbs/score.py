"""Score every response of a case file with a reward model.

OUT/scores.jsonl has one line for each case: the score of each response id, or null and the reason. Before it scores,
a model is tested on a few of the cases: batches, packing, beginning mark, last token, head, length.

Example: `steelyard score cases.jsonl --model my-model --out scored`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.stage_verb import CASES, MODEL, MODEL_SETTINGS, SettingOption, StageOption, StageVerb
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.stages.score import ScoreSummary


def lines(run: "Run[ScoreSummary]", out: Path) -> Iterator[str]:
    """Yield how many responses have a score, and how many are cut or too long."""
    from steelyard.evaluation.coverage import coverage_lines

    summary = run.summary
    num_scored = summary.num_responses - summary.unscored.num_responses
    yield f"{num_scored:,} of {summary.num_responses:,} responses have a score: {out / 'scores.jsonl'}"
    yield from coverage_lines(summary.coverage)


command = StageVerb(
    "score",
    (CASES, MODEL, StageOption("out", "The folder for scores.jsonl and run.json."), *MODEL_SETTINGS,
     SettingOption("self_test", "--no-self-test")),
    lines,
)  # fmt: skip
