"""Join case files about the same prompts: the responses, judgments and ratings of all.

Cases are matched by prompt id and language, their contents by id. Where rankings differ, none is written and the cases
are counted: run `steelyard resolve` on the merged file.

Example: `steelyard merge human.jsonl llm.jsonl --out merged`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.stage_verb import StageArgument, StageOption, StageVerb
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.stages.merge import MergeSummary


def lines(run: "Run[MergeSummary]", out: Path) -> Iterator[str]:
    """Yield the number of merged cases."""
    yield f"{run.summary.num_cases:,} cases in {out / 'cases.jsonl'}"


command = StageVerb(
    "merge",
    (StageArgument("files", "Two case files or more."), StageOption("out", "The folder for cases.jsonl.")),
    lines,
)
