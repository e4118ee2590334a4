"""The verb `clean`: drop, mask or count responses by rules for high recall (CHEEMS, section 4.1).

The file is read twice: first the lengths, from which the bounds of each category and language come, then the responses,
in batches that worker processes clean.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from steelyard.core.errors import EvidenceError
from steelyard.core.plugins import build
from steelyard.core.remedies import Advice, Command, Remedy
from steelyard.core.types import Run
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import read_cases, read_line_batches
from steelyard.io.cleaned_lines import MOST_EXAMPLES, CleanedBatch, clean_batch
from steelyard.io.lines import check_readable
from steelyard.io.progress import track
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import CASES, CaseFile, Option, SettingOption, Verb
from steelyard.responses.cleaning import Config, check_settings
from steelyard.responses.cleaning_summary import CleaningCounts, CleanPreview, CleanSummary, Excerpt
from steelyard.responses.lengths import Group, LengthBounds, count_lengths, usual_lengths
from steelyard.responses.rules import chosen_rules

_CASES_A_BATCH = 512
_WORTH_PROCESSES_BYTES = 4_000_000


_DEFAULT = Config()


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
    check_readable(cases)
    check_settings(config)

    def write(result: Result) -> None:
        done = _write(_cleaned(cases, config, workers), result, _CleaningTotals(str(cases))).result(config)
        result.summary, result.counts = done.summary, done.counts

    return run_stage(out, "clean", Run[CleanSummary], write, config=config, inputs={"cases": cases}, force=force)


def preview(cases: Path, config: Config = _DEFAULT, *, workers: int | None = None) -> CleanPreview:
    """Return what `clean` would drop, with examples of each rule, and write nothing. Errors are those of `clean`."""
    check_readable(cases)
    check_settings(config)
    totals = _CleaningTotals(str(cases))
    for batch in track(_cleaned(cases, config, workers), "clean (batches of prompts)"):
        totals.add(batch)
    return totals.result(config)


def _cleaned(cases: Path, config: Config, workers: int | None) -> Iterator[CleanedBatch]:
    """Clean the batches of the file in worker processes."""
    default = 0 if cases.stat().st_size > _WORTH_PROCESSES_BYTES else 1
    engine = build("engines", "local", {"workers": default if workers is None else workers})
    return engine.map(
        partial(clean_batch, config, _usual_lengths(cases, config)), read_line_batches(cases, size=_CASES_A_BATCH)
    )


def _usual_lengths(path: Path, config: Config) -> dict[Group, LengthBounds]:
    lengths = count_lengths(track(read_cases(path), "clean: measuring lengths"))
    if not lengths:
        raise EvidenceError(
            "no case has a response", where=str(path), do=Advice("sample some first: ", Command("sample"))
        )
    fine = LengthBounds(config.always_fine_from, config.always_fine_to)
    return usual_lengths(lengths, spread=config.length_spread, fewest=config.fewest_lengths, always_fine=fine)


class _CleaningTotals:
    """The sums of all batches, and the first examples of each rule."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._counts = CleaningCounts()
        self._examples: dict[str, list[Excerpt]] = {}

    def add(self, batch: CleanedBatch) -> None:
        self._counts.join(batch.counts)
        for rule, shown in batch.examples.items():
            self._examples[rule] = [*self._examples.get(rule, []), *shown][:MOST_EXAMPLES]

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
