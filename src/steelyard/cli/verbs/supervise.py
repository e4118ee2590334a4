"""Let a reward model trained on human judgments filter those of an LLM (distant supervision).

Policies: `agree` keeps a strict verdict if the model's margin for it is above 0 and at least tau, and drops ties;
`cycles` drops only what closes a cycle, the pairs with the smallest margin first; `weight` drops nothing and lists
each pair with the model's belief in it as its weight.

OUT/cases.jsonl has what is kept, ranked again; manifest.jsonl has each dropped judgment with its rule. A supervisor
may not judge prompts that it was trained on.

With --calibrate, tau is the smallest at which the kept verdicts are right as often as --precision asks. That file
needs judgments by people and by the LLM on the same pairs.

Example: `steelyard supervise llm.jsonl --model my-rm --out supervised --tau 0.5`

Example: `steelyard supervise llm.jsonl --model my-rm --out calibrated --calibrate held_out.jsonl --precision 0.9`

Example: `steelyard supervise llm.jsonl --scores scored/scores.jsonl --out acyclic --policy cycles`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.completion import complete_model
from steelyard.cli.output import interval_text
from steelyard.cli.stage_verb import MODEL_SETTINGS, ONLY, SettingOption, StageArgument, StageOption, StageVerb
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.stages.supervise import SupervisionSummary


def lines(run: "Run[SupervisionSummary]", out: Path) -> Iterator[str]:
    """Yield how many judgments are kept, and how often these are right."""
    summary, coverage = run.summary, run.summary.coverage
    counts = f"{summary.num_strict_kept:,} of {summary.num_strict:,} strict judgments kept"
    yield f"{counts} ({coverage.strict:.1%}), in {coverage.prompts:.1%} of the prompts: {out / 'cases.jsonl'}"
    row = next((row for row in summary.by_tau if row.tau == summary.tau), None)
    if row and row.precision.n:
        share = row.precision
        yield f"precision at tau {row.tau:.6g}: {interval_text(share)} of {share.n:,}, from {summary.precision_from}"
    if certificate := summary.calibration:
        yield f"certified: at least {certificate.precision} with confidence {certificate.confidence}"
    yield f"dropped judgments with their rules: {out / 'manifest.jsonl'}"


command = StageVerb(
    "supervise",
    (
        StageArgument("cases", "The case file with the judgments to be filtered."),
        StageOption("out", "The folder for cases.jsonl, manifest.jsonl and run.json."),
        StageOption("model", "The supervisor: a trained model's folder, or a kind.", complete=complete_model),
        StageOption("scores", "The supervisor's scores of the cases, instead of --model."),
        SettingOption("policy"),
        SettingOption("tau"),
        SettingOption("keep_ties"),
        StageOption("calibrate", "Choose tau on these held-out cases, judged by people too."),
        StageOption("calibrate_scores", "The supervisor's scores of those cases, where --scores is given."),
        SettingOption("precision"),
        SettingOption("confidence"),
        StageOption("train_cases", "The supervisor's training cases: it may not judge their prompts."),
        ONLY,
        *MODEL_SETTINGS,
    ),
    lines,
)
