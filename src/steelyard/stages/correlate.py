"""The verb `correlate`: benches and outcomes over models, and tests of two benches as predictors of an outcome."""

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError, EvidenceError, listed
from steelyard.core.remedies import FILE, NAME, Advice, Remedy
from steelyard.core.types import Counts, Run
from steelyard.evaluation.correlation import (
    FEWEST_MATCHED,
    CoefficientName,
    CorrelateSummary,
    correlate_series,
    value_of,
)
from steelyard.evaluation.model_tables import is_table
from steelyard.evaluation.model_values import ModelValues, choose_families, read_values
from steelyard.io.data_files import find_runs
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import Argument, Option, RunFolder, SettingOption, Verb


class Config(BaseConfig, frozen=True):
    """Which columns of tables are benches and outcomes, the coefficient, and the resampling of prompts."""

    columns: tuple[str, ...] = ()
    """The columns of tables that are benches. Default: all with numbers."""
    outcome_columns: tuple[str, ...] = ()
    """The columns of tables that are outcomes. Default: all with numbers; in a table of both, the others."""
    coefficient: CoefficientName = "spearman"
    """The coefficient of the headline, the figures and the test: spearman, pearson or kendall."""
    n: Positive | None = None
    """The N of runs of best-of-n. Default: the largest."""
    families_by_name: bool = False
    """Take models whose names have the same backbone (llama, qwen …) for one family."""
    num_resamples: Positive = 1000
    """The number of bootstrap resamples of prompts, where runs are compared."""
    seed: int = 0
    """The seed of the resamples."""


_DEFAULT = Config()


VERB = Verb(
    "Comparisons and reports",
    63,
    (
        Argument("benches", "Benches: tables of models (CSV), evaluations, folders of them, or quoted patterns."),
        Option("outcomes", "Outcomes: tables of models (CSV), or runs of evaluate, best-of-n or leaderboard; repeat."),
        Option("out", "The folder for the result, run.json."),
        SettingOption("columns", note="With commas.", has_commas=True),
        SettingOption("outcome_columns", note="With commas.", has_commas=True),
        SettingOption("n"),
        Option("families", "A CSV file with the columns model and family."),
        SettingOption("families_by_name"),
        SettingOption("coefficient"),
    ),
)


def correlate(
    benches: Sequence[RunFolder],
    *,
    outcomes: Sequence[RunFolder],
    out: Path,
    config: Config = _DEFAULT,
    families: Path | None = None,
    force: bool = False,
) -> Run[CorrelateSummary]:
    """Correlate benches with outcomes over models: Pearson, Spearman and Kendall, and which bench predicts better.

    A table has a row a model, a column of their names, and a column for each bench or outcome. Evaluations of one bench
    are one bench, whose prompts are resampled; runs of `best-of-n` give the gold value of the answer chosen among
    N; runs of `leaderboard`, and of `languages` over several models, are tables. Models of one side alone are
    named and counted.

    Two benches are compared on their common models, by a test of correlations that share an outcome; p-values are
    corrected for the number of pairs. Each comparison has the difference
    that this number of models can show.

    Models that share a backbone are not independent. With ``families``, or where records or a column of tables have
    them, families are the unit, and fewer than eight are not evidence.

    Example: `steelyard correlate table.csv --columns rewardbench --outcomes table.csv --out correlated`

    Example: `steelyard correlate evaluated-a evaluated-b evaluated --outcomes gold.csv --out predicted`

    Raises EvidenceError for fewer than three models on both sides and where no bench has a correlation, RecordError for
    a broken row of a table.

    >>> models = ("longer", "shorter", "first")
    >>> benches, outcomes = ([sy.evaluate(model, part) for model in models] for part in (cases[:10], cases[10:]))
    >>> correlated = sy.correlate(benches, outcomes=outcomes, num_resamples=200)
    >>> correlated.table[0]["num_models"]
    3
    """
    left, right = _expanded(benches), _expanded(outcomes)
    if not left or not right:
        problem, do = ("no bench is named", "name tables or evaluations") if not left else ("no outcome is named", None)
        raise EvidenceError(problem, do=do or Advice("name tables or runs: ", Remedy("outcomes", FILE)))
    inputs = {**_inputs("bench", left), **_inputs("outcome", right)}
    inputs |= {} if families is None else {"families": families}

    def write(result: Result) -> None:
        sides = _read(left, right, config)
        names = {key: name for side in sides for key, name in side.names.items()}
        chosen = choose_families(sides, families, by_names=config.families_by_name)
        summary = correlate_series(sides[0].series, sides[1].series, names, chosen, coefficient=config.coefficient)
        if all(value_of(each, config.coefficient).value is None for each in summary.correlations):
            _refuse_undefined(summary, sides)
        result.summary = msgspec.structs.replace(
            summary,
            empty=tuple(dict.fromkeys(cell for side in sides for cell in side.empty)),
            text_columns=tuple(dict.fromkeys(name for side in sides for name in side.text_columns)),
        )
        unmatched = {
            "in benches alone": len(summary.unmatched_benches),
            "in outcomes alone": len(summary.unmatched_outcomes),
        }
        noted = {
            "missing values": len(result.summary.empty),
            "best-of-n on fewer prompts": sum(side.num_fewer for side in sides),
        }
        result.counts = Counts(
            num_in=len(summary.models) + sum(unmatched.values()),
            num_used=len(summary.models),
            dropped={reason: number for reason, number in unmatched.items() if number},
            noted={name: number for name, number in noted.items() if number},
        )

    return run_stage(out, "correlate", Run[CorrelateSummary], write, config=config, inputs=inputs, force=force)


def _refuse_undefined(summary: CorrelateSummary, sides: Sequence[ModelValues]) -> NoReturn:
    """Raise EvidenceError, which names the columns of equal values with their files."""
    files = {**sides[0].files, **sides[1].files}
    constant = [f"{files[name]}: {name}" if name in files else name for name in summary.constant]
    why = f"all models have the same value in {listed(constant)}" if constant else "too few models have both values"
    raise EvidenceError(
        f"no correlation is defined: {why}",
        allowed=f"a bench and an outcome with different values and at least {FEWEST_MATCHED} models in common",
    )


def _expanded(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return tables and the folders of runs, each once."""
    every = [
        each for path in paths for each in ((path,) if is_table(path) else find_runs((path,), "evaluate", "best-of-n"))
    ]
    return tuple(dict.fromkeys(every))


def _inputs(role: str, paths: Sequence[Path]) -> dict[str, Path]:
    """Return the files of one side by role; those of an evaluation are its record and its items."""
    files: dict[str, Path] = {}
    for number, path in enumerate(paths, 1):
        files[f"{role}.{number}"] = path / "run.json" if path.is_dir() else path
        if not is_table(path) and (path / "items.jsonl").is_file():
            files[f"{role}_items.{number}"] = path / "items.jsonl"
    return files


def _read(left: Sequence[Path], right: Sequence[Path], config: Config) -> tuple[ModelValues, ModelValues]:
    """Read both sides. A column of a table that is on both sides is a bench or an outcome, whichever is named."""
    shared = {path.resolve() for path in left if is_table(path)} & {path.resolve() for path in right if is_table(path)}
    if shared and not config.columns and not config.outcome_columns:
        do = Advice("say which of its columns are benches: ", Remedy("columns", NAME))
        raise ConfigError("benches and outcomes are the same table", where=str(min(shared)), do=do)
    both = [name for name in config.columns if name in config.outcome_columns]
    if shared and both:
        raise ConfigError(f"the column {both[0]!r} of one table is a bench and an outcome", where=str(min(shared)))
    settings = {"n": config.n, "num_resamples": config.num_resamples, "seed": config.seed}
    return (
        read_values(
            left,
            config.columns,
            side="columns",
            excluded=dict.fromkeys(shared, config.outcome_columns),
            **settings,
        ),
        read_values(
            right,
            config.outcome_columns,
            side="outcome_columns",
            excluded=dict.fromkeys(shared, config.columns),
            **settings,
        ),
    )
