"""Resolve ``--model M`` to a reward model and build it: one rule for every stage that scores.

The models in the papers' tables are rows of ``models/published.toml``: their kind, the plug-in that scores each, and
pitfalls of its scores.
"""

import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import cache
from importlib.resources import files
from itertools import chain, islice, repeat, tee
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from steelyard.core.checks import STOPPED, checked_scores, with_hashes
from steelyard.core.config import resolve_config
from steelyard.core.errors import FailuresError, FileError, ModelError
from steelyard.core.plugins import kinds, load
from steelyard.core.protocols import JudgeModel, RewardModel
from steelyard.core.remedies import FOLDER, Advice, Command, Placeholder, Remedy
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Case, JsonObject, Scores
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import resumed_lines
from steelyard.io.ledger import LEDGER_FILE
from steelyard.io.progress import log, track
from steelyard.io.run_folder import Result
from steelyard.judging.panel import (
    PanelChoice,
    PanelMember,
    build_panel,
    choose_panel,
)
from steelyard.networks.pretrained import hub_folder, is_hub_name

FOLDER_KIND = "classifier"
FILE_SETTINGS = ("path", "train", "reference", "tokenizer")
"""Settings of a reward model that name a file or folder: they are inputs of a run, known by content, not by place."""
HUB_SETTINGS = ("path", "reference", "tokenizer")
"""The settings among them that may be a name on the hub."""


class PublishedModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of ``models/published.toml``, whose head explains the columns."""

    name: str
    kind: Literal["classifier", "implicit", "generative"]
    adapter: str
    state: Literal["tested", "unverified", "endpoint", "api"]
    papers: tuple[Literal["cheems", "m-rewardbench"], ...]
    names: tuple[str, ...] = ()
    hub: str | None = None
    settings: dict[str, str] = {}
    dtype: Literal["float32", "bfloat16", "float16"] | None = None
    quirks: tuple[str, ...] = ()


@cache
def published_models() -> tuple[PublishedModel, ...]:
    """Return every row, in the order of the file."""
    text = (files("steelyard.plugins.models") / "published.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(row, PublishedModel) for row in tomllib.loads(text)["model"])


def published_model(name: str) -> PublishedModel | None:
    """Return the model of a hub name or a name in a table, in any letter case; null for any other."""
    wanted = name.strip("/").casefold()
    for row in published_models():
        if wanted in (known.casefold() for known in (row.name, *row.names, row.hub or row.name)):
            return row
    return None


class ModelChoice(NamedTuple):
    """A reward model that can be built: its kind, its name, its settings, and the files among them.

    ``members`` are the models of a panel; ``judges`` are the judges of a judge model, null for other models.
    """

    kind: str
    name: str
    settings: JsonObject
    files: dict[str, Path]
    members: "tuple[ModelChoice, ...]" = ()
    judges: PanelChoice | None = None

    def inputs(self, role: str = "model") -> dict[str, Path]:
        """Return the files by role, as a run records its inputs."""
        paths = {f"{role}.{key}": path for key, path in self.files.items()}
        for number, member in enumerate(self.members):
            paths |= member.inputs(f"{role}.members.{number}")
        return paths | (self.judges.inputs(f"{role}.chat") if self.judges else {})


def choose_model(model: str, settings: Mapping[str, object] | None = None) -> ModelChoice:
    """Return a trained model for a folder, a hub name or any path; else the model of a kind.

    A folder that holds no model does not hide the kind of its name: it is the ``--out`` of `evaluate --model longer`. A
    name such as ``owner/name`` without a folder is looked up on the hub. Raises FileError and ModelError where it is
    in neither place, KindError and ConfigError for an unknown kind or setting.
    """
    plugin_settings = dict(settings or {})
    is_path = os.sep in model or "/" in model
    if is_path or (Path(model).is_dir() and not _is_output_named_as_kind(model)):
        return _chosen(FOLDER_KIND, Path(model).name, plugin_settings | {"path": str(_located(model))})
    return _chosen(model, model, plugin_settings)


def _is_output_named_as_kind(model: str) -> bool:
    """Return whether a folder has the name of a kind, and no configuration of a model in it."""
    holds_model = any((Path(model) / name).is_file() for name in ("config.json", "adapter_config.json"))
    return model in kinds("models") and not holds_model


def choose_kind(kind: str, settings: Mapping[str, object] | None = None) -> ModelChoice:
    """Return the model of a kind, even where a folder has its name. Raises as `choose_model` does."""
    return _chosen(kind, kind, dict(settings or {}))


def _chosen(kind: str, name: str, settings: Mapping[str, object]) -> ModelChoice:
    resolved = msgspec.to_builtins(resolve_config(load("models", kind).Config, settings, where=f"model.{kind}"))
    judges = None
    if "judges" in resolved:
        panel = {key: resolved.pop(key) for key in ("chat", "judge", "price", "judges", "allow_even")}
        panel_members = [msgspec.convert(member, PanelMember) for member in panel.pop("judges")]
        judges = choose_panel(resolved["task"], members=panel_members, **panel)
        # The settings record the judges as resolved.
        resolved["jury"] = judges.settings()
    members = tuple(
        choose_model(member) if isinstance(member, str) else choose_model(member["model"], member["settings"])
        for member in resolved.get("members", ())
    )
    if members:
        # As recorded: a member's files are inputs, known by content, like a model's own.
        resolved["members"] = [
            {**({} if isinstance(entry, str) else entry), "model": member.name, "settings": member.settings}
            for entry, member in zip(resolved["members"], members, strict=True)
        ]
    files = {key: _file_of(key, resolved.pop(key)) for key in FILE_SETTINGS if resolved.get(key)}
    return ModelChoice(kind, name, resolved, files, members, judges)


def build_model(choice: ModelChoice, *, ledger: Path | None = None) -> RewardModel:
    """Return the reward model. ``ledger`` is the file in which a judge keeps its replies, null for none."""
    module = load("models", choice.kind)
    settings = choice.settings | {key: str(path) for key, path in choice.files.items()}
    if choice.judges is not None:
        del settings["jury"]
        config = resolve_config(module.Config, settings, where=f"model.{choice.kind}")
        name = msgspec.structs.asdict(config)["name"]
        return module.build(config, panel=build_panel(choice.judges, name=name), ledger=ledger)
    config = resolve_config(module.Config, settings, where=f"model.{choice.kind}")
    if choice.members:
        return module.build(config, members=[build_model(member) for member in choice.members])
    return module.build(config)


class Builder(Protocol):
    """Makes the reward model of a choice, as `build_model` does; it may return one that is built already."""

    def __call__(self, choice: ModelChoice, /, *, ledger: Path | None = None) -> RewardModel:
        """Return the reward model."""
        ...


def judge_ledger(choice: ModelChoice, result: Result) -> Path | None:
    """Return the ledger of a judge, which repeats no request of an interrupted run; null for another model."""
    return None if choice.judges is None else result.path(LEDGER_FILE)


def scored(model: RewardModel, cases: Sequence[Case], *, name: str, quietly: bool = False) -> Iterator[Scores]:
    """Yield the model's checked Scores for each case. Raises EvidenceError for NaN, infinity or a missing response."""
    yield from _scored(model, cases if quietly else track(cases, f"scoring with {name}", len(cases)), name)


def scored_once(
    model: RewardModel, cases: Iterable[Case], result: Result, *, name: str, part: str = "scores"
) -> Iterator[Scores]:
    """Yield Scores as `scored` does and store each until the run ends: after a kill only the rest is scored.

    Stored lines are matched with ``cases`` in order; the model consumes the rest as it needs them. ``part`` names the
    file among those of one run; its name has a digest of the run's inputs and settings.
    """
    ledger = result.folder / f"scores.{part}.{result.request.digest()}.part.jsonl"
    done, begun = resumed_lines(ledger, cases)
    num_cases = len(cases) if isinstance(cases, Sized) else None
    if done:
        of = "" if num_cases is None else f" of {num_cases:,}"
        were = verb_for(len(done), "case was", "cases were")
        log(f"{len(done):,}{of} {were} scored before this run was stopped: kept")
    yield from done
    left = None if num_cases is None else num_cases - len(done)
    try:
        with ledger.open("ab") as file:
            left_cases = track(islice(cases, len(done), None), f"scoring with {name}", left)
            unsent = (_unsent(*both) for both in zip(left_cases, chain(begun, repeat(None)), strict=False))
            for rest, known in zip(_scored(model, unsent, name), chain(begun, repeat(None)), strict=False):
                line = rest if known is None else _joined(known, rest)
                file.write(msgspec.json.encode(line) + b"\n")
                file.flush()
                yield line
    finally:
        if ledger.is_file() and not ledger.stat().st_size:  # refused before a line was there
            ledger.unlink()


def _unsent(case: Case, begun: Scores | None) -> Case:
    """Return the case with the responses that have no score in a line that was begun."""
    if begun is None:
        return case
    return replace(case, responses=tuple(each for each in case.responses if begun.unscored.get(each.id) == STOPPED))


def _joined(begun: Scores, rest: Scores) -> Scores:
    """Return the line that was begun with the scores of the responses that it lacked."""
    return replace(
        begun,
        scores=begun.scores | rest.scores,
        unscored={name: reason for name, reason in begun.unscored.items() if name not in rest.scores} | rest.unscored,
        cut=(*begun.cut, *rest.cut),
        hashes=begun.hashes | rest.hashes,
    )


def write_scores(
    model: RewardModel,
    cases: Iterable[Case],
    result: Result,
    *,
    name: str,
    part: str = "scores",
    count: Callable[[Scores], None] | None = None,
) -> Path:
    """Write ``{part}.jsonl``, a line for each case, in order, and return its path; ``count`` takes each line.

    After a kill only the rest is scored. Raises EvidenceError for a score that is not a finite number, FailuresError
    where requests to a judge failed: it keeps its replies itself, so that a failed request leaves no line.
    """
    is_judge = isinstance(model, JudgeModel)
    num_failed = num_responses = 0
    out = result.path(f"{part}.jsonl")
    with atomic_write(out) as file:
        for line in (
            scored(model, tuple(cases), name=name)
            if is_judge
            else scored_once(model, cases, result, name=name, part=part)
        ):
            num_responses += len(line.scores)
            num_failed += list(line.unscored.values()).count("failed")
            if count is not None:
                count(line)
            file.write(msgspec.json.encode(line) + b"\n")
        if is_judge and num_failed:
            raise FailuresError(
                f"{num_failed} of {number_of(num_responses, 'response')} {verb_for(num_failed, 'has', 'have')} no "
                "score "
                "because requests failed",
                do="run the same again: replies that came are stored",
            )
    return out


def _scored(model: RewardModel, cases: Iterable[Case], name: str) -> Iterator[Scores]:
    to_score, to_check = tee(cases)
    for case, line in zip(to_check, model.score(to_score), strict=True):
        assert line.prompt == case.prompt.id, "a model must score every case, in order"
        yield with_hashes(case, checked_scores(case, line, by=f"the model {name!r}"))


def forget_lines(result: Result) -> None:
    """Remove the lines that `scored_once` stored, once the run's own file has them."""
    for path in result.folder.glob("scores.*.part.jsonl"):
        path.unlink()


def _file_of(key: str, name: str) -> Path:
    """Return the file or folder of a setting; models and tokenizers may be names on the hub."""
    if key in HUB_SETTINGS and is_hub_name(name):
        return hub_folder(name)
    if not Path(name).exists():
        raise FileError("there is no such file or folder", where=name, do="check the path")
    return Path(name)


def _located(model: str) -> Path:
    """Return the folder of a model. Raises FileError for a published model that another kind scores."""
    known = None if Path(model).exists() else published_model(model)
    if known is None:
        return _file_of("path", model)
    why = ""
    if known.adapter == FOLDER_KIND and is_hub_name(model):
        try:
            return hub_folder(model)
        except ModelError as error:
            why = f": {error.problem}"
    problem = f"this is a name on the hub, and no folder here{why}"
    raise FileError(problem, where=model, do=Advice("download it; then ", _how_to_score(known)))


def _how_to_score(known: PublishedModel) -> Advice:
    """Return the settings that score a published model, once it is in a folder."""
    if known.kind == "generative":
        settings = (Remedy(f"model.{key}", value) for key, value in known.settings.items())
        chat = Remedy("model.chat.model", known.hub or known.name)
        return Advice(
            "ask it as a judge: ", Remedy("model", "llm_judge", (chat, *settings)), "; or `", Command("judge"), "`"
        )
    if known.adapter == FOLDER_KIND:
        return Advice(Remedy("model", FOLDER))
    folders = [Remedy(f"model.{key}", Placeholder(f"FOLDER_OF_{value}")) for key, value in known.settings.items()]
    return Advice(Remedy("model", known.adapter, (Remedy("model.path", FOLDER), *folders)))
