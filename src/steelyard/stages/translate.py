"""The verb `translate`: cases in other languages under the same prompt ids, and what the translations damaged.

Requests go through a ledger, as those of `judge`: an interrupted run resumes, and asks nothing twice. Benches that
others translated are examined in the same way (``check_only``).
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Annotated

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import FileError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Counts, Meta, Run
from steelyard.io.ledger import LEDGER_FILE, open_ledger, read_ledger
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import (
    BATCH_OPTIONS,
    CASES,
    CEILINGS,
    SERVER_SETTINGS,
    BatchFolder,
    CaseFile,
    Option,
    SettingOption,
    Verb,
    in_panel,
    refuse_ignored,
)
from steelyard.judging.batches import check_batch_options, opened_requests
from steelyard.judging.forecast import Forecast
from steelyard.judging.token_use import AnyPrice, Budget, Ceilings
from steelyard.judging.translating import ask_translations, forecast_translations, read_translations, tokens_used
from steelyard.judging.translation_pairs import BenchFile, CheckedPair, made_pairs, present_pairs
from steelyard.judging.translation_run import write_examined
from steelyard.judging.translation_summary import TranslateSummary
from steelyard.judging.translator import Translation, TranslatorChoice
from steelyard.networks.settings import EncoderSettings

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Config(BaseConfig, frozen=True):
    """Settings of a translation. With ``check_only`` the translations in the file are examined, and none is made."""

    to: tuple[str, ...] = ()
    """The languages to translate into, or to examine, by their codes (BCP 47 or FLORES): zh-Hans, de, arb_Arab.
    Default: those of the file with check_only."""
    source: str | None = None
    """The language to translate from. Default: English."""
    chat: Meta = msgspec.field(default_factory=dict)
    """The translator: its kind and the settings of the kind (docs/settings.md, under chats)."""
    price: AnyPrice | None = None
    """Prices of a million tokens in any currency, [input, output], or with cached_input and cache_write by name."""
    prompt_only: tuple[str, ...] = ("hep-*", "humanevalpack*")
    """Subsets with only the prompt translated, since the responses are code; * stands for any text."""
    max_characters: Positive = 12_000
    """The most characters of an item in one request; longer items take several, which show the earlier parts."""
    max_tokens: Positive = 16_384
    """The longest reply in tokens; a request asks for no more than its text can need."""
    max_truncated: _Share = 0.2
    """The largest share of replies that may be cut off."""
    allow_failed: _Count = 0
    """The largest number of items that may fail; with more, or all of a language, the run ends with exit code 1; what
    came is kept."""
    encoder: EncoderSettings = EncoderSettings()
    """The encoder that compares meanings, for responses that changed places and texts of something else."""
    check_only: bool = False
    """Examine the translations that the file has, and make none."""
    num_review: _Count = 50
    """The number of undamaged items of each language that people review besides all damaged ones."""
    seed: int = 0
    """The seed of the items that people review."""


_DEFAULT = Config()
_UNDECIDING = ("max_truncated", "allow_failed", "price")
"""Settings that end a run and decide no translation: an interrupted run goes on with others."""

_ASKING = ("price", "max_characters", "max_tokens", "max_truncated", "allow_failed")
"""Settings that decide nothing where translations are examined only."""

VERB = Verb(
    "Prompts and responses",
    33,
    (
        CASES,
        Option("out", "The folder for cases.jsonl, the findings, and run.json."),
        SettingOption("to", note="With commas.", has_commas=True),
        SettingOption("source", word="from"),
        SettingOption("chat.kind", "with", help="The kind of translator: see `steelyard list chats`."),
        *SERVER_SETTINGS,
        SettingOption("check_only"),
        SettingOption("allow_failed"),
        *in_panel("Cost", *CEILINGS, Option("dry_run", "Forecast requests, tokens and money; send and write nothing.")),
        *in_panel("Batch files", *BATCH_OPTIONS),
    ),
    instead=(("dry_run", "forecast"),),
)


def translate(
    cases: CaseFile,
    out: Path,
    config: Config = _DEFAULT,
    *,
    max_cost: float | None = None,
    max_failed: int | None = None,
    max_hours: float | None = None,
    batch: BatchFolder | None = None,
    release_batch: str | None = None,
    any_batch_model: bool = False,
    force: bool = False,
) -> Run[TranslateSummary]:
    """Translate a bench into other languages, and examine every translation for damage.

    Code, formulas and addresses come back exactly or not at all. An item is one request with all its responses; one
    that comes back damaged is sent again, then block by block, else listed in OUT/failed.jsonl. OUT/cases.jsonl has
    the cases of all languages, OUT/findings.jsonl what is damaged and where, OUT/kept.json the items that are undamaged
    in every language, for `evaluate`. OUT/translation_quality.jsonl and OUT/native_check.jsonl are for people.

    Example: `steelyard translate bench.jsonl --to zh-Hans,de,ar --with openai_compatible
    --base-url http://localhost:8000/v1 --chat-model Qwen2.5-72B-Instruct --out translated`

    Example: `steelyard translate test.jsonl --check-only --out checked`

    Programs that translate without instructions: `--with apertium`, `--with google_translate`, `--with seq2seq`
    (docs/howto/translate.md).

    Raises ConfigError for an unknown or a repeated language, EvidenceError for a file without items of the source
    language, or with judgments or ratings alone, which do not hold for translations, WaitingError while requests of
    batch files wait, FailuresError where more than ``allow_failed`` items failed, or all of a language.

    >>> examined = sy.translate(cases, check_only=True)
    >>> examined.summary.languages["zh"].num_items
    20
    """
    _check_mode(
        config,
        batch=batch is not None,
        release_batch=release_batch is not None,
        any_batch_model=any_batch_model,
        max_cost=max_cost is not None,
        max_failed=max_failed is not None,
        max_hours=max_hours is not None,
    )
    choice = None
    settings = {key: value for key, value in msgspec.to_builtins(config).items() if key not in _UNDECIDING}
    inputs = {"cases": cases}
    if config.encoder.path is not None and Path(config.encoder.path).is_dir():
        inputs["encoder"] = Path(config.encoder.path)
    if not config.check_only:
        choice = TranslatorChoice.of(config.chat, config.price, config.source, config.to)
        settings["chat"] = choice.settings()
        inputs |= choice.inputs()
    ceilings = Ceilings(max_cost, max_failed, max_hours)
    if choice is not None and max_cost is not None:
        choice.check_has_paid_tokens()
    ceilings.check(Advice("say ", Remedy("price", [1.0, 2.0])) if config.price is None else None)
    batches = check_batch_options(
        batch, out, ceilings, release=release_batch, any_model=any_batch_model, most_failed=config.allow_failed
    )

    def write(result: Result) -> None:
        bench = BenchFile.read(cases, config.source)
        if choice is None:
            bench.check_present(config.to)
            _record(result, bench, config, lambda: present_pairs(bench, config.to))
            return
        with open_ledger(result.path(LEDGER_FILE)) as ledger:
            translation = _translation(choice, bench, config)
            budget = Budget(ceilings, lambda: (tokens_used(translation, bench.sources(), ledger),))
            with opened_requests(batches, release_batch, ledger, budget=budget) as ask:
                ask_translations(
                    translation,
                    bench.sources,
                    ledger,
                    max_truncated=config.max_truncated,
                    allow_failed=config.allow_failed,
                    ask=ask,
                    is_sent=batches is None,
                )

            def pairs() -> Iterator[CheckedPair]:
                translated = read_translations(translation, bench.sources(), ledger)
                return chain(made_pairs(translated, translation.model.name), present_pairs(bench))

            _record(result, bench, config, pairs, translation, is_sent=batches is None)
            result.summary = msgspec.structs.replace(
                result.summary,
                tokens=tokens_used(translation, bench.sources(), ledger),
                protocol=translation.model.chat.protocol(),
            )

    # A language more or less, or an item that was edited: replies are stored by their questions.
    arguments = {"config": settings, "inputs": inputs, "changeable": ("to", "cases"), "force": force}
    return run_stage(out, "translate", Run[TranslateSummary], write, **arguments)


def forecast(cases: Path, out: Path, config: Config = _DEFAULT) -> Forecast:
    """Return the requests of the first round. A reply that comes back damaged takes further ones."""
    _check_mode(config, dry_run=True)
    choice = TranslatorChoice.of(config.chat, config.price, config.source, config.to)
    bench = BenchFile.read(cases, config.source)
    with read_ledger(out / LEDGER_FILE) as ledger:
        known = (lambda request: None) if ledger is None else ledger.known
        return forecast_translations(_translation(choice, bench, config), bench.sources(), known)


def check_settings(config: Config) -> None:
    """Raise what the settings alone are refused for; the translator's files may be made by other stages first."""
    _check_mode(config)
    if not config.check_only:
        with suppress(FileError):
            TranslatorChoice.of(config.chat, config.price, config.source, config.to)


def _check_mode(config: Config, **inputs: bool) -> None:
    """Raise ConfigError for what only a translator uses where there is none; ``inputs``: which of them have values."""
    if config.check_only:
        chat = {f"chat.{name}": True for name in config.chat}
        check_only = Remedy("check_only")
        refuse_ignored(chat | config.changed(*_ASKING) | inputs, Advice("beside ", check_only), check_only)


def _translation(choice: TranslatorChoice, bench: BenchFile, config: Config) -> Translation:
    bench.check_labels()
    limits = config.max_tokens, config.max_characters
    translation = choice.build(*limits, prompt_only=config.prompt_only, present=bench.ids)
    if translation.is_engine:
        kinds = Advice("choose a language model: ", Remedy("chat.kind", "openai_compatible"))
        refuse_ignored(config.changed("max_characters"), "on a translator that gets each block by itself", kinds)
    return translation


def _record(
    result: Result,
    bench: BenchFile,
    config: Config,
    pairs: Callable[[], Iterable[CheckedPair]],
    translation: Translation | None = None,
    *,
    is_sent: bool = True,
) -> None:
    """Examine the pairs, write the files of the run, and count."""
    is_made = translation is not None
    encode = None
    if config.encoder.path is not None:
        from steelyard.networks.text_encoder import TextEncoder

        encode = TextEncoder(config.encoder).vectors
    counter, num_kept = write_examined(
        result,
        bench,
        pairs,
        num_review=config.num_review,
        seed=config.seed,
        is_made=is_made,
        is_sent=is_sent,
        allow_failed=config.allow_failed,
        prompt_only=config.prompt_only,
        encode=encode,
    )
    languages = counter.languages()
    num_sources = bench.num_items[bench.source_key]
    result.summary = TranslateSummary(
        source=bench.source,
        translator=None if translation is None else translation.model.name,
        languages=languages,
        num_sources=num_sources,
        num_kept=num_kept,
        examples={kind: tuple(shown) for kind, shown in counter.examples.items()},
    )
    num_items = sum(each.num_items for each in languages.values())
    dropped = {"not translated": counter.num_failed, "responses made equal": counter.num_equal}
    result.counts = Counts(
        num_in=num_items,
        num_used=num_items - sum(dropped.values()),
        dropped={reason: number for reason, number in dropped.items() if number},
        noted={
            "damaged": sum(each.num_damaged for each in languages.values()),
            **({"cases without a pair": bench.num_unlabelled} if is_made and bench.num_unlabelled else {}),
        },
    )
