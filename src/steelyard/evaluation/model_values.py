"""Values of models on benches and outcomes, read from tables and from runs, with the families of the models.

A table has a row a model: a column ``model`` (or 模型) with names, and columns of numbers. A column without any number
is left out and named; a column ``family`` has the families. A cell that is empty, or a dash, is a missing value.
Evaluations of one bench make one series, whose prompts are resampled.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.core.errors import ConfigError, EvidenceError, FileError, ModelError, Place, RecordError, choices
from steelyard.core.names import name_key
from steelyard.core.numerics import derived_seed
from steelyard.core.protocols import Row
from steelyard.core.remedies import Advice, Command
from steelyard.core.types import Meta, Run
from steelyard.evaluation.correlation import Families, Series
from steelyard.evaluation.evaluations import (
    BENCH_SETTINGS,
    bench_hashes,
    has_headline,
    join_evaluations,
    ranking_of,
    read_evaluation,
)
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.io.rows import read_rows
from steelyard.io.run_folder import RUN_FILE, read_run
from steelyard.networks.settings import read_manifest
from steelyard.statistics.significance import HeadlineBootstrap

_MODEL = ("model", "模型")
_FAMILY = ("family", "backbone", "家族", "基座")
_ABSENT = frozenset({"", "-", "\N{EN DASH}", "\N{EM DASH}", "na", "n/a", "nan", "none", "null"})
_PERCENT = 100.0
_FEW_SHARES = 5.0
"""The smallest ratio of the least percentage to the greatest share in a column that mixes both."""
_BACKBONES = (
    "llama", "qwen", "gemma", "mixtral", "mistral", "internlm", "baichuan", "chatglm", "glm", "deepseek", "phi", "yi",
    "gpt", "claude", "gemini", "command", "aya", "pythia", "olmo", "smollm", "falcon", "deberta", "t5",
)  # fmt: skip
_LETTERS = re.compile(r"[^\W\d_]+")


class ModelValues(NamedTuple):
    """The series of one side, benches or outcomes, and what its inputs say about their models.

    ``names`` has the model of each key, ``families`` its family where the input has it, ``empty`` the missing cells,
    ``text_columns`` the columns without a number.
    """

    series: tuple[Series, ...]
    names: dict[str, str]
    families: dict[str, str]
    empty: tuple[str, ...]
    text_columns: tuple[str, ...]


class _Table(NamedTuple):
    """A table of models: its place, the name by key, and for each column the value by key."""

    path: Path
    names: dict[str, str]
    families: dict[str, str]
    columns: dict[str, dict[str, float]]
    empty: tuple[str, ...]
    text_columns: tuple[str, ...]


def is_table(path: Path) -> bool:
    """Return whether a path is a table, present or not, rather than the folder of a run."""
    return path.is_file() or (bool(path.suffix) and not path.exists() and path.suffix.lower() in (".csv", ".tsv"))


def read_values(
    paths: Sequence[Path],
    columns: Sequence[str],
    *,
    side: str,
    excluded: Mapping[Path, Sequence[str]] | None = None,
    num_resamples: int,
    seed: int,
) -> ModelValues:
    """Read one side. ``columns`` are those of tables that count, empty for all; ``side`` is the setting that has them.

    ``excluded``: columns of a table that the other side uses. Raises FileError, RecordError, ConfigError or
    EvidenceError for broken input, with file and line.
    """
    tables = [
        _read_table(path, columns, side, (excluded or {}).get(path.resolve(), ())) for path in paths if is_table(path)
    ]
    absent = [name for name in columns if not any(name in table.columns for table in tables)]
    if absent:
        known = [name for table in tables for name in (*table.columns, *table.text_columns)]
        allowed = choices(absent[0], known) if known else "columns of tables, and none is named"
        raise ConfigError(f"no table has the column {absent[0]!r}", where=side, allowed=allowed)
    runs = _Runs.read([path for path in paths if not is_table(path)])
    names, families, series = dict(runs.names), dict(runs.families), list(runs.series(num_resamples, seed))
    for table in tables:
        names |= {key: name for key, name in table.names.items() if key not in names}
        families |= table.families
        taken = {each.name for each in series}
        series += [
            Series(f"{table.path.stem}: {column}" if column in taken else column, values)
            for column, values in table.columns.items()
        ]
    if not series:
        raise EvidenceError(
            "no column of numbers is left", where=str(paths[0]), allowed="a column with a number a model"
        )
    empty = [*runs.without_value, *(cell for table in tables for cell in table.empty)]
    left_out = [f"{table.path}: {column}" for table in tables for column in table.text_columns]
    return ModelValues(tuple(series), names, families, tuple(empty), tuple(left_out))


def read_families(path: Path) -> dict[str, str]:
    """Read a table of models and their families, by the keys of the models' names."""
    families: dict[str, str] = {}
    for row in read_rows(path):
        model, family = (_only_column(row, names, kind) for names, kind in ((_MODEL, "models"), (_FAMILY, "families")))
        key, name = name_key(_text(row, model)), _text(row, family)
        if not key or not name:
            raise RecordError(
                f"{model if not key else family} is empty", where=row.place, allowed="a model and its family"
            )
        if key in families:
            raise RecordError(f"{_text(row, model)!r} is there twice", where=row.place, allowed="one row a model")
        families[key] = name
    return families


def choose_families(sides: Iterable[ModelValues], path: Path | None, *, by_names: bool) -> Families:
    """Return the families of a file, else those of records and tables, else on request those that names show."""
    sides = list(sides)
    names = {key: name for side in sides for key, name in side.names.items()}
    by_key, source = {key: family for side in sides for key, family in side.families.items()}, "records"
    if path is not None:
        by_key, source = read_families(path), "file"
        if not by_key.keys() & names.keys():
            raise EvidenceError(
                "no model of this file is in the benches or outcomes", where=str(path), do="write the names alike"
            )
    elif by_names:
        words = {key: _LETTERS.findall(key) for key in names}
        by_key = {key: word for key, parts in words.items() for word in _BACKBONES[::-1] if word in parts}
        source = "names"
    return Families(by_key, source if by_key else None)  # pyright: ignore[reportArgumentType]


def _read_table(path: Path, columns: Sequence[str], side: str, excluded: Sequence[str]) -> _Table:
    """Read a table; ``columns`` selects among its columns."""
    rows = list(read_rows(path))
    if not rows:
        raise FileError("the table has no rows", where=str(path), allowed="a row for each model")
    model = _only_column(rows[0], _MODEL, "models")
    present = list(dict.fromkeys(str(name) for row in rows for name in row.value))
    folded = [name_key(name) for name in present]
    if len(set(folded)) < len(folded):
        name = next(name for name in present if folded.count(name_key(name)) > 1)
        raise RecordError(
            f"the column {name!r} is there twice", where=Place(str(path), 1), allowed="one column a value"
        )
    family = next((name for name in present if name_key(name) in _FAMILY), None)
    names: dict[str, str] = {}
    lines: dict[str, Place] = {}
    for row in rows:
        name = _text(row, model)
        key = name_key(name)
        if not key or key in names:
            problem = f"{name!r} is there twice, first in {lines[key]}" if key else "a row without the name of a model"
            raise RecordError(problem, where=row.place, allowed="one row a model")
        names[key], lines[key] = name, row.place
    values: dict[str, dict[str, float]] = {}
    empty: list[str] = []
    text_columns: list[str] = []
    wanted = [name for name in present if name not in (model, family) and name not in excluded]
    for column in [name for name in wanted if name in columns] if columns else wanted:
        if not columns and not any(_is_number(_text(row, column)) for row in rows):
            text_columns.append(column)
            continue
        values[column], absent = _read_column(rows, column, list(names))
        empty += absent
    families = (
        {}
        if family is None
        else {key: _text(row, family) for key, row in zip(names, rows, strict=True) if _text(row, family)}
    )
    return _Table(path, names, families, values, tuple(empty), tuple(text_columns))


def _read_column(rows: Sequence[Row], column: str, keys: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """Return the numbers of a column by model, and its empty cells. A sign % divides a number by 100."""
    numbers: dict[str, float] = {}
    empty: list[str] = []
    signed: dict[str, bool] = {}
    for key, row in zip(keys, rows, strict=True):
        text = _text(row, column)
        if text.casefold() in _ABSENT:
            empty.append(f"{row.place} {column}")
            continue
        if not _is_number(text):
            raise RecordError(
                f"{column} is {text[:40]!r}", where=row.place, allowed="a number, or an empty cell for a missing value"
            )
        signed[key] = text.endswith("%")
        numbers[key] = _number(text)
    places = dict(zip(keys, (row.place for row in rows), strict=True))
    for key in numbers:
        if any(signed.values()) and not signed[key]:
            raise RecordError(
                f"{column} is a number without %, and others have the sign",
                where=places[key],
                do="write the sign in all cells of the column, or in none",
            )
    _check_scale(column, numbers, places, is_percent=any(signed.values()))
    return numbers, empty


def _check_scale(column: str, numbers: Mapping[str, float], places: Mapping[str, Place], *, is_percent: bool) -> None:
    """Raise RecordError where some numbers look like shares and others like percentages."""
    shares = {key: value for key, value in numbers.items() if 0 < value < 1}
    larger = [value for value in numbers.values() if value > 1]
    if is_percent or not shares or not larger or not all(0 <= value <= _PERCENT for value in numbers.values()):
        return
    if min(larger) / max(shares.values()) >= _FEW_SHARES:
        few_are_shares = len(shares) <= len(larger)
        key = next(
            key for key, value in numbers.items() if (key in shares) == few_are_shares and (key in shares or value > 1)
        )
        raise RecordError(
            f"{column} is {numbers[key]:g}, and others are {'percentages' if few_are_shares else 'shares'}",
            where=places[key],
            allowed="shares or percentages in one column, not both",
            do="write the column in one unit; with the sign % in all cells it is in percent",
        )


def _only_column(row: Row, names: Sequence[str], kind: str) -> str:
    matches = [str(name) for name in row.value if name_key(str(name)) in names]
    if len(matches) != 1:
        problem = f"{len(matches)} columns have" if matches else "no column has"
        place = Place(row.place.file, 1)
        raise RecordError(f"{problem} the {kind}", where=place, allowed=f"a column {' or '.join(map(repr, names))}")
    return matches[0]


def _text(row: Row, column: str) -> str:
    value = row.value.get(column)
    return "" if value is None else str(value).strip().replace("\N{MINUS SIGN}", "-")


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})? ?%?", text) is not None and math.isfinite(
        _number(text)
    )


def _number(text: str) -> float:
    return float(text.rstrip("% ")) / (_PERCENT if text.endswith("%") else 1.0)


class _Runs(NamedTuple):
    """The runs of one side: evaluations by bench, and the headlines of other stages by what they measure."""

    evaluations: dict[str, list[tuple[str, Path, Run[EvaluationSummary]]]]
    headlines: dict[str, dict[str, float]]
    names: dict[str, str]
    families: dict[str, str]
    without_value: tuple[str, ...]

    @classmethod
    def read(cls, folders: Sequence[Path]) -> "_Runs":
        """Read the records of these folders. Raises EvidenceError for a model that a bench has twice."""
        runs = [(folder, read_run(folder)) for folder in folders]
        titles = _titles(runs)
        models = _models(runs, titles)
        result = cls(
            {}, {}, {}, {}, tuple(f"{folder}/{RUN_FILE}" for folder, run in runs if _value(folder, run) is None)
        )
        for (folder, run), title, model in zip(runs, titles, models, strict=True):
            key = name_key(model)
            result.names.setdefault(key, model)
            if (family := _family_of(run)) is not None:
                result.families.setdefault(key, family)
            value = _value(folder, run)
            if value is None:
                continue
            if run.stage == "evaluate":
                result.evaluations.setdefault(title, []).append((key, folder, read_evaluation(folder)))
            else:
                result.headlines.setdefault(title, {})[key] = value
        return result

    def series(self, num_resamples: int, seed: int) -> Iterator[Series]:
        """Yield a series for each bench, with resamples of its prompts, and one for each other headline."""
        for title, members in self.evaluations.items():
            keys = [key for key, _, _ in members]
            evaluations = join_evaluations([folder for _, folder, _ in members], [run for _, _, run in members])
            # Two labellings of the same prompts share their resamples, and other prompts have others.
            prompts = derived_seed(seed, *(label.prompt for label in evaluations.labels))
            formula = ranking_of(evaluations).formula
            bootstrap = HeadlineBootstrap(evaluations.layout, formula, num_resamples, prompts)
            headlines = bootstrap.draw([each.statistics for each in evaluations.evaluated])
            yield Series(title, dict(zip(keys, headlines.point.tolist(), strict=True)), headlines.resampled)
        for title, values in self.headlines.items():
            yield Series(title, values)


def _titles(runs: Sequence[tuple[Path, Run[Meta]]]) -> list[str]:
    """Return the bench of each run; benches of one name and other files or settings show their file, or a number."""
    identities: list[tuple[str, str]] = []
    for _, run in runs:
        settings = [run.config.get(key) for key in BENCH_SETTINGS] if run.stage == "evaluate" else []
        identity = msgspec.json.encode([run.stage, bench_hashes(run), settings]).decode()
        identities.append((str(run.summary.get("bench") or run.stage), identity))
    distinct = list(dict.fromkeys(identities))
    titles: dict[tuple[str, str], str] = {}
    for key in distinct:
        title = key[0]
        if sum(other[0] == title for other in distinct) > 1:
            run = runs[identities.index(key)][1]
            files = [Path(file.path) for role, file in run.inputs.items() if role.split(".")[0] == "bench"]
            title = f"{title} ({files[0].parent.name}/{files[0].name})" if files else title
        number = sum(other.split(" #")[0] == title for other in titles.values())
        titles[key] = title if not number else f"{title} #{number + 1}"
    return [titles[key] for key in identities]


def _models(runs: Sequence[tuple[Path, Run[Meta]]], titles: Sequence[str]) -> list[str]:
    """Return the model of each run. Where one bench has a name several times, folders tell its models apart."""
    names = [str(run.summary.get("model") or folder.name) for folder, run in runs]
    pairs = list(zip(titles, map(name_key, names), strict=True))
    repeated = {key for title, key in pairs if pairs.count((title, key)) > 1}
    shown = [folder.name if name_key(name) in repeated else name for name, (folder, _) in zip(names, runs, strict=True)]
    known: dict[tuple[str, str], Path] = {}
    for (folder, _), title, name in zip(runs, titles, shown, strict=True):
        if (title, name_key(name)) in known:
            raise EvidenceError(
                f"the model {name!r} of {title} is also that of {known[title, name_key(name)]}",
                where=str(folder),
                do="name each evaluation once; one model with several settings needs a folder name for each",
            )
        known[title, name_key(name)] = folder
    return shown


def _value(folder: Path, run: Run[Meta]) -> float | None:
    """Return the headline of a run; null without one. Raises FileError for a stage whose summary names no headline."""
    if run.stage == "evaluate":
        evaluation = read_evaluation(folder)
        return evaluation.summary.accuracy.value if has_headline(evaluation) else None
    headline: Any = run.summary.get("headline")
    estimate: Any = run.summary.get(headline) if isinstance(headline, str) else headline
    if not isinstance(estimate, dict) or "value" not in estimate:
        raise FileError(
            f"a run of {run.stage} has no headline of a model",
            where=str(folder),
            allowed=Advice("tables, and runs of `", Command("evaluate"), "`"),
        )
    value = estimate["value"]
    return float(value) if isinstance(value, int | float) else None


def _family_of(run: Run[Meta]) -> str | None:
    """Return what a record knows of a model's backbone: its hash, or the base model in the manifest of its folder."""
    protocol = run.summary.get("protocol")
    if isinstance(protocol, dict) and isinstance(protocol.get("backbone"), str):
        return str(protocol["backbone"])[:12]
    for role, file in run.inputs.items():
        if role == "model.path":
            with suppress(FileError, ModelError):
                manifest = read_manifest(Path(file.path))
                return None if manifest is None else manifest.base_model
    return None
