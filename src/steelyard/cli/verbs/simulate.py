"""Make cases to try things on: hand-written good answers, generated worse ones, and simulated verdicts.

No person judged anything here. `cases.jsonl` has the verdicts of simulated people, `llm.jsonl` those of a simulated
LLM on the same responses, `gold.jsonl` their true ranking. `test.jsonl` has other prompts with their true ranking,
and `kinds.jsonl` sets their good answers against one worse answer of each kind.

Example: `steelyard simulate --out simulated --seed 1`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.stage_verb import SettingOption, StageOption, StageVerb
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.stages.simulate import SimulationSummary


def lines(run: "Run[SimulationSummary]", out: Path) -> Iterator[str]:
    """Yield the number of prompts in each part and of judgments of each kind."""
    yield "simulated: worse answers are generated, verdicts drawn from a noise model"
    yield from (f"{part}: {number} prompts" for part, number in run.summary.num_prompts.items())
    yield from (f"{number:,} judgments of kind {kind}" for kind, number in run.summary.num_judgments.items())


command = StageVerb("simulate", (StageOption("out", "The folder for the case files."), SettingOption("seed")), lines)
