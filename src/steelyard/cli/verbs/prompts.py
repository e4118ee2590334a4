"""The verb `prompts`: what a set of raw prompts holds, and which of them stay."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.forecast_lines import model_lines
from steelyard.cli.options import CASES, SettingOption, StageOption
from steelyard.cli.output import TerminalTable, next_line
from steelyard.cli.verb import StageVerb
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.judging.prompt_questions import PromptsPreview
    from steelyard.prompts.screening import PromptsSummary


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
    yield from _category_lines(summary)
    if any(share.wanted is not None for share in summary.shares):
        yield _share_table(summary, None)
    if isinstance(result, Run):
        yield next_line("report", out, "--out", "report.html", effect="shows what was found")
    else:
        yield from _example_lines(result)
        for forecast in result.forecasts:
            yield from model_lines(forecast)


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


def _category_lines(summary: "PromptsSummary") -> Iterator[str]:
    """Yield how many prompts the taxonomy knows, how many a model classified, and its agreement with people."""
    from steelyard.evaluation.tables import plain_row

    if (mapping := summary.mapping) is not None:
        yield f"categories: {mapping.num_known:,} in the taxonomy, {mapping.num_unknown:,} that it lacks"
    if (classification := summary.classification) is None:
        return
    reasons = {"no category fits": classification.num_none, "unreadable": classification.num_unreadable}
    rest = "".join(f"; {reason} {number:,}" for reason, number in reasons.items() if number)
    of = f"{classification.num_assigned:,} of {number_of(classification.num_asked, 'prompt')}"
    yield f"{classification.chat} classified {of}{rest}"
    if (agreement := classification.agreement) is not None:
        prompts = number_of(agreement.num_prompts, "prompt")
        unreadable = f", {agreement.num_unreadable:,} more unreadable" if agreement.num_unreadable else ""
        yield f"compared with people on {prompts}{unreadable}:"
        yield plain_row("  first-tier accuracy", agreement.accuracy)
        yield plain_row("  Cohen's kappa", agreement.kappa)
        if agreement.whole_path.n:
            yield plain_row("  all tiers", agreement.whole_path)


def _agreement_tables(summary: "PromptsSummary") -> Iterator[TerminalTable]:
    agreement = None if summary.classification is None else summary.classification.agreement
    if agreement is None:
        return
    from steelyard.evaluation.tables import plain_estimate

    rows = [
        (
            each.category,
            f"{each.num_people:,}",
            f"{each.num_model:,}",
            plain_estimate(each.recall),
            plain_estimate(each.precision),
        )
        for each in agreement.categories
    ]
    yield TerminalTable("Categories", ("people", "model", "recall", "precision"), rows)
    confused = [(each.people, each.model, f"{each.number:,}") for each in agreement.confusions]
    yield TerminalTable("Confused: people", ("model", "prompts"), confused)


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
    yield from _agreement_tables(result.summary)


PROMPTS = StageVerb(
    "prompts",
    """Prepare raw prompts: languages, duplicates, overlap, private data, harm, balance.

    Prompts without a language get the identified one. Duplicates, near-duplicates in one language, prompts with private
    data and those that overlap with `--against` or `--trained` are dropped; prompts that ask for harm are counted.
    OUT/manifest.jsonl has every rule that a prompt broke. Translations of a prompt are other prompts.

    Kinds of private data: address, bank_card, e_mail, iban, national_id, passport, phone, tax_number. The rules for
    harm miss most; `--set chat.model=NAME` asks a language model too.

    `--classify model=NAME` asks a language model for categories, of the built-in taxonomy or of `--taxonomy`;
    `--human FILE` compares them with people's. An interrupted run resumes.

    Example: `steelyard prompts raw.jsonl --out prepared --dry-run`

    Example: `steelyard prompts raw.jsonl --against bench.jsonl --trained my-model --out prepared`

    Example: `steelyard prompts raw.jsonl --shares shares.toml --private-data e_mail=mask --out prepared`

    Example: `steelyard prompts raw.jsonl --classify base_url=http://localhost:8000/v1 --classify model=NAME
    --dry-run --out prepared`
    """,
    (
        CASES,
        StageOption("out", "The folder for cases.jsonl and manifest.jsonl."),
        StageOption("against", "A benchmark whose prompts are left out; repeat."),
        StageOption("trained", "A model whose training prompts are left out; repeat."),
        StageOption("shares", "A TOML file of wanted shares: [category], [language]."),
        StageOption("taxonomy", "A TOML file of your own categories."),
        SettingOption("classify", note="As KEY=VALUE; repeat."),
        SettingOption("classified"),
        StageOption("human", "People's categories, compared with --classify's."),
        StageOption("dry_run", "Show examples and a forecast; write nothing."),
        StageOption("allow_failed", "Finish although requests failed: no category."),
        StageOption("workers", "The number of processes. Default: one a core."),
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
