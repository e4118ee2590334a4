"""From prompts to responses that can be judged: `sample` and `clean`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.forecast_lines import sampling_forecast_lines
from steelyard.cli.options import BATCH_OPTIONS, CASES, SettingOption, StageOption, in_panel
from steelyard.cli.output import next_line, report_step
from steelyard.cli.verb import StageVerb
from steelyard.core.text import number_of

if TYPE_CHECKING:
    from steelyard.responses.cleaning_summary import CleanPreview, RuleCounts

_MAX_MODELS = 6
_MAX_RULES = 6
_SHOWN_CHARACTERS = 90


SAMPLE = StageVerb(
    "sample",
    """Let the models of a plan answer the prompts of a case file.

    A plan is a TOML file with a [[models]] table for each model: its chat, as `judge` takes it, how many responses it
    writes, temperature, seed and system prompt. Replies are stored as they come: an interrupted run resumes, and sends
    no request twice. OUT/cases.jsonl has the cases with the responses added; those that a case had stay.

    Example: `steelyard sample cases.jsonl --plan plan.toml --out sampled`

    Example: `steelyard sample cases.jsonl --plan plan.toml --dry-run --out sampled`

    Shipped plans: `cheems` (the twelve models of CheemsBench) and `local` (one model in a folder), in recipes/plans.
    """,
    (
        CASES,
        StageOption("plan", "The plan: a TOML file, or the name of a shipped plan."),
        StageOption("out", "The folder for cases.jsonl and run.json."),
        SettingOption("refused"),
        SettingOption("cut_off"),
        SettingOption("seed"),
        StageOption("allow_failed", "Finish although requests failed: no responses from those."),
        StageOption("dry_run", "Forecast requests, tokens and money; send and write nothing."),
        *in_panel("Batch files", *BATCH_OPTIONS),
    ),
    lambda forecast, out: sampling_forecast_lines(forecast),
    lambda run, out: next_line("judge", out / "cases.jsonl", "--out", "judged"),
)


def _preview(preview: "CleanPreview", out: Path) -> Iterator[str]:
    """Yield what would be dropped by each rule, with examples."""
    summary, counts = preview.summary, preview.counts
    dropped, responses = counts.num_in - counts.num_used, number_of(counts.num_in, "response")
    yield f"{dropped:,} of {responses} would be dropped: nothing is written"
    for rule in sorted((rule for rule in summary.rules if rule.num_broken), key=lambda rule: -rule.num_broken):
        yield f"  {rule.rule} ({rule.action}): {rule.num_broken:,}, {_limit(rule)}"
        yield from _example_lines(rule)
    if summary.num_prompts_with_few:
        yield f"prompts with fewer than 2 responses: {summary.num_prompts_with_few:,} of {summary.num_prompts:,}"


def _limit(rule: "RuleCounts") -> str:
    bound = "usual in its category and language" if rule.limit is None else f"{rule.limit:g}"
    return f"{rule.measures}, limit {bound}"


def _example_lines(rule: "RuleCounts") -> Iterator[str]:
    for example in rule.examples:
        text = " ".join(example.text.split())
        shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]} … {text[-30:]}"
        yield f"    {example.prompt} {example.response} ({example.figure:g}): {shown}"


CLEAN = StageVerb(
    "clean",
    """Drop broken responses by rules, and mask the names by which models say what they are.

    Rules find answers that are empty, cut off, garbled, repeated, in the wrong language, refused, copied from the
    prompt, or of unusual length for their category and language. They are made to miss little, so look at --dry-run
    first. Every broken rule is a line of OUT/manifest.jsonl with its figure and limit. Judgments, ratings, ranks and
    pairs of dropped responses leave with them, and are counted.

    Example: `steelyard clean cases.jsonl --dry-run --out cleaned`

    Example: `steelyard clean cases.jsonl --action refusal=count --limit repeated_text=0.5 --out cleaned`
    """,
    (
        CASES,
        StageOption("out", "The folder for cases.jsonl and manifest.jsonl."),
        StageOption("dry_run", "Print what would be dropped, with examples of each rule; write nothing."),
        SettingOption("actions", "--action", note="As RULE=ACTION; repeat."),
        SettingOption("limits", "--limit", note="As RULE=NUMBER; repeat."),
        SettingOption("languages"),
        SettingOption("small_prompts"),
        StageOption("workers", "The number of processes. Default: one a core for a large file."),
    ),
    _preview,
    next_step=report_step("shows examples of each rule"),
)

VERBS = (SAMPLE, CLEAN)
