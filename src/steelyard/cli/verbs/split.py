"""Split a case file by prompt: what belongs together stays in one part.

Branches of one conversation, one item in several languages and near-duplicate prompts are never divided; every part
gets its share of each category, source and language.

Near-duplicates are prompts that share at least 0.8 of their short runs of characters, in any language.
`--near-duplicates off` joins equal prompts only.

Example: `steelyard split cases.jsonl --out parts --part train=0.7 --part held_out=0.1 --part test=0.2`

Example: `steelyard split cases.jsonl --out parts --near-duplicates 0.6 --stratify language --stratify source`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.stage_verb import CASES, SettingOption, StageOption, StageVerb
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.stages.split import SplitSummary


def lines(run: "Run[SplitSummary]", out: Path) -> Iterator[str]:
    """Yield the size of each part, and how many prompts near-duplicates keep together."""
    for name, size in run.summary.parts.items():
        yield f"{name}: {size} cases in {out / name}.jsonl"
    if joined := run.summary.num_joined_as_near_duplicates:
        yield f"near-duplicates: {joined} prompts go with another; largest group {run.summary.largest_group}"


command = StageVerb(
    "split",
    (
        CASES,
        StageOption("out", "The folder for the parts."),
        SettingOption("parts", "--part", note="As NAME=SHARE; repeat."),
        SettingOption("near_duplicates"),
        SettingOption("strata", "--stratify", note="Repeat."),
        SettingOption("seed"),
    ),
    lines,
)
