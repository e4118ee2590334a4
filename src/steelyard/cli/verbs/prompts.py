"""The verb `prompts`: what a set of raw prompts holds, and which of them stay."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.forecast_lines import model_lines
from steelyard.cli.options import CASES, SettingOption, StageOption
from steelyard.cli.output import report_step
from steelyard.cli.verb import StageVerb
from steelyard.core.text import number_of
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.judging.prompt_questions import PromptsPreview


def _preview(preview: "PromptsPreview", out: Path) -> Iterator[str]:
    """Yield how many prompts would stay, the findings with examples, and what questions to a model would cost."""
    from steelyard.views.text import result_sentences

    summary = preview.summary
    yield f"{summary.num_kept:,} of {number_of(summary.num_in, 'prompt')} would stay; nothing was written"
    # The first sentence says what stays, which is a plan here.
    run = Run(stage="prompts", config={}, counts=preview.counts, summary=summary)
    yield from islice(result_sentences(run, Path()), 1, None)
    for rule, numbers in summary.findings.items():
        actions = ", ".join(f"{action} {number:,}" for action, number in numbers.items())
        yield f"{rule}: {sum(numbers.values()):,} ({actions})"
        for row in preview.examples.get(rule, ()):
            figure = "" if row.figure is None else f" [{row.figure:g}]"
            yield f"  {row.action} {row.prompt}{figure}: {row.excerpt}"
    for forecast in preview.forecasts:
        yield from model_lines(forecast)


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
    _preview,
    next_step=report_step("shows what was found"),
)
