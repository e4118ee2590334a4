"""Values of models on benches and outcomes, read from tables and from runs, with the families of the models.

Tables are those of `model_tables`. Evaluations of one bench make one series, whose prompts are resampled. Runs of
`best-of-n` on the same prompts make one: the gold value of the answer chosen among N. The model of a file of scores is
that of the run of `score` which wrote it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.errors import ConfigError, EvidenceError, FileError, ModelError, RecordError, choices
from steelyard.core.names import name_key
from steelyard.core.numerics import derived_seed
from steelyard.core.remedies import NUMBER, Advice, Command, Remedy
from steelyard.core.types import Meta, Run
from steelyard.evaluation.best_of_n import BestOfNCurve, BestOfNSummary
from steelyard.evaluation.correlation import Families, Series
from steelyard.evaluation.evaluations import (
    bench_hashes,
    bench_settings,
    has_headline,
    join_evaluations,
    ranking_of,
    read_evaluation,
)
from steelyard.evaluation.model_tables import FAMILY_COLUMNS, is_table, read_table, text_of
from steelyard.evaluation.printed_tables import model_column, only_column, rows_of_table
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.io.hashing import file_hash
from steelyard.io.run_folder import RUN_FILE, read_run
from steelyard.networks.settings import read_manifest
from steelyard.statistics.significance import HeadlineBootstrap

_BACKBONES = (
    "llama", "qwen", "gemma", "mixtral", "mistral", "internlm", "baichuan", "chatglm", "glm", "deepseek", "phi", "yi",
    "gpt", "claude", "gemini", "command", "aya", "pythia", "olmo", "smollm", "falcon", "deberta", "t5",
)  # fmt: skip
_LETTERS = re.compile(r"[^\W\d_]+")


class ModelValues(NamedTuple):
    """The series of one side, benches or outcomes, and what its inputs say about their models.

    ``names`` has the model of each key, ``families`` its family where the input has it, ``empty`` the missing cells,
    ``text_columns`` the columns without a number, ``files`` the table of each series that is a column of one.
    ``num_fewer``: runs of best-of-n on fewer prompts than others.
    """

    series: tuple[Series, ...]
    names: dict[str, str]
    families: dict[str, str]
    empty: tuple[str, ...]
    text_columns: tuple[str, ...]
    num_fewer: int = 0
    files: Mapping[str, Path] = {}


def read_values(
    paths: Sequence[Path],
    columns: Sequence[str],
    *,
    side: str,
    excluded: Mapping[Path, Sequence[str]],
    n: int | None,
    num_resamples: int,
    seed: int,
) -> ModelValues:
    """Read one side. ``columns`` are those of tables that count, empty for all; ``side`` is the setting that has them.

    ``excluded``: columns of a table that the other side uses. ``n``: that of runs of best-of-n, null for the largest.
    Raises FileError, RecordError, ConfigError or EvidenceError for broken input, with file and line.
    """
    tables = [read_table(path, columns, excluded.get(path.resolve(), ())) for path in paths if is_table(path)]
    absent = [name for name in columns if not any(name in table.columns for table in tables)]
    if absent:
        known = [name for table in tables for name in table.present]
        allowed = choices(absent[0], known) if known else "columns of tables, and none is named"
        raise ConfigError(f"no table has the column {absent[0]!r}", where=side, allowed=allowed)
    runs = _Runs.read([path for path in paths if not is_table(path)], n)
    names, families, series = dict(runs.names), dict(runs.families), list(runs.series(num_resamples, seed))
    files: dict[str, Path] = {}
    for table in tables:
        names |= {key: name for key, name in table.names.items() if key not in names}
        families |= table.families
        taken = {each.name for each in series}
        for column, values in table.columns.items():
            name = f"{table.path.stem}: {column}" if column in taken else column
            series.append(Series(name, values))
            files[name] = table.path
    if not series:
        raise EvidenceError(
            "no column of numbers is left", where=str(paths[0]), allowed="a column with a number a model"
        )
    empty = [*runs.without_value, *(cell for table in tables for cell in table.empty)]
    left_out = [f"{table.path}: {column}" for table in tables for column in table.text_columns]
    return ModelValues(tuple(series), names, families, tuple(empty), tuple(left_out), runs.num_fewer, files)


def read_families(path: Path) -> dict[str, str]:
    """Read a table of models and their families, by the keys of the models' names."""
    families: dict[str, str] = {}
    for row in rows_of_table(path, ()):
        names = [*row.value]
        model, family = model_column(names, row.place), only_column(names, FAMILY_COLUMNS, "families", row.place)
        key, name = name_key(text_of(row, model)), text_of(row, family)
        if not key or not name:
            raise RecordError(
                f"{model if not key else family} is empty", where=row.place, allowed="a model and its family"
            )
        if key in families:
            raise RecordError(f"{text_of(row, model)!r} is there twice", where=row.place, allowed="one row a model")
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
    return Families(by_key, source if by_key else None)


class _Runs(NamedTuple):
    """The runs of one side: evaluations by bench, and the gold values of answers chosen by best-of-n.

    ``num_prompts`` has the number of prompts of each of these means.
    """

    evaluations: dict[str, list[tuple[str, Path, Run[EvaluationSummary]]]]
    chosen: dict[str, dict[str, float]]
    num_prompts: dict[str, list[int]]
    names: dict[str, str]
    families: dict[str, str]
    without_value: tuple[str, ...]

    @classmethod
    def read(cls, folders: Sequence[Path], n: int | None) -> "_Runs":
        """Read the records of these folders. Raises EvidenceError for a model that a bench has twice."""
        runs = [(folder, read_run(folder)) for folder in folders]
        for folder, run in runs:
            _check_stage(folder, run)
        scored = [_scoring_run(run) for _, run in runs]
        titles = _titles(runs, n)
        models = _models(runs, scored, titles)
        result = cls({}, {}, {}, {}, {}, ())
        without_value: list[str] = []
        for (folder, run), score_run, title, model in zip(runs, scored, titles, models, strict=True):
            key = name_key(model)
            result.names.setdefault(key, model)
            if (family := _family_of(run) or _family_of(score_run)) is not None:
                result.families.setdefault(key, family)
            if run.stage == "best-of-n":
                curve = _chosen_curve(folder)
                value = _value_among(curve, n, folder)
                if value is not None:
                    result.chosen.setdefault(title, {})[key] = value
                    result.num_prompts.setdefault(title, []).append(curve.num_prompts)
                    continue
            elif has_headline(evaluation := read_evaluation(folder)):
                result.evaluations.setdefault(title, []).append((key, folder, evaluation))
                continue
            without_value.append(f"{folder}/{RUN_FILE}")
        return result._replace(without_value=tuple(without_value))

    @property
    def num_fewer(self) -> int:
        """The number of means over fewer prompts than another of the same answers: some have no score there."""
        return sum(number < max(numbers) for numbers in self.num_prompts.values() for number in numbers)

    def series(self, num_resamples: int, seed: int) -> Iterator[Series]:
        """Yield a series for each bench, with resamples of its prompts, and one for each set of chosen answers."""
        for title, members in self.evaluations.items():
            keys = [key for key, _, _ in members]
            evaluations = join_evaluations([folder for _, folder, _ in members], [run for _, _, run in members])
            # Two labellings of the same prompts share their resamples, and other prompts have others.
            prompts = derived_seed(seed, *(label.prompt for label in evaluations.labels))
            formula = ranking_of(evaluations).formula
            bootstrap = HeadlineBootstrap(evaluations.layout, formula, num_resamples, prompts)
            headlines = bootstrap.draw([each.statistics for each in evaluations.evaluated])
            yield Series(title, dict(zip(keys, headlines.point.tolist(), strict=True)), headlines.resampled)
        for title, values in self.chosen.items():
            yield Series(title, values)


def _check_stage(folder: Path, run: Run[Meta]) -> None:
    """Raise FileError for a run that has no value of a model, with the verb that computes one."""
    if run.stage in ("evaluate", "best-of-n"):
        return
    todo = {
        "score": Advice("compare the scores with labels: `", Command("evaluate"), "` or `", Command("best-of-n"), "`"),
        "languages": Advice(
            "name the evaluation that it was made from, or several evaluations together: `", Command("languages"), "`"
        ),
    }
    raise FileError(
        f"a run of {run.stage} has no value to correlate",
        where=str(folder),
        allowed="tables (CSV), and runs of evaluate, best-of-n, leaderboard and languages over several models",
        do=todo.get(run.stage, Advice("evaluate the model: `", Command("evaluate"), "`")),
    )


def _titles(runs: Sequence[tuple[Path, Run[Meta]]], n: int | None) -> list[str]:
    """Return the bench of each run; benches of one name and other files or settings show their file, or a number."""
    identities: list[tuple[str, str]] = []
    largest: dict[str, tuple[int, Path]] = {}
    for folder, run in runs:
        if run.stage == "evaluate":
            identity = [run.stage, bench_hashes(run), bench_settings(run)]
            identities.append((str(run.summary.get("bench") or run.stage), msgspec.json.encode(identity).decode()))
            continue
        selection = read_run(folder, Run[BestOfNSummary]).summary
        files = [run.inputs[role].sha256 for role in ("cases", "gold_scores") if role in run.inputs]
        gold = [selection.gold, selection.dimension, selection.gold_by]
        identity = msgspec.json.encode([run.stage, files, gold]).decode()
        if selection.largest is not None:
            number, first = largest.setdefault(identity, (selection.largest, folder))
            if number != selection.largest:
                # The prompts of a curve are those with as many answers: other curves are of other prompts.
                least = min(number, selection.largest)
                raise EvidenceError(
                    f"the largest N is {selection.largest}, and {number} in {first}",
                    where=str(folder),
                    do=Advice("run all with the same: `", Command("best-of-n", (), (Remedy("largest", least),)), "`"),
                )
        unit = ", ".join(filter(None, (selection.dimension, selection.gold_by)))
        best_of = f"best of {n or selection.largest}: {selection.gold}"
        identities.append((f"{best_of} ({unit})" if unit else best_of, identity))
    distinct = list(dict.fromkeys(identities))
    titles: dict[tuple[str, str], str] = {}
    for key in distinct:
        title = key[0]
        if sum(other[0] == title for other in distinct) > 1:
            run = runs[identities.index(key)][1]
            files = _bench_files(run)
            title = f"{title} ({files[0].parent.name}/{files[0].name})" if files else title
        number = sum(other.split(" #")[0] == title for other in titles.values())
        titles[key] = title if not number else f"{title} #{number + 1}"
    return [titles[key] for key in identities]


def _bench_files(run: Run[Meta]) -> list[Path]:
    return [Path(file.path) for role, file in run.inputs.items() if role.split(".")[0] in ("bench", "cases")]


def _chosen_curve(folder: Path) -> BestOfNCurve:
    """Read the curve of a run of best-of-n. Raises EvidenceError where it has no gold values."""
    curve = read_run(folder, Run[BestOfNSummary]).summary.curve
    if curve is None:
        do = Advice("run it again with gold values: `", Command("best-of-n"), "`")
        raise EvidenceError("a run of best-of-n without gold values has no value of a model", where=str(folder), do=do)
    return curve


def _value_among(curve: BestOfNCurve, n: int | None, folder: Path) -> float | None:
    """Return the gold value of the answer chosen among N, null for the largest. Raises EvidenceError for another N."""
    by_number = {point.n: point.chosen.value for point in curve.points}
    if n is not None and n not in by_number:
        raise EvidenceError(
            f"its curve has no point at N = {n}",
            where=str(folder),
            allowed=f"one of {', '.join(map(str, by_number))}",
            do=Advice("change ", Remedy("n", NUMBER)),
        )
    return by_number[max(by_number) if n is None else n]


def _models(
    runs: Sequence[tuple[Path, Run[Meta]]], scored: Sequence[Run[Meta] | None], titles: Sequence[str]
) -> list[str]:
    """Return the model of each run. Where one bench has a name several times, folders tell its models apart."""
    names = [
        str((run.summary if score_run is None else score_run.summary).get("model") or folder.name)
        for (folder, run), score_run in zip(runs, scored, strict=True)
    ]
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


def _scoring_run(run: Run[Meta]) -> Run[Meta] | None:
    """Return the run of `score` that wrote the scores of a run; null where they are from elsewhere, or others now."""
    file = run.inputs.get("scores")
    if file is None:
        return None
    with suppress(FileError):
        scored = read_run(Path(file.path).parent)
        if scored.stage == "score" and file_hash(Path(file.path)) == file.sha256:
            return scored
    return None


def _family_of(run: Run[Meta] | None) -> str | None:
    """Return what a record knows of a model's backbone: its hash, or the base model in the manifest of its folder."""
    if run is None:
        return None
    protocol = run.summary.get("protocol")
    if isinstance(protocol, dict) and isinstance(protocol.get("backbone"), str):
        return str(protocol["backbone"])[:12]
    for role, file in run.inputs.items():
        if role == "model.path":
            with suppress(FileError, ModelError):
                manifest = read_manifest(Path(file.path))
                return None if manifest is None else manifest.base_model
    return None
