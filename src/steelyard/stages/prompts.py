"""The verb `prompts`: raw prompts into a set for annotation. Languages, duplicates, private data, categories, balance.

Prompts are screened one by one in worker processes; what stays is compared with each other, categorised by a language
model where one is given, and then balanced. Every rule that a prompt broke is a line of ``manifest.jsonl``. The file is
read several times, so that only what is compared of a prompt stays in memory: about 3 kB each.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive, resolve_config
from steelyard.core.errors import ConfigError, EvidenceError, errors_at
from steelyard.core.iteration import batched
from steelyard.core.plugins import build
from steelyard.core.remedies import Advice, Command, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import Case, Meta, Prompt, Run
from steelyard.curation.splits import root_text
from steelyard.evaluation.recognition import known_cases
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import encode_case, read_cases, read_placed_cases
from steelyard.io.kept import write_kept
from steelyard.io.ledger import LEDGER_FILE, Ledger, open_ledger, read_ledger
from steelyard.io.lines import check_readable, read_toml
from steelyard.io.progress import track
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.trained_on import TRAINED_ON_FILE, TrainedOn, read_trained_on
from steelyard.io.verbs import CASES, CaseFile, Option, SettingOption, Verb, settings
from steelyard.judging.prompt_models import Categories, ModelQuestions, PromptModels
from steelyard.judging.prompt_questions import PromptsPreview
from steelyard.prompts.balance import WantedShares, check_shares
from steelyard.prompts.classification import (
    CategoryMapping,
    Classification,
    ClassifiedPrompts,
    classified,
    count_mapped,
    mapped,
    people_category,
)
from steelyard.prompts.masking import masked_case, num_changed
from steelyard.prompts.near_duplicates import ReferenceTexts
from steelyard.prompts.screening import PromptsSummary, ScreenedPrompt, screen_prompts
from steelyard.prompts.selection import PromptReferences, Selection, SelectionConfig, check_selection
from steelyard.prompts.taxonomy import Tiers, parse_taxonomy, taxonomy
from steelyard.translation.screening import find_language_bound

MANIFEST_FILE = "manifest.jsonl"
KEPT_FILE = "kept.json"
_PROMPTS_A_BATCH = 256
_WORTH_PROCESSES_BYTES = 4_000_000
"""The bytes of a file from which worker processes save more than their start costs."""


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


class SharesFile(BaseConfig, frozen=True):
    """The tables of a file of shares."""

    category: dict[str, float] = msgspec.field(default_factory=dict)
    """The wanted share of each first-tier category; the shares sum to 1."""
    language: dict[str, float] = msgspec.field(default_factory=dict)
    """The wanted share of each language; the shares sum to 1."""


_DEFAULT = Config()


class _Work(NamedTuple):
    """The prompts of one call: a reader of its cases, in categories of the user's taxonomy, and what was screened."""

    read: Callable[[], Iterator[Case]]
    screened: Sequence[ScreenedPrompt]
    config: Config
    categories: Categories

    def added(self, selection: Selection, harm: Mapping[int, str | None], bound: Mapping[int, str | None]) -> Selection:
        """Return the selection with all prompts added, and duplicates dropped; the answers are by place."""
        together = zip(self.read(), self.screened, strict=True)
        for place, (case, prompt) in enumerate(track(together, "prompts: comparing")):
            selection.add(case.prompt, prompt, answer=harm.get(place), language_answer=bound.get(place))
        selection.drop_duplicates()
        return selection

    def mapping(self) -> CategoryMapping | None:
        """Count the categories that were mapped into a user's taxonomy; null without one."""
        if not self.categories.is_own:
            return None
        return count_mapped(Counter(case.prompt.category for case in self.read()), self.categories.tree)


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
    by people that the taxonomy lacks, ModelError where requests failed unless ``allow_failed``, MissingPartError
    without `multilingual`.

    >>> prepared = sy.prompts(cases, near_duplicates="off", language_shares={"en": 0.5, "zh": 0.5})
    >>> prepared.summary.num_kept
    40
    >>> prepared.summary.drops
    {}
    >>> sy.prompts(cases, near_duplicates="off", dry_run=True).counts.num_used
    40
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
    # Shares of a file are the file's, whose hash is recorded; settings stay as they were given.
    settings = msgspec.to_builtins(config) | {
        name: choice.settings for name, choice in plan.models.by_setting().items()
    }
    files = {"shares": shares, "taxonomy": taxonomy, "human": human}
    inputs = {"cases": cases, **{f"against.{place}": path for place, path in enumerate(against, 1)}}
    inputs |= {f"trained.{place}": folder / TRAINED_ON_FILE for place, folder in enumerate(trained, 1)}
    inputs |= {name: path for name, path in files.items() if path is not None}
    inputs |= plan.models.inputs()

    def write(result: Result) -> None:
        with open_ledger(result.path(LEDGER_FILE)) if plan.models.by_setting() else nullcontext() as ledger:
            _run(result, plan, ledger, allow_failed=allow_failed)

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
        work = plan.work()
        selection = work.added(Selection(plan.config, plan.references, has_language_model=False), {}, {})
        forecasts = tuple(plan.questions(work).forecasts(selection, ledger))
        summary = msgspec.structs.replace(selection.finish(), mapping=work.mapping())
        return PromptsPreview(summary, selection.counts(), selection.examples(), forecasts)


class _Plan(NamedTuple):
    """What both `prompts` and its preview work with: the file, its categories, references and language models."""

    cases: Path
    config: Config
    models: PromptModels
    categories: Categories
    references: PromptReferences
    workers: int

    def work(self) -> _Work:
        """Screen the prompts in worker processes."""
        batches = batched((case.prompt for case in read_cases(self.cases)), _PROMPTS_A_BATCH)
        engine = build("engines", "local", {"workers": self.workers})
        parts = engine.map(partial(screen_prompts, self.config, find_language_bound), batches)
        screened = [prompt for part in track(parts, "prompts: screening (batches of prompts)") for prompt in part]
        return _Work(_reader(self.cases, self.categories), screened, self.config, self.categories)

    def questions(self, work: _Work) -> ModelQuestions:
        """Return the questions to the language models."""
        asks_language = self.config.language_bound != "off"
        return ModelQuestions(work.read, self.models, self.categories, self.config.classified, asks_language)


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
) -> _Plan:
    """Check every input before any prompt is screened."""
    for path in (cases, *against):
        check_readable(path)
    config = _with_shares(config, shares)
    check_selection(config)
    models = PromptModels.of(chat=config.chat, classify=config.classify, max_tokens=config.max_tokens)
    categories = _categories(taxonomy, human, is_classified=models.classify is not None)
    references = _read_references(against, trained, config)
    default = 0 if cases.stat().st_size > _WORTH_PROCESSES_BYTES else 1
    return _Plan(cases, config, models, categories, references, default if workers is None else workers)


def _categories(path: Path | None, human: Path | None, *, is_classified: bool) -> Categories:
    """Return the taxonomy and people's categories. Raises ConfigError for these without a language model."""
    tree = taxonomy() if path is None else parse_taxonomy(read_toml(path), where=str(path))
    if human is None:
        return Categories(tree, path is not None, (), 0)
    if not is_classified:
        classify = Remedy("classify", ("KEY=VALUE",))
        do = Advice("name the model that gives categories: ", classify, " sets each of its model, base_url and kind")
        raise ConfigError("people's categories, and no language model to compare with them", where=str(human), do=do)
    read = [(case, people_category(case, tree, place)) for place, case in read_placed_cases(human)]
    labelled = tuple((case, tiers) for case, tiers in read if tiers)
    if not labelled:
        do = 'give prompts a category: {"prompt": {…, "category": ["mathematics"]}}'
        raise EvidenceError(f"none of {number_of(len(read), 'prompt')} has a category", where=str(human), do=do)
    return Categories(tree, path is not None, labelled, len(read) - len(labelled))


def _reader(cases: Path, categories: Categories) -> Callable[[], Iterator[Case]]:
    """Return a function that reads the cases, with their categories in a user's taxonomy where one is given."""
    if not categories.is_own:
        return lambda: read_cases(cases)
    return lambda: (mapped(case, categories.tree) for case in read_cases(cases))


def _run(result: Result, plan: _Plan, ledger: Ledger | None, *, allow_failed: bool) -> None:
    work = plan.work()
    questions, config = plan.questions(work), plan.config
    harm = {} if ledger is None else questions.harm(ledger, allow_failed=allow_failed)
    bound = {} if ledger is None else questions.language_bound(ledger, allow_failed=allow_failed)
    has_model = plan.models.harm is not None
    selection = work.added(Selection(config, plan.references, has_language_model=has_model), harm, bound)
    categories: dict[int, Tiers] = {}
    classification: Classification | None = None
    if ledger is not None:
        categories, classification = questions.classify(selection, ledger, allow_failed=allow_failed, seed=config.seed)
    summary = selection.finish()
    result.summary = msgspec.structs.replace(summary, mapping=work.mapping(), classification=classification)
    result.counts = selection.counts()
    if not result.counts.num_used:
        problem = f"none of {number_of(len(work.screened), 'prompt')} stays ({', '.join(result.counts.dropped)})"
        where = str(result.request.inputs["cases"].path)
        raise EvidenceError(problem, where=where, do=Advice("see what was found with ", Remedy("dry_run", value=True)))
    chat = "" if classification is None else classification.chat

    def finished(place: int, case: Case) -> Case:
        return classified(case, categories[place], chat) if place in categories else case

    num_masked = _write(result, work, selection, finished)
    if num_masked:
        result.counts = msgspec.structs.replace(result.counts, noted={"responses with masked data": num_masked})


def _with_shares(config: Config, shares: Path | None) -> Config:
    if shares is None:
        return config
    if config.shares.are_given:
        raise ConfigError("shares as a file and as settings", where=str(shares), do="give one of them")
    table = resolve_config(SharesFile, read_toml(shares), where=str(shares))
    with errors_at(str(shares)):
        check_shares(WantedShares(table.category, table.language))
    return msgspec.structs.replace(config, category_shares=table.category, language_shares=table.language)


def _read_references(against: Sequence[Path], trained: Sequence[Path], config: Config) -> PromptReferences:
    benches: dict[str, ReferenceTexts] = {}
    for path in against:
        roots = (root_text(case) for case in track(known_cases(path), f"prompts: reading {path.name}"))
        benches[str(path)] = ReferenceTexts(roots, config.overlap)
    known: dict[str, Callable[[Prompt], bool]] = {}
    for folder in trained:
        hashes = read_trained_on(folder)
        if hashes is None:
            do = Advice("name the folder of a model that `", Command("train"), "` has written")
            raise EvidenceError(f"there is no {TRAINED_ON_FILE} in the folder", where=str(folder), do=do)
        known[str(folder)] = partial(_is_trained_on, hashes)
    return PromptReferences(benches, known)


def _is_trained_on(hashes: TrainedOn, prompt: Prompt) -> bool:
    return hashes.has_text(Case(prompt=prompt, responses=()))


def _write(result: Result, work: _Work, selection: Selection, finished: Callable[[int, Case], Case]) -> int:
    """Write the prompts that stay, masked, and the manifest, in the order of the file; return how many responses.

    An id with a dropped prompt in one language is left out of ``kept.json`` in all.
    """
    num_masked, reasons = 0, dict[str, list[str]]()
    with (
        atomic_write(result.path("cases.jsonl")) as case_file,
        atomic_write(result.path(MANIFEST_FILE)) as manifest,
    ):
        for place, (case, prompt) in enumerate(zip(work.read(), work.screened, strict=True)):
            for row in selection.rows.get(place, ()):
                manifest.write(msgspec.json.encode(row) + b"\n")
            reasons.setdefault(case.prompt.id, []).extend(selection.reasons(place))
            if place not in selection.dropped:
                masked = masked_case(finished(place, case), prompt, work.config)
                case_file.write(encode_case(masked))
                num_masked += num_changed(case, masked)
    staying = [name for name, dropped in reasons.items() if not dropped]
    left_out = {name: tuple(dict.fromkeys(dropped)) for name, dropped in reasons.items() if dropped}
    write_kept(result.path(KEPT_FILE), staying, left_out)
    return num_masked
