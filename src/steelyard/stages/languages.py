"""The verb `languages`: evaluations of parallel items by language, family, script and resource level."""

from collections.abc import Sequence
from pathlib import Path

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.remedies import FILE, Advice, Remedy
from steelyard.core.types import Counts, Run
from steelyard.evaluation.evaluations import check_equal_settings, joined_findings, model_names, read_evaluation
from steelyard.evaluation.language_table import LanguageTable
from steelyard.evaluation.languages import LanguagesSummary
from steelyard.evaluation.parallel_draws import table_of_runs
from steelyard.evaluation.parallel_items import read_shared, summarise_languages
from steelyard.evaluation.parallel_runs import FoundRuns
from steelyard.evaluation.published_languages import read_published
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.io.data_files import find_runs
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import Argument, Option, RunFolder, SettingOption, Verb, refuse_ignored

TABLE_STAGE = "language_table"
"""The stage of a run over several models, or over a published table."""


class Config(BaseConfig, frozen=True):
    """``baseline_language`` is the language that the others are compared with; null selects English where it is there.

    Without English, null selects the language with the most items; of those with equal numbers the one with the most
    resources (class of Joshi et al., 2020), then the first by code. The result names it.

    ``languages`` are the compared languages including English; null selects all. Values are over the items that all of
    them have, so excluding a language with few items restores items of the others.
    """

    baseline_language: str | None = None
    """The language that others are compared with. Default: English, or else the one with the most items."""
    languages: tuple[str, ...] | None = None
    """The languages that are compared, over items that all of them have. Default: all languages."""
    num_resamples: Positive = 1000
    """The number of bootstrap resamples of items."""
    seed: int = 0
    """The seed of the resamples."""


_DEFAULT = Config()


VERB = Verb(
    "Comparisons and reports",
    61,
    (
        Argument("runs", "Evaluations of parallel items: their folders, folders of runs, or quoted patterns."),
        Option("out", "The folder for the result, run.json."),
        Option("other_translation", "Evaluations of the same items in another translation; repeat."),
        Option("table", "A CSV file of published numbers, instead of evaluations."),
        SettingOption("baseline_language"),
        SettingOption("languages", note="Repeat."),
    ),
)


def languages(
    runs: Sequence[RunFolder] = (),
    *,
    out: Path,
    config: Config = _DEFAULT,
    other_translation: Sequence[RunFolder] = (),
    table: Path | None = None,
    force: bool = False,
) -> Run[LanguagesSummary] | Run[LanguageTable]:
    """Break evaluations down by language: the drop from English, agreement with it, families, scripts, resources.

    All numbers follow the bench's own sections and weights, on the items that all compared languages have, and all
    models. Kappa measures how far a model prefers the same answers in a language as in English. Translations of one
    item are resampled together.

    Several evaluations make one table: a row a model, means by kind of model and by group of languages, and the
    correlation of English with the other languages. A model that lacks items or languages is named.

    With ``other_translation`` the evaluations of a second translation are compared with the first, model by model: name
    a folder of evaluations for each, such as google and nllb.

    With ``table`` the numbers are those of a CSV file, such as the tables of a paper: a row a model, and a column a
    language, a subset of the translation task, or a section. Rows whose numbers do not add up are named.

    Example: `steelyard languages evaluated --out languages`

    Example: `steelyard languages evaluated-a evaluated-b --out table`

    Example: `steelyard languages google --other-translation nllb --out translations`

    Without English, the others are compared with the language that has the most items; the first sentence of the result
    says which, and ``baseline_language`` names another.

    Raises EvidenceError for a single language, for no shared item, for other items under one prompt id, and for other
    settings; RecordError for a broken row of a table.

    >>> by_language = sy.languages([sy.evaluate("longer", cases)], num_resamples=200)
    >>> [row["language"] for row in by_language.table]
    ['en', 'zh']
    >>> both = sy.languages([sy.evaluate("longer", cases), sy.evaluate("shorter", cases)], num_resamples=200)
    >>> [row["model"] for row in both.table]
    ['longer', 'shorter']
    """
    if table is not None:
        return _published(table, runs or other_translation, out, config, force=force)
    folders, others = find_runs(runs, "evaluate"), find_runs(other_translation, "evaluate")
    if not folders:
        do = Advice("name folders of `steelyard evaluate`, or a table: ", Remedy("table", FILE))
        raise EvidenceError("no evaluation is named", do=do)
    evaluated, *more = folders
    if more or others:
        return _many(folders, others, out, config, force=force)
    run = read_evaluation(evaluated)
    inputs = {"run": evaluated / "run.json", "items": evaluated / "items.jsonl"}

    def write(result: Result) -> None:
        shared = read_shared(evaluated, config.languages, config.baseline_language)
        result.summary = summarise_languages(
            run, evaluated, shared, num_resamples=config.num_resamples, seed=config.seed
        )
        result.findings = run.findings
        result.counts = Counts(num_in=shared.num_read, num_used=len(shared.items), dropped=shared.dropped)

    return run_stage(out, "languages", Run[LanguagesSummary], write, config=config, inputs=inputs, force=force)


def _published(table: Path, runs: Sequence[Path], out: Path, config: Config, *, force: bool) -> Run[LanguageTable]:
    """Return the record of a published table."""
    if runs:
        raise ConfigError("evaluations and a table are given", do=Advice("leave the runs out, or ", Remedy("table")))
    refuse_ignored(
        config.changed("num_resamples", "baseline_language", "languages"), "on printed numbers", Remedy("table")
    )

    def write(result: Result) -> None:
        result.summary = read_published(table, config.languages, config.baseline_language)
        number, incomplete = len(result.summary.models), len(result.summary.incomplete)
        dropped = {"rows with an empty cell": incomplete} if incomplete else {}
        result.counts = Counts(num_in=number + incomplete, num_used=number, dropped=dropped)

    return run_stage(out, TABLE_STAGE, Run[LanguageTable], write, config=config, inputs={"table": table}, force=force)


def _many(
    folders: Sequence[Path], others: Sequence[Path], out: Path, config: Config, *, force: bool
) -> Run[LanguageTable]:
    """Return the record of a table of several evaluations; ``others`` are those of another translation."""
    every = [*folders, *others]
    runs = [read_evaluation(folder) for folder in every]
    check_equal_settings(every, runs)
    _check_unequal(every, runs)
    inputs = {f"run.{number}": folder / "run.json" for number, folder in enumerate(every, 1)}
    inputs |= {f"items.{number}": folder / "items.jsonl" for number, folder in enumerate(every, 1)}

    def write(result: Result) -> None:
        number = len(folders)
        sources = [FoundRuns(folders, runs[:number]), *([FoundRuns(others, runs[number:])] if others else [])]
        result.summary, num_left_out = table_of_runs(
            sources,
            languages=config.languages,
            baseline=config.baseline_language,
            num_resamples=config.num_resamples,
            seed=config.seed,
        )
        noted = {"prompts": result.summary.num_shared}
        if num_left_out:
            noted["items that not every model has in every language, left out"] = num_left_out
        result.findings = joined_findings(dict(zip(model_names(every, runs), runs, strict=True)))
        result.counts = Counts(num_in=len(every), num_used=len(every), noted=noted)

    return run_stage(out, TABLE_STAGE, Run[LanguageTable], write, config=config, inputs=inputs, force=force)


def _check_unequal(folders: Sequence[Path], runs: Sequence[Run[EvaluationSummary]]) -> None:
    """Raise EvidenceError for an evaluation that is named twice, by one folder or by two with equal items."""
    known: dict[tuple[str, str], Path] = {}
    for folder, run in zip(folders, runs, strict=True):
        key = run.summary.model, run.outputs.get("items.jsonl", str(folder.resolve()))
        if key in known:
            first = known[key]
            problem = "a folder is named twice" if first.resolve() == folder.resolve() else f"the same run as {first}"
            raise EvidenceError(problem, where=str(folder), do="name each evaluation once")
        known[key] = folder
