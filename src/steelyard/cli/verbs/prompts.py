"""The verb `prompts`: what a set of raw prompts holds, and which of them stay."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.options import CASES, SettingOption, StageOption
from steelyard.cli.output import TerminalTable, next_line
from steelyard.cli.verb import StageVerb
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.prompts.screening import PromptsSummary
    from steelyard.stages.prompts import PromptsPreview

_MAX_GROUPS = 8


def _prompts_answer(result: "Run[PromptsSummary] | PromptsPreview", out: Path) -> Iterator[str | TerminalTable]:
    summary, is_run = result.summary, isinstance(result, Run)
    stay = verb_for(summary.num_kept, "stays", "stay") if is_run else "would stay"
    where = f": {out / 'cases.jsonl'}" if is_run else "; nothing was written"
    yield f"{summary.num_kept:,} of {number_of(summary.num_in, 'prompt')} {stay}{where}"
    yield from _finding_lines(summary)
    for overlap in summary.overlaps:
        of = "" if overlap.num_prompts is None else f" of {number_of(overlap.num_prompts, 'prompt')}"
        number = number_of(overlap.num_overlapping, "prompt")
        yield f"overlap with {overlap.name}{of}: {number}, {overlap.num_equal:,} with an equal first turn"
    if any(share.wanted is not None for share in summary.shares):
        yield _share_table(summary, None)
    if isinstance(result, Run):
        yield next_line("report", out, "--out", "report.html", effect="shows what was found")
    else:
        yield from _example_lines(result)


def _finding_lines(summary: "PromptsSummary") -> Iterator[str]:
    findings = [
        f"{rule} {sum(numbers.values()):,} ({', '.join(f'{action} {number:,}' for action, number in numbers.items())})"
        for rule, numbers in summary.findings.items()
    ]
    labels = ", ".join(f"{name} {number:,}" for name, number in summary.labels.items())
    yield f"languages: {labels}"
    if summary.scripts:
        yield f"Chinese script: {', '.join(f'{name} {number:,}' for name, number in summary.scripts.items())}"
    for finding in findings:
        yield f"found: {finding}"
    if summary.num_unreadable_replies:
        yield f"replies without an answer: {summary.num_unreadable_replies:,}; these prompts have the rules alone"


def _example_lines(preview: "PromptsPreview") -> Iterator[str]:
    for rule, rows in preview.examples.items():
        yield f"{rule}:"
        for row in rows:
            figure = "" if row.figure is None else f" [{row.figure:g}]"
            yield f"  {row.action} {row.prompt}{figure}: {row.excerpt}"


def _share_table(summary: "PromptsSummary", limit: int | None) -> TerminalTable:
    shown = [share for share in summary.shares if limit is None or share.wanted is not None][:limit]
    rows = [
        (
            share.kind,
            share.name,
            "-" if share.wanted is None else f"{share.wanted:.1%}",
            f"{share.num_before:,}",
            f"{share.num_after:,}",
            "-" if not summary.num_kept else f"{share.num_after / summary.num_kept:.1%}",
        )
        for share in shown
    ]
    return TerminalTable("Shares by", ("group", "wanted", "before", "after", "share after"), rows)


def _prompts_details(result: "Run[PromptsSummary] | PromptsPreview", out: Path) -> Iterator[TerminalTable]:
    if all(share.wanted is None for share in result.summary.shares):
        yield _share_table(result.summary, None)


PROMPTS = StageVerb(
    "prompts",
    """Prepare raw prompts: languages, duplicates, overlap with benchmarks, private data, harm, and balance.

    Prompts without a language get the identified one. Duplicates, near-duplicates in one language, prompts with private
    data, and prompts that overlap with `--against` or `--trained` are dropped; prompts that ask for harm are counted.
    OUT/manifest.jsonl has a line for every rule that a prompt broke, with its figure and limit. `--dry-run` shows
    examples of each rule and writes nothing. Translations of a prompt are other prompts: nothing here finds them.

    Private data are found by patterns with check digits: `--private-data phone=mask --private-data address=count`.
    Kinds: address, bank_card, e_mail, iban, national_id, passport, phone, tax_number. The rules for harm find plain
    requests, and miss most; `--set chat.model=NAME` asks a language model too.

    Example: `steelyard prompts raw.jsonl --out prepared --dry-run`

    Example: `steelyard prompts raw.jsonl --against bench.jsonl --trained my-model --out prepared`

    Example: `steelyard prompts raw.jsonl --shares shares.toml --private-data e_mail=mask --out prepared`
    """,
    (
        CASES,
        StageOption("out", "The folder for cases.jsonl, manifest.jsonl and run.json."),
        StageOption("against", "A benchmark file of any known format, whose prompts are left out; repeat."),
        StageOption("trained", "The folder of a trained model, whose training prompts are left out; repeat."),
        StageOption("shares", "A TOML file with the tables [category] and [language] of wanted shares."),
        StageOption("dry_run", "Show what would be dropped, with examples, and write nothing."),
        StageOption("workers", "The number of processes. Default: one a core for large files."),
        SettingOption("languages"),
        SettingOption("only_languages", "--only-language", note="Repeat."),
        SettingOption("near_duplicates"),
        SettingOption("private_data", note="As KIND=ACTION; repeat."),
        SettingOption("harmful"),
        SettingOption("seed"),
    ),
    _prompts_answer,
    _prompts_details,
)
