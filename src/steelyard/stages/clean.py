"""The verb `clean`: drop, mask or count responses by rules for high recall (CHEEMS, section 4.1).

The file is read twice: first the lengths, from which the bounds of each category and language come, then the responses,
in batches that worker processes clean.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.iteration import batched
from steelyard.core.languages import language_key
from steelyard.core.plugins import build
from steelyard.core.remedies import Advice, Command, Remedy
from steelyard.core.text import num_characters
from steelyard.core.types import Case, Run
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import decode_batch, encode_case, read_cases
from steelyard.io.lines import LineBatch, check_readable, read_batches
from steelyard.io.progress import track
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.tables import is_parquet
from steelyard.io.verbs import CASES, CaseFile, Option, SettingOption, Verb
from steelyard.responses.cleaning import ManifestRow, clean_case
from steelyard.responses.cleaning_summary import CleaningCounts, CleanPreview, CleanSummary, Excerpt, excerpt_of
from steelyard.responses.foreign import ForeignText, Writing
from steelyard.responses.lengths import Group, LengthBounds, LengthCounts, length_bin, usual_lengths
from steelyard.responses.phrases import AnswerPhrases, CleaningTable
from steelyard.responses.rules import Action, Measures, chosen_rules

_CASES_A_BATCH = 512
_WORTH_PROCESSES_BYTES = 4_000_000
_EXAMPLES = 3
_SURE = 0.8
_NO_BOUNDS = LengthBounds(0.0, float("inf"))
_encoder = msgspec.json.Encoder()


class Config(BaseConfig, frozen=True):
    """Settings of cleaning. The table of rules is in the how-to; their names are keys of ``actions`` and ``limits``."""

    actions: dict[str, Action] = msgspec.field(default_factory=dict)
    """What a rule does to a response: drop, mask (names_model alone), count (keep and count) or off."""
    limits: dict[str, float] = msgspec.field(default_factory=dict)
    """The limit of a rule's figure, for every kind of prompt."""
    languages: Literal["identify", "scripts"] = "identify"
    """Whether languages of one script are told apart (identify, needs the extra `multilingual`), or only scripts."""
    length_spread: float = 2.0
    """How far beyond the quartiles a length is unusual: this multiple of their distance, of the logarithm."""
    fewest_lengths: Positive = 20
    """The number of responses that a category in a language needs for bounds of its own."""
    always_fine_from: Positive = 10
    """The number of characters from which a response is never too short."""
    always_fine_to: Positive = 3000
    """The number of characters up to which a response is never too long."""
    small_prompts: Literal["keep", "drop"] = "keep"
    """What happens to a prompt with fewer than two responses left."""


_DEFAULT = Config()


class CleanedBatch(NamedTuple):
    """The result of one batch: encoded lines, and numbers that add up."""

    case_lines: bytes
    manifest_lines: bytes
    counts: CleaningCounts
    examples: dict[str, list[Excerpt]]


VERB = Verb(
    "Prompts and responses",
    32,
    (
        CASES,
        Option("out", "The folder for cases.jsonl and manifest.jsonl."),
        Option("dry_run", "Print what would be dropped, with examples of each rule; write nothing."),
        SettingOption("actions", "action", note="As RULE=ACTION; repeat."),
        SettingOption("limits", "limit", note="As RULE=NUMBER; repeat."),
        SettingOption("languages"),
        SettingOption("small_prompts"),
        Option("workers", "The number of processes. Default: one a core for a large file."),
    ),
    instead=(("dry_run", "preview"),),
)


def clean(
    cases: CaseFile, out: Path, config: Config = _DEFAULT, *, workers: int | None = None, force: bool = False
) -> Run[CleanSummary]:
    """Drop broken responses by rules, and mask the names by which models say what they are.

    Rules find answers that are empty, cut off, garbled, repeated, in the wrong language, refused, copied from the
    prompt, or of unusual length for their category and language. They are made to miss little, so look at ``dry_run``
    first. Every broken rule is a line of OUT/manifest.jsonl with its figure and limit. Judgments, ratings, ranks and
    pairs of dropped responses leave with them, and are counted.

    Example: `steelyard clean cases.jsonl --dry-run --out cleaned`

    Example: `steelyard clean cases.jsonl --action refusal=count --limit repeated_text=0.5 --out cleaned`

    Raises ConfigError for an unknown rule or an impossible setting, EvidenceError for a file without responses, and
    where nothing would stay.

    >>> answers = {"prompt": "How is bread baked?", "chosen": "Mix, wait, bake.", "rejected": "Mix, bake.<|im_end|>"}
    >>> cleaned = sy.clean([answers])
    >>> cleaned.counts.dropped
    {'template_leftover': 1}
    >>> sy.clean([answers], dry_run=True).counts.num_used
    1
    """
    _check(cases, config)

    def write(result: Result) -> None:
        done = _write(_cleaned(cases, config, workers), result, _CleaningTotals(str(cases))).result(config)
        result.summary, result.counts = done.summary, done.counts

    return run_stage(out, "clean", Run[CleanSummary], write, config=config, inputs={"cases": cases}, force=force)


def preview(cases: Path, config: Config = _DEFAULT, *, workers: int | None = None) -> CleanPreview:
    """Return what `clean` would drop, with examples of each rule, and write nothing. Errors are those of `clean`."""
    _check(cases, config)
    totals = _CleaningTotals(str(cases))
    for batch in track(_cleaned(cases, config, workers), "clean (batches of prompts)"):
        totals.add(batch)
    return totals.result(config)


def _cleaned(cases: Path, config: Config, workers: int | None) -> Iterator[CleanedBatch]:
    """Clean the batches of the file in worker processes."""
    default = 0 if cases.stat().st_size > _WORTH_PROCESSES_BYTES else 1
    engine = build("engines", "local", {"workers": default if workers is None else workers})
    return engine.map(partial(clean_batch, config, _usual_lengths(cases, config)), _batches(cases))


def _check(cases: Path, config: Config) -> None:
    check_readable(cases)
    chosen_rules(config.actions, config.limits)
    if not 0 < config.length_spread < inf:
        raise ConfigError(f"length_spread is {config.length_spread}", where="clean", allowed="a number above 0")
    if config.always_fine_from > config.always_fine_to:
        problem = f"always_fine_from is {config.always_fine_from}, always_fine_to {config.always_fine_to}"
        raise ConfigError(problem, where="clean", do="make the first the smaller one")


def _group(case: Case) -> Group:
    return (case.prompt.category[0] if case.prompt.category else "", case.prompt.language or "")


def _usual_lengths(path: Path, config: Config) -> dict[Group, LengthBounds]:
    lengths: LengthCounts = Counter()
    for case in track(read_cases(path), "clean: measuring lengths"):
        group = _group(case)
        for response in case.responses:
            lengths[group, length_bin(num_characters(response))] += 1
    if not lengths:
        raise EvidenceError(
            "no case has a response", where=str(path), do=Advice("sample some first: ", Command("sample"))
        )
    fine = LengthBounds(config.always_fine_from, config.always_fine_to)
    return usual_lengths(lengths, spread=config.length_spread, fewest=config.fewest_lengths, always_fine=fine)


def clean_batch(config: Config, bounds: dict[Group, LengthBounds], batch: LineBatch) -> CleanedBatch:
    """Decode, check and clean one batch of lines: the work of a worker."""
    rules = chosen_rules(config.actions, config.limits)
    counts = CleaningCounts()
    lines: list[bytes] = []
    rows: list[ManifestRow] = []
    examples: dict[str, list[Excerpt]] = {}
    for case in decode_batch(batch):
        # A case without responses may be the only one of its group: no rule asks for its bounds.
        measures = rule_measures(config.languages, bounds.get(_group(case), _NO_BOUNDS))
        cleaned = clean_case(case, measures, rules, drop_prompts_with_few=config.small_prompts == "drop")
        counts.add(case, cleaned)
        rows += cleaned.rows
        if cleaned.case is not None:
            lines.append(encode_case(cleaned.case))
        for row in cleaned.rows:
            if row.response is not None and len(shown := examples.setdefault(row.rule, [])) < _EXAMPLES:
                shown.append(excerpt_of(case, row))
    return CleanedBatch(b"".join(lines), b"".join(_encoder.encode(row) + b"\n" for row in rows), counts, examples)


class _CleaningTotals:
    """The sums of all batches, and the first examples of each rule."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._counts = CleaningCounts()
        self._examples: dict[str, list[Excerpt]] = {}

    def add(self, batch: CleanedBatch) -> None:
        self._counts.join(batch.counts)
        for rule, shown in batch.examples.items():
            self._examples[rule] = [*self._examples.get(rule, []), *shown][:_EXAMPLES]

    def check(self) -> None:
        """Raise EvidenceError if nothing would stay."""
        if not self._counts.num_kept:
            do = Advice("look at them with ", Remedy("dry_run", value=True), ", and change limits or actions")
            raise EvidenceError("the rules drop every response", where=self._where, do=do)

    def result(self, config: Config) -> CleanPreview:
        rules = chosen_rules(config.actions, config.limits)
        return CleanPreview(self._counts.summary(rules, self._examples), self._counts.counts())


def _write(batches: Iterator[CleanedBatch], result: Result, totals: _CleaningTotals) -> _CleaningTotals:
    """Write both files, which take their names together, and return the sums of all batches."""
    with atomic_write(result.path("manifest.jsonl")) as manifest, atomic_write(result.path("cases.jsonl")) as file:
        for batch in track(batches, "clean (batches of prompts)"):
            file.write(batch.case_lines)
            manifest.write(batch.manifest_lines)
            totals.add(batch)
        totals.check()
    return totals


def _batches(path: Path) -> Iterator[LineBatch]:
    """Yield the lines of the file in batches; the rows of a Parquet file are encoded as lines first."""
    if not is_parquet(path):
        yield from read_batches(path, size=_CASES_A_BATCH)
        return
    for batch in batched(enumerate(map(encode_case, read_cases(path)), 1), _CASES_A_BATCH):
        numbers, lines = zip(*batch, strict=True)
        yield LineBatch(str(path), numbers, lines)


def rule_measures(languages: Literal["identify", "scripts"], lengths: LengthBounds) -> Measures:
    """Return what the rules need: the installed phrases and languages, read once in a process, and usual lengths."""
    return Measures(installed_phrases(), _foreign(languages), lengths)


@lru_cache(maxsize=1)
def installed_phrases() -> AnswerPhrases:
    """Read the installed phrases, once in a process."""
    return AnswerPhrases(msgspec.convert(_table("cleaning.toml"), CleaningTable))


@lru_cache(maxsize=2)
def _foreign(languages: str) -> ForeignText:
    """Read the installed languages, once in a process."""
    writings = {
        language_key(row["codes"][0]): Writing(row["codes"][0], str(row["script"]))
        for row in _table("languages.toml").values()
    }
    return ForeignText(writings, _identify if languages == "identify" else None)


def _identify(texts: Sequence[str]) -> list[str | None]:
    # The libraries are imported for the first passage whose script does not decide.
    from steelyard.prompts.languages import identify

    return [None if each is None else each.language for each in identify(texts, min_probability=_SURE)]


def _table(name: str) -> dict[str, dict[str, list[str] | str]]:
    return tomllib.loads((files("steelyard") / "data" / name).read_text(encoding="utf-8"))
