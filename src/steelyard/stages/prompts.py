"""The verb `prompts`: raw prompts into a set for annotation. Languages, duplicates, private data, categories, balance.

Prompts are screened one by one in worker processes; what stays is compared with each other, categorised by a language
model where one is given, and then balanced. Every rule that a prompt broke is a line of ``manifest.jsonl``. The file is
read several times, so that only what is compared of a prompt stays in memory: about 3 kB each.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import msgspec

from steelyard.core.config import Positive
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Meta, Run
from steelyard.evaluation.prompt_files import read_references, reference_files, with_shares
from steelyard.io.ledger import LEDGER_FILE, open_ledger, read_ledger
from steelyard.io.lines import check_readable
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import CASES, CaseFile, Option, SettingOption, Verb, refuse_ignored, settings
from steelyard.judging.prompt_models import PromptModels
from steelyard.judging.prompt_questions import PromptsPreview
from steelyard.judging.prompt_run import PromptRun
from steelyard.judging.prompt_screening import read_categories
from steelyard.prompts.classification import ClassifiedPrompts
from steelyard.prompts.screening import PromptsSummary
from steelyard.prompts.selection import SelectionConfig, check_selection


class Config(SelectionConfig, frozen=True):
    """Settings of the screening, of the selection, and of the language models that help."""

    chat: Meta = msgspec.field(default_factory=dict)
    """A language model that screens for harm, and for English that cannot be translated where language_bound is on: its
    kind and settings (docs/settings.md, under chats). Default: none."""
    classify: Meta = msgspec.field(default_factory=dict)
    """The chat that gives categories. Its kind and settings are as those of chat."""
    classified: ClassifiedPrompts = "missing"
    """Prompts to classify: missing (without a category), unknown (or with one that the taxonomy lacks), all."""
    max_tokens: Positive = 512
    """The longest reply of a language model."""


_DEFAULT = Config()


VERB = Verb(
    "Prompts and responses",
    30,
    (
        CASES,
        Option("out", "The folder for cases.jsonl and manifest.jsonl."),
        Option("against", "A benchmark whose prompts are left out; repeat."),
        Option("trained", "A model whose training prompts are left out; repeat."),
        Option("shares", "A TOML file of wanted shares: [category], [language]."),
        Option("taxonomy", "A TOML file of your own categories."),
        SettingOption("classify", note="As KEY=VALUE; repeat."),
        SettingOption("classified"),
        Option("human", "People's categories, compared with a model's."),
        Option("dry_run", "Show examples and a forecast; write nothing."),
        Option("allow_failed", "Finish although requests failed: no category."),
        Option("workers", "The number of processes. Default: one a core."),
        SettingOption("languages"),
        SettingOption("only_languages", "only_language", note="Repeat."),
        SettingOption("near_duplicates"),
        SettingOption("private_data", note="As KIND=ACTION; repeat."),
        *settings("harmful", "language_bound"),
        SettingOption("seed"),
    ),
    instead=(("dry_run", "preview"),),
)


def prompts(
    cases: CaseFile,
    out: Path,
    config: Config = _DEFAULT,
    *,
    against: Sequence[CaseFile] = (),
    trained: Sequence[Path] = (),
    shares: Path | None = None,
    taxonomy: Path | None = None,
    human: CaseFile | None = None,
    workers: int | None = None,
    allow_failed: bool = False,
    force: bool = False,
) -> Run[PromptsSummary]:
    """Prepare raw prompts: languages, duplicates, overlap, private data, harm, balance.

    Prompts without a language get the identified one. Duplicates, near-duplicates in one language, prompts with private
    data and those that overlap with ``against`` or ``trained`` are dropped; prompts that ask for harm are counted.
    OUT/manifest.jsonl has every rule that a prompt broke, OUT/kept.json the ids that stay. Translations of a prompt are
    other prompts. Kinds of private data: address, bank_card, e_mail, iban, national_id, passport, phone, tax_number.
    The rules for harm miss most; the setting `chat.model` asks a language model too.

    ``classify`` asks a language model for categories, of the built-in taxonomy or of ``taxonomy``; ``human``
    compares them with people's. An interrupted run resumes. With ``dry_run`` no model answers and nothing is written.

    Example: `steelyard prompts raw.jsonl --out prepared --dry-run`

    Example: `steelyard prompts raw.jsonl --against bench.jsonl --trained my-model --out prepared`

    Example: `steelyard prompts raw.jsonl --shares shares.toml --private-data e_mail=mask --out prepared`

    Example: `steelyard prompts raw.jsonl --classify base_url=http://localhost:8000/v1 --classify model=NAME
    --dry-run --out prepared`

    Example: `steelyard prompts bench.jsonl --language-bound drop --out kept`

    Raises ConfigError for settings that cannot be met, EvidenceError where no prompt stays, RecordError for a category
    by people that the taxonomy lacks, FailuresError where requests failed unless ``allow_failed``, MissingPartError
    without `multilingual`.

    >>> prepared = sy.prompts(cases, near_duplicates="off", language_shares={"en": 0.5, "zh": 0.5})
    >>> prepared.summary.num_kept
    40
    >>> prepared.summary.drops
    {}
    >>> sy.prompts(cases, near_duplicates="off", dry_run=True).counts.num_used
    40
    """
    model = Advice("name a language model: ", Remedy("classify", ("KEY=VALUE",)))
    if not (config.chat or config.classify):
        asking = {**config.changed("max_tokens"), "allow_failed": allow_failed}
        refuse_ignored(asking, "where no language model helps", model)
    if not config.classify:
        refuse_ignored(config.changed("classified"), "where no language model gives categories", model)
    plan = _planned(
        cases,
        config,
        against=against,
        trained=trained,
        shares=shares,
        taxonomy=taxonomy,
        human=human,
        workers=workers,
    )
    # Shares of a file are the file's, whose hash is recorded; settings stay as they were given.
    settings = msgspec.to_builtins(config) | {
        name: choice.settings for name, choice in plan.models.by_setting().items()
    }
    files = {"shares": shares, "taxonomy": taxonomy, "human": human}
    inputs = {"cases": cases, **reference_files(against, trained)}
    inputs |= {name: path for name, path in files.items() if path is not None}
    inputs |= plan.models.inputs()

    def write(result: Result) -> None:
        with open_ledger(result.path(LEDGER_FILE)) if plan.models.by_setting() else nullcontext() as ledger:
            plan.write(result, ledger, allow_failed=allow_failed)

    return run_stage(out, "prompts", Run[PromptsSummary], write, config=settings, inputs=inputs, force=force)


def preview(
    cases: Path,
    out: Path,
    config: Config = _DEFAULT,
    *,
    against: Sequence[Path] = (),
    trained: Sequence[Path] = (),
    shares: Path | None = None,
    taxonomy: Path | None = None,
    human: Path | None = None,
    workers: int | None = None,
) -> PromptsPreview:
    """Return what `prompts` would keep, with examples of each rule, and forecast the requests to language models.

    Nothing is written and no model answers. Errors are those of `prompts`.
    """
    plan = _planned(
        cases,
        config,
        against=against,
        trained=trained,
        shares=shares,
        taxonomy=taxonomy,
        human=human,
        workers=workers,
    )
    with read_ledger(out / LEDGER_FILE) as ledger:
        return plan.preview(ledger)


def _planned(
    cases: Path,
    config: Config,
    *,
    against: Sequence[Path],
    trained: Sequence[Path],
    shares: Path | None,
    taxonomy: Path | None,
    human: Path | None,
    workers: int | None,
) -> PromptRun:
    """Check every input before any prompt is screened."""
    for path in (cases, *against):
        check_readable(path)
    config = with_shares(config, shares)
    check_selection(config)
    models = PromptModels.of(chat=config.chat, classify=config.classify, max_tokens=config.max_tokens)
    categories = read_categories(taxonomy, human, is_classified=models.classify is not None)
    references = read_references(against, trained, config)
    return PromptRun(cases, config, models, config.classified, categories, references, workers)
