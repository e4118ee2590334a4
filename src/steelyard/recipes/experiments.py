"""Experiments of trainings: their file, the stages of an arm and a seed, and arms measured on the same prompts."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import resolve_config
from steelyard.core.errors import ConfigError
from steelyard.core.types import Counts, Input, JsonObject, Meta, Record, Run
from steelyard.evaluation.bench_table import column_formulas
from steelyard.evaluation.benches import split_kinds
from steelyard.evaluation.evaluations import read_evaluations
from steelyard.io.atomic import atomic_write, only_writer, write_text
from steelyard.io.hashing import file_hash
from steelyard.io.lines import read_toml, toml_places
from steelyard.io.run_folder import RUN_FILE, installed_versions, read_run
from steelyard.recipes.measured_arms import MeasuredArm, MeasuredArms, measure_arm
from steelyard.recipes.recipe import Recipe, build_recipe
from steelyard.recipes.run import run
from steelyard.training.config import TrainingSummary

_MIN_SEEDS = 3
Tables = dict[str, JsonObject]
"""Stages by name, as tables of a recipe."""


class Experiment(BaseConfig, frozen=True, kw_only=True):
    """The settings of every experiment: test files, seeds, and settings of `train` and `evaluate`."""

    benches: tuple[str, ...]
    """The test files, as `[KIND=]FILE`; each kind is an evaluation of its own."""
    about: str = ""
    """A sentence about the experiment, for its report."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """The seeds; each training is done once for each."""
    train: Meta = msgspec.field(default_factory=dict)
    """Settings of `train`."""
    evaluate: Meta = msgspec.field(default_factory=dict)
    """Settings of `evaluate`."""
    num_threads: int | None = None
    """The number of threads of a training. Default: PyTorch's."""


ExperimentType = TypeVar("ExperimentType", bound=Experiment)


def read_experiment(kind: type[ExperimentType], path: Path, settings: JsonObject | None = None) -> ExperimentType:
    """Return the experiment of a file; ``settings`` override its own, a table key by key.

    Raises ConfigError for an unknown setting or fewer than three different seeds: one seed shows no effect.
    """
    content = read_toml(path)
    content.pop("experiment", None)
    for key, value in (settings or {}).items():
        both = isinstance(value, dict) and isinstance(content.get(key), dict)
        content[key] = content[key] | value if both else value
    with toml_places(path):
        experiment = resolve_config(kind, content, where=str(path))
    num_seeds = len(set(experiment.seeds))
    if num_seeds < _MIN_SEEDS:
        raise ConfigError(f"{num_seeds} seeds", where=f"{path} at seeds", allowed=f"{_MIN_SEEDS} different or more")
    return experiment


def model_name(arm: str, seed: int) -> str:
    """Return the name of the stage that trains an arm with a seed."""
    return f"{arm}.{seed}.model"


def evaluation_name(arm: str, seed: int, bench: str | None = None) -> str:
    """Return the name of the stage that evaluates an arm trained with a seed, on one of several kinds of bench."""
    return f"{arm}.{seed}.evaluated" + (f".{bench}" if bench else "")


def bench_files(experiment: Experiment, folder: Path) -> dict[str | None, list[str]]:
    """Return the test files of each kind of bench; the kind is null where there is only one."""

    def is_path(text: str) -> bool:
        return (folder / text).exists() or Path(text).exists()

    by_kind = split_kinds(experiment.benches, is_path=is_path)
    if len(by_kind) < 2:
        return {None: list(experiment.benches)}
    if "bench_kind" in experiment.evaluate:
        problem = f"bench_kind with files of several kinds: {', '.join(by_kind)}"
        raise ConfigError(problem, where="evaluate", do="leave bench_kind away")
    return {kind: [f"{kind}={file}" for file in files] for kind, files in by_kind.items()}


def trained_and_evaluated(
    arm: str, seed: int, *, cases: str, model: str, experiment: Experiment, settings: JsonObject | None = None
) -> Tables:
    """Return the two stages of an arm and a seed. ``settings`` of the training override the experiment's."""
    threads = {} if experiment.num_threads is None else {"num_threads": experiment.num_threads}
    config = experiment.train | (settings or {}) | {"seed": seed}
    trained = model_name(arm, seed)
    return {
        trained: {"verb": "train", "cases": cases, "model": model, "config": config, **threads},
        evaluation_name(arm, seed): {
            "verb": "evaluate",
            "benches": list(experiment.benches),
            "model": trained,
            "config": {"baselines": []} | experiment.evaluate | {"seed": 0},
            **threads,
        },
    }


def percent(share: float) -> str:
    """Return a share as part of a name: 25% for 0.25."""
    return f"{100 * share:g}%"


def draw_share(file: str, share: float, seed: int, *, name: str) -> tuple[Tables, str]:
    """Return the stage that draws a share of a file's prompts, and its output.

    Raises ConfigError for a share outside its range.
    """
    if not 0 < share <= 1:
        raise ConfigError(f"scaling by {share}", where="scaling", allowed="shares above 0, at most 1")
    if share == 1:
        return {}, file
    stage = f"{name}.{seed}.part"
    parts = {"kept": share, "rest": 1 - share}
    return {stage: {"verb": "split", "cases": file, "config": {"parts": parts, "seed": seed}}}, f"{stage}/kept.jsonl"


def read_arms(names: Sequence[str], seeds: Sequence[int], out: Path, bench: str | None = None) -> MeasuredArms:
    """Read the arms that were trained and evaluated below ``out``. Raises as reading evaluations together does."""
    evaluations = read_evaluations([out / evaluation_name(arm, seed, bench) for arm in names for seed in seeds])
    columns = column_formulas(evaluations)
    measured: dict[str, MeasuredArm] = {}
    for index, name in enumerate(names):
        evaluated = evaluations.evaluated[index * len(seeds) : (index + 1) * len(seeds)]
        trained = [read_run(out / model_name(name, seed), Run[TrainingSummary]).summary for seed in seeds]
        measured[name] = measure_arm(name, evaluations.layout, columns, trained=trained, evaluated=evaluated)
    statistics = {name: each.statistics for name, each in measured.items()}
    return MeasuredArms(tuple(each.arm for each in measured.values()), statistics, evaluations.layout, columns)


class ExperimentResult(Protocol):
    """The measured arms of an experiment, and what its kind derives from them."""

    def record(self) -> Record:
        """Return the result as it is written."""
        ...

    def figure(self) -> JsonObject:
        """Return the plot as a Vega-Lite specification."""
        ...

    @classmethod
    def join(cls, by_bench: Mapping[str, Self]) -> Self:
        """Return the results on several kinds of bench as one, p-values corrected over all."""
        ...


ResultType = TypeVar("ResultType", bound=ExperimentResult)


class ExperimentKind(NamedTuple, Generic[ExperimentType, ResultType]):
    """A kind of experiment. Its result is written as ``NAME.json`` and ``NAME.svg``, and in ``run.json``.

    ``check`` raises ConfigError for settings that compare nothing. ``arms`` returns the names of the arms in the order
    of the table, ``stages`` the stages of the recipe, ``compare`` the result of the measured arms.
    """

    name: str
    verb: str
    config: type[ExperimentType]
    summary: type[Record]
    check: Callable[[ExperimentType, str], None]
    arms: Callable[[ExperimentType], Sequence[str]]
    stages: Callable[[ExperimentType], Tables]
    compare: Callable[[ExperimentType, MeasuredArms], ResultType]

    def read(self, path: Path, settings: JsonObject | None = None) -> ExperimentType:
        """Return the experiment of a file; ``settings`` override its own. Raises ConfigError if it compares nothing."""
        experiment = read_experiment(self.config, path, settings)
        self.check(experiment, str(path))
        return experiment

    def recipe(self, experiment: ExperimentType, path: Path) -> Recipe:
        """Return the experiment as one recipe; its files are searched beside ``path``. Raises as recipes do."""
        by_bench = bench_files(experiment, path.parent)
        tables: Tables = {}
        for name, table in self.stages(experiment).items():
            if table["verb"] != "evaluate":
                tables[name] = table
                continue
            for bench, files in by_bench.items():
                tables[f"{name}.{bench}" if bench else name] = table | {"benches": files}
        return build_recipe({"about": experiment.about, "stages": tables}, path)

    def run(self, experiment: ExperimentType, path: Path, out: Path) -> ResultType:
        """Train and evaluate every arm with every seed, and write the result and its plot.

        Finished stages are skipped: after a kill, or with another seed or arm, the run continues in the same folder.
        Raises the errors of the stages.
        """
        import vl_convert

        run(self.recipe(experiment, path), out)
        by_bench = {
            bench: self.compare(experiment, read_arms(self.arms(experiment), experiment.seeds, out, bench))
            for bench in bench_files(experiment, path.parent)
        }
        several = {bench: result for bench, result in by_bench.items() if bench is not None}
        result = next(iter(several.values())).join(several) if several else by_bench[None]
        with only_writer(out):
            # The record of an earlier run goes first: it would vouch for what a kill leaves half replaced.
            (out / RUN_FILE).unlink(missing_ok=True)
            with atomic_write(out / f"{self.name}.json") as file:
                file.write(msgspec.json.format(msgspec.json.encode(result.record()), indent=2) + b"\n")
            write_text(out / f"{self.name}.svg", vl_convert.vegalite_to_svg(result.figure()))
            self._record(experiment, path, out, result)
        return result

    def _record(self, experiment: ExperimentType, path: Path, out: Path, result: ResultType) -> None:
        """Write the record of the experiment, which `report` reads; the stages have their own in their folders."""
        num_trainings = len(self.arms(experiment)) * len(experiment.seeds)
        outputs = {name: file_hash(out / name) for name in (f"{self.name}.json", f"{self.name}.svg")}
        record = Run(
            stage=self.verb,
            config=msgspec.to_builtins(experiment),
            inputs={"experiment": Input(path=str(path), sha256=file_hash(path))},
            outputs=outputs,
            versions=installed_versions(),
            counts=Counts(num_in=num_trainings, num_used=num_trainings),
            summary=result.record(),
        )
        with atomic_write(out / RUN_FILE) as file:
            file.write(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
