"""The sources of a case: the case files behind CASES or RUN, files of scores, model, and the rule for judgments."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import resolve_config
from steelyard.core.errors import ConfigError, FileError, Place, UserError, choices
from steelyard.core.plugins import build
from steelyard.core.remedies import CASES, Advice, Command, Remedy
from steelyard.core.types import Case, JsonObject, Run
from steelyard.evaluation.benches import normalize_case
from steelyard.evaluation.evaluations import bench_of
from steelyard.io.cases import read_cases
from steelyard.io.hashing import file_hash
from steelyard.io.rows import read_rows
from steelyard.io.run_folder import RUN_FILE, STARTED_FILE, read_run
from steelyard.plugins.reward_models import ModelChoice, choose_model
from steelyard.ranking.judgment_table import (
    EVERYTHING,
    Aggregate,
    Only,
    parse_only,
)

_WRITTEN_SUFFIXES = (".jsonl", ".parquet")
_READ_SUFFIXES = (*_WRITTEN_SUFFIXES, ".json")
_NO_CASES = ("model", "scores", "tokenizer", "run")


class Rule(BaseConfig, frozen=True):
    """The judgments that count, and whether those on one pair vote first: as in `resolve`."""

    only: Only = EVERYTHING
    """The judgments that count."""
    aggregate: Aggregate = "none"
    """Let the verdicts on a pair vote before conflicts are resolved."""

    def __str__(self) -> str:
        admitted = msgspec.structs.asdict(self.only)
        parts = [f"only {key}={name}" for key, names in admitted.items() for name in names]
        parts += ["majority vote on each pair"] if self.aggregate == "majority" else []
        return ", ".join(["CHEEMS algorithm 1", *parts])


def choose_rule(only: Sequence[str], aggregate: str | None) -> Rule | None:
    """Return the rule that the options of the command line set, null where none is set. Raises ConfigError."""
    if not only and aggregate is None:
        return None
    rules = get_args(Aggregate)
    if aggregate is not None and aggregate not in rules:
        raise ConfigError(f"aggregate is {aggregate!r}", allowed=choices(aggregate, rules))
    settings = {"only": parse_only(only), "aggregate": aggregate or "none"}
    return resolve_config(Rule, settings, where="inspect")


class CaseFile(NamedTuple):
    """A file of cases, its role in the run, and the benchmark whose raw rows it has, null for a case file."""

    path: Path
    role: str
    bench: Any = None

    def cases(self) -> Iterator[Case]:
        """Yield the cases one by one. Raises RecordError or FileError for a file that is broken."""
        if self.bench is None:
            yield from read_cases(self.path)
            return
        for case in build("formats", self.bench.source_format).read(read_rows(self.path), Counter()):
            yield normalize_case(self.bench, case, Place(str(self.path)))


class Target(NamedTuple):
    """The sources behind CASES or RUN.

    ``listed`` are the files whose items are listed, ``others`` those where an id is looked up after them. ``items``
    are the results of an evaluation. ``protocol`` is how the model of the run reads. ``remarks`` name files that are
    gone or have changed.
    """

    name: Path
    listed: tuple[CaseFile, ...]
    others: tuple[CaseFile, ...] = ()
    scores: tuple[Path, ...] = ()
    items: Path | None = None
    model: ModelChoice | None = None
    protocol: JsonObject | None = None
    rule: Rule = Rule()
    remarks: tuple[str, ...] = ()


def look_up(path: Path) -> Target:
    """Return the sources behind a case file or a finished run.

    Raises FileError for a folder without a finished run, and for a run whose case files are gone.
    """
    if not path.is_dir():
        return Target(path, (CaseFile(path, "the case file"),))
    if (path / STARTED_FILE).is_file() and not (path / RUN_FILE).is_file():
        raise FileError("this run did not finish", where=str(path), do="run the same again: it goes on")
    run = read_run(path)
    written, gone = _written(path, run)
    read, changed = _read(path, run, is_checked=not written)
    if not written and not read:
        reasons = "; ".join([*gone, *changed]) or "it neither wrote nor read any"
        scores = (Remedy("scores", str(path / "scores.jsonl")),) if "scores.jsonl" in run.outputs else ()
        raise FileError(
            f"no cases are known of this run ({run.stage}): {reasons}",
            where=str(path),
            do=Advice("name the case file: ", Command("inspect", (CASES,), scores)),
        )
    is_one = bool(written) and written[0].path.stem == "cases"
    model, moved = _model(path, run)
    return Target(
        name=path,
        listed=written[:1] if is_one else written or read,
        others=(written[1:] if is_one else ()) + (read if written else ()),
        scores=tuple(path / name for name in run.outputs if name == "scores.jsonl"),
        items=path / "items.jsonl" if "items.jsonl" in run.outputs else None,
        model=model,
        protocol=run.summary.get("protocol"),
        rule=_rule(path, run),
        remarks=(*gone, *(() if written else changed), *moved),
    )


def _written(folder: Path, run: Run) -> tuple[tuple[CaseFile, ...], list[str]]:
    """Return the case files that the run wrote, ``cases`` first, and remarks on those that are gone."""
    names = sorted(
        (name for name in run.outputs if name.endswith(_WRITTEN_SUFFIXES)), key=lambda name: name[:6] != "cases."
    )
    there = [name for name in names if (folder / name).is_file()]
    gone = [f"{folder / name}, which {run.stage} wrote, is gone" for name in names if name not in there]
    role = f"written by {run.stage}"
    return tuple(CaseFile(folder / name, role) for name in there if _holds_cases(folder / name)), gone


def _read(folder: Path, run: Run, *, is_checked: bool) -> tuple[tuple[CaseFile, ...], list[str]]:
    """Return the case files that the run read, and remarks on those that are gone or, if checked, changed."""
    files, remarks = [], []
    for role, source in run.inputs.items():
        if role.partition(".")[0] in _NO_CASES or not source.path.endswith(_READ_SUFFIXES):
            continue
        path, is_same = _located(folder, Path(source.path), source.sha256 if is_checked else None)
        if path is None:
            remarks.append(f"{source.path}, which {run.stage} read as {role}, is gone")
            continue
        if not is_same:
            remarks.append(f"{path} has CHANGED since {run.stage} read it")
        bench = None if _holds_cases(path) else _bench(folder, run, role)
        if bench is not None or _holds_cases(path):
            unchecked = "" if is_checked else ", hash not checked"
            files.append(CaseFile(path, f"read by {run.stage} as {role}{unchecked}", bench))
    return tuple(files), remarks


def _located(folder: Path, path: Path, sha256: str | None) -> tuple[Path | None, bool]:
    """Return where the file is now, also if run and input were moved together, and whether it has the hash, if any."""
    places = (path, folder.parent / path.parent.name / path.name, folder.parent / path.name)
    there = [place for place in dict.fromkeys(places) if place.is_file()]
    same = next((place for place in there if sha256 is None or file_hash(place) == sha256), None)
    return (same, True) if same else (next(iter(there), None), False)


def _holds_cases(path: Path) -> bool:
    """Return whether the first record looks like a case: other files of a run are passed over."""
    try:
        first = next(read_rows(path)).value
    except (UserError, StopIteration):
        return False
    return isinstance(first.get("prompt"), dict) and "responses" in first


def _bench(folder: Path, run: Run, role: str) -> Any:
    """Return the benchmark that read raw rows under this role; null for other inputs, and if it reads cases only."""
    if run.stage != "evaluate" or not role.startswith("bench"):
        return None
    bench = bench_of(run, folder)
    return bench if bench.source_format is not None else None


def _model(folder: Path, run: Run) -> tuple[ModelChoice | None, list[str]]:
    """Return the model that the run trained or scored with, and a remark on one that is gone."""
    if run.stage == "train":
        return choose_model(str(folder)), []
    kind = run.config.get("kind") if run.stage == "score" else run.config.get("model_kind")
    source = run.inputs.get("model.path")
    if kind is None or source is None:
        return None, []
    places = (Path(source.path), folder.parent / Path(source.path).name)
    path = next((place for place in places if place.exists()), None)
    if path is None:
        return None, [f"{source.path}, the model of the run, is gone; name another model to see tokens"]
    return ModelChoice(kind, path.name, dict(run.config["model"]), {"path": path}), []


def _rule(folder: Path, run: Run) -> Rule:
    if run.stage != "resolve":
        return Rule()
    settings = {key: run.config[key] for key in ("only", "aggregate")}
    if settings["aggregate"] == "dawid-skene":
        settings["aggregate"] = "majority"  # one case has no fit of the judges: that takes the whole file
    return resolve_config(Rule, settings, where=str(folder / RUN_FILE))
