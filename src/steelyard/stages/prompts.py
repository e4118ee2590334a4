"""The verb `prompts`: raw prompts into a set for annotation. Languages, duplicates, overlap, private data, balance.

Prompts are screened one by one in worker processes; what stays is compared with each other and then balanced. Every
rule that a prompt broke is a line of ``manifest.jsonl``. The file is read twice, so that only what is compared of a
prompt stays in memory: about 3 kB each.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.comparison import Request
from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive, resolve_config
from steelyard.core.errors import ConfigError, EvidenceError, ModelError, errors_at
from steelyard.core.iteration import batched
from steelyard.core.plugins import build
from steelyard.core.text import number_of
from steelyard.core.types import Case, Counts, Meta, Prompt, Run
from steelyard.curation.splits import root_text
from steelyard.evaluation.recognition import known_cases
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import encode_case, read_cases
from steelyard.io.ledger import LEDGER_FILE, Ledger, open_ledger
from steelyard.io.lines import check_readable, read_toml
from steelyard.io.progress import track
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.trained_on import TRAINED_ON_FILE, TrainedOn, read_trained_on
from steelyard.judging.asking import PricedChat, as_request, ask_requests
from steelyard.judging.panel import build_chat, choose_chat
from steelyard.prompts.balance import WantedShares, check_shares
from steelyard.prompts.harmful import harm_question, read_harm_reply
from steelyard.prompts.near_duplicates import ReferenceTexts
from steelyard.prompts.screening import (
    PromptsSummary,
    ScreenedPrompt,
    ScreeningRow,
    masked_prompt,
    masked_values,
    screen_prompts,
)
from steelyard.prompts.selection import PromptReferences, Selection, SelectionConfig, check_selection

MANIFEST_FILE = "manifest.jsonl"
_PROMPTS_A_BATCH = 256
_WORTH_PROCESSES_BYTES = 4_000_000
"""The bytes of a file from which worker processes save more than their start costs."""


class Config(SelectionConfig, frozen=True):
    """Settings of the screening, of the selection, and of the language model that helps."""

    chat: Meta = msgspec.field(default_factory=dict)
    """A language model that screens for harm: its kind and settings (docs/settings.md, under chats). Default: none."""
    max_tokens: Positive = 512
    """The longest reply of the chat."""


class SharesFile(BaseConfig, frozen=True):
    """The tables of a file of shares."""

    category: dict[str, float] = msgspec.field(default_factory=dict)
    """The wanted share of each first-tier category; the shares sum to 1."""
    language: dict[str, float] = msgspec.field(default_factory=dict)
    """The wanted share of each language; the shares sum to 1."""


_DEFAULT = Config()


class PromptsPreview(NamedTuple):
    """What the verb would do, with the first rows of each rule: nothing was written, and no chat was asked."""

    summary: PromptsSummary
    counts: Counts
    examples: dict[str, tuple[ScreeningRow, ...]]


def prompts(
    cases: Path,
    out: Path,
    config: Config = _DEFAULT,
    *,
    against: Sequence[Path] = (),
    trained: Sequence[Path] = (),
    shares: Path | None = None,
    workers: int | None = None,
    dry_run: bool = False,
    force: bool = False,
) -> "Run[PromptsSummary] | PromptsPreview":
    """Write ``cases.jsonl`` with the prompts that stay, and ``manifest.jsonl`` with every rule that one broke.

    ``against`` are benchmark files of any known format, ``trained`` folders of trained models, ``shares`` a TOML file
    with the tables ``category`` and ``language``. ``workers`` processes are used; null is one a core for large files.
    ``dry_run`` writes nothing and asks no chat. Raises ConfigError for settings that cannot be met, EvidenceError where
    no prompt stays, ModelError where the chat fails.
    """
    for path in (cases, *against):
        check_readable(path)
    # Shares of a file are the file's, whose hash is recorded; settings stay as they were given.
    settings = msgspec.to_builtins(config)
    config = _with_shares(config, shares)
    check_selection(config)
    choice = choose_chat(config.chat) if config.chat else None
    inputs = {"cases": cases, **{f"against.{place}": path for place, path in enumerate(against, 1)}}
    inputs |= {f"trained.{place}": folder / TRAINED_ON_FILE for place, folder in enumerate(trained, 1)}
    inputs |= {} if shares is None else {"shares": shares}
    inputs |= {} if choice is None else {f"chat.{key}": path for key, path in choice.files.items()}
    references = _read_references(against, trained, config)
    default = 0 if cases.stat().st_size > _WORTH_PROCESSES_BYTES else 1
    screen = partial(_screen_all, cases, config, default if workers is None else workers)
    if dry_run:
        selection, summary = _select(cases, Selection(config, references, has_language_model=False), screen(), {})
        return PromptsPreview(summary, selection.counts(), selection.examples())

    def write(result: Result) -> None:
        answers: dict[int, str | None] = {}
        screened = screen()
        if choice is not None:
            with open_ledger(result.path(LEDGER_FILE)) as ledger:
                model = PricedChat("chat", build_chat(choice))
                answers = _ask_about_harm(cases, model, ledger, max_tokens=config.max_tokens)
        selection = Selection(config, references, has_language_model=choice is not None)
        selection, result.summary = _select(cases, selection, screened, answers)
        result.counts = selection.counts()
        if not result.counts.num_used:
            problem = f"none of {number_of(len(screened), 'prompt')} stays ({', '.join(result.counts.dropped)})"
            raise EvidenceError(problem, where=str(cases), do="see what was found with `prompts --dry-run`")
        _write(cases, result, config, screened, selection)

    settings |= {} if choice is None else {"chat": choice.settings}
    return run_stage(out, "prompts", Run[PromptsSummary], write, config=settings, inputs=inputs, force=force)


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
            do = "name the folder of a model that `steelyard train` has written"
            raise EvidenceError(f"there is no {TRAINED_ON_FILE} in the folder", where=str(folder), do=do)
        known[str(folder)] = partial(_is_trained_on, hashes)
    return PromptReferences(benches, known)


def _is_trained_on(hashes: TrainedOn, prompt: Prompt) -> bool:
    return hashes.has_text(Case(prompt=prompt, responses=()))


def _screen_all(cases: Path, config: Config, workers: int) -> list[ScreenedPrompt]:
    batches = batched((case.prompt for case in read_cases(cases)), _PROMPTS_A_BATCH)
    engine = build("engines", "local", {"workers": workers})
    screened = track(engine.map(partial(screen_prompts, config), batches), "prompts: screening (batches of prompts)")
    return [prompt for batch in screened for prompt in batch]


def _ask_about_harm(cases: Path, model: PricedChat, ledger: Ledger, *, max_tokens: int) -> dict[int, str | None]:
    """Return the chat's answer about each prompt by its place: harmless, a category, or null if it is unreadable."""

    def requests() -> Iterator[Request]:
        for case in read_cases(cases):
            turns = [message.content for message in case.prompt.messages if message.role == "user"]
            yield as_request(harm_question(turns, max_tokens=max_tokens), model.chat)

    number = sum(1 for _ in read_cases(cases))
    counts = ask_requests(model, requests(), ledger, num_requests=number, remedy="say --set max_tokens=N with more")
    if counts.num_failed:
        problem = f"{counts.num_failed} of {number_of(counts.num_questions, 'request')} failed; answers are kept"
        raise ModelError(problem, do="run the same command again")
    return {place: read_harm_reply(ledger.reply(request.id)) for place, request in enumerate(requests())}


def _select(
    cases: Path, selection: Selection, screened: Sequence[ScreenedPrompt], answers: Mapping[int, str | None]
) -> tuple[Selection, PromptsSummary]:
    together = zip(read_cases(cases), screened, strict=True)
    for place, (case, prompt) in enumerate(track(together, "prompts: comparing")):
        selection.add(case.prompt, prompt, answer=answers.get(place))
    return selection, selection.finish()


def _write(
    cases: Path, result: Result, config: Config, screened: Sequence[ScreenedPrompt], selection: Selection
) -> None:
    """Write the prompts that stay, masked, and the manifest, in the order of the file."""
    with (
        atomic_write(result.path("cases.jsonl")) as case_file,
        atomic_write(result.path(MANIFEST_FILE)) as manifest,
    ):
        for place, (case, prompt) in enumerate(zip(read_cases(cases), screened, strict=True)):
            for row in selection.rows.get(place, ()):
                manifest.write(msgspec.json.encode(row) + b"\n")
            if place not in selection.dropped:
                masked = masked_prompt(case.prompt, prompt, config)
                meta = masked_values(case.meta, config)
                case_file.write(encode_case(msgspec.structs.replace(case, prompt=masked, meta=meta)))
