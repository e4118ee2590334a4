"""From prompts to responses that can be judged: `sample` and `clean`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.forecast_lines import sampling_forecast_lines
from steelyard.cli.options import BATCH_OPTIONS, CASES, SettingOption, StageOption, in_panel
from steelyard.cli.output import TerminalTable, cost_lines, next_line
from steelyard.cli.verb import StageVerb
from steelyard.core.text import money_text, number_of
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.judging.sampling_forecast import SamplingForecast
    from steelyard.judging.sampling_summary import ResponseCounts, SamplingSummary
    from steelyard.responses.cleaning_summary import CleanPreview, CleanSummary, RuleCounts

_MAX_MODELS = 6
_MAX_RULES = 6
_SHOWN_CHARACTERS = 90


def _sample_answer(run: "Run[SamplingSummary] | SamplingForecast", out: Path) -> Iterator[str]:
    if not isinstance(run, Run):
        yield from sampling_forecast_lines(run)
        return
    summary = run.summary
    prompts = number_of(run.counts.num_in, "prompt")
    number = number_of(summary.num_responses, "response")
    yield f"{number_of(len(summary.models), 'model')} wrote {number} to {prompts}: {out / 'cases.jsonl'}"
    for name, counts in list(summary.models.items())[:_MAX_MODELS]:
        yield _model_line(name, counts)
    if len(summary.models) > _MAX_MODELS:
        yield f"… {len(summary.models) - _MAX_MODELS} more models: --verbose"
    yield from cost_lines(summary.tokens)
    yield next_line("judge", out / "cases.jsonl", "--out", "judged")


def _model_line(name: str, counts: "ResponseCounts") -> str:
    """Return a model's responses, their median length, and the samples that became none, by reason."""
    reasons = {
        "refused": counts.refused,
        "cut off": counts.cut_off,
        "empty": counts.empty,
        "failed": counts.failed,
        "identical to another": counts.num_repeated,
    }
    parts = [f"{reason} {number:,}" for reason, number in reasons.items() if number]
    median = "" if counts.characters.median is None else f", median {counts.characters.median:,} characters"
    of = f"{counts.num_responses:,} of {counts.num_planned:,} responses"
    return f"  {name}: {of}{median}{''.join(f'; {part}' for part in parts)}"


def _sample_details(run: "Run[SamplingSummary] | SamplingForecast", _: Path) -> Iterator[str | TerminalTable]:
    if not isinstance(run, Run):
        return
    summary = run.summary
    rows = [
        (name, *(f"{number:,}" for number in (counts.num_prompts, counts.num_planned, counts.num_responses,
                                              counts.refused, counts.cut_off, counts.empty, counts.failed,
                                              counts.num_repeated)), _lengths(counts))
        for name, counts in summary.models.items()
    ]  # fmt: skip
    heads = (
        "prompts", "planned", "responses", "refused", "cut off", "empty", "failed", "identical", "characters\n5–50–95 %"
    )  # fmt: skip
    yield TerminalTable("Responses by model", heads, rows)
    for name, used in summary.tokens.items():
        cost = "" if used.cost is None else f", cost {money_text(used.cost)}"
        yield f"{name}: {used.prompt:,} prompt tokens, {used.reply:,} reply tokens{cost}"
    if (meetings := summary.meetings) is not None:
        yield f"any two models answered the same prompt {meetings.fewest:,} to {meetings.most:,} times"
    shown = ", ".join(f"{key}: {number:,}" for key, number in summary.responses_per_prompt.items())
    yield f"prompts by number of responses: {shown}"


def _lengths(counts: "ResponseCounts") -> str:
    quantiles = counts.characters
    return "-" if quantiles.median is None else f"{quantiles.low:,}–{quantiles.median:,}–{quantiles.high:,}"


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
    _sample_answer,
    _sample_details,
)


def _clean_answer(run: "Run[CleanSummary] | CleanPreview", out: Path) -> Iterator[str | TerminalTable]:
    summary, counts = run.summary, run.counts
    responses, dropped = number_of(counts.num_in, "response"), f"{counts.num_in - counts.num_used:,}"
    is_dry = not isinstance(run, Run)
    place = "nothing is written" if is_dry else out / "cases.jsonl"
    yield f"{dropped} of {responses} {'would be' if is_dry else 'are'} dropped: {place}"
    broken = sorted((rule for rule in summary.rules if rule.num_broken), key=lambda rule: -rule.num_broken)
    for rule in broken if is_dry else broken[:_MAX_RULES]:
        yield f"  {rule.rule} ({rule.action}): {rule.num_broken:,}, {_limit(rule)}"
        if is_dry:
            yield from _example_lines(rule)
    if len(broken) > _MAX_RULES and not is_dry:
        yield f"… {number_of(len(broken) - _MAX_RULES, 'more rule')}: --verbose"
    if summary.num_prompts_with_few:
        yield f"prompts with fewer than 2 responses: {summary.num_prompts_with_few:,} of {summary.num_prompts:,}"
    if not is_dry:
        yield next_line("report", out, "--out", "report.html", effect="shows examples of each rule")


def _limit(rule: "RuleCounts") -> str:
    bound = "usual in its category and language" if rule.limit is None else f"{rule.limit:g}"
    return f"{rule.measures}, limit {bound}"


def _example_lines(rule: "RuleCounts") -> Iterator[str]:
    for example in rule.examples:
        text = " ".join(example.text.split())
        shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]} … {text[-30:]}"
        yield f"    {example.prompt} {example.response} ({example.figure:g}): {shown}"


def _clean_details(run: "Run[CleanSummary] | CleanPreview", _: Path) -> Iterator[str | TerminalTable]:
    rules = [
        (rule.rule, rule.action, f"{rule.num_broken:,}", f"{rule.num_first:,}", _limit(rule))
        for rule in run.summary.rules
    ]
    yield TerminalTable("Rules", ("does", "broken by", "dropped first", "measures"), rules)
    for title, groups in (("Authors", run.summary.authors), ("Languages", run.summary.languages)):
        rows = [
            (name, f"{group.num_responses:,}", f"{group.num_dropped:,}", f"{group.share:.1%}")
            for name, group in groups.items()
        ]
        yield TerminalTable(title, ("responses", "dropped", "share"), rows)


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
    _clean_answer,
    _clean_details,
)

VERBS = (SAMPLE, CLEAN)
