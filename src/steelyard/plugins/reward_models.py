"""Which reward model a person means by ``--model M``, and how it is built: one rule for every stage that scores."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.core.config import resolve_config
from steelyard.core.errors import FileError
from steelyard.core.plugins import load
from steelyard.core.protocols import RewardModel
from steelyard.core.types import Case, Scores
from steelyard.files.talk import track
from steelyard.methods.measures.scores import checked_scores

FOLDER_KIND = "classifier"
FILE_SETTINGS = ("path", "train")
"""Settings of a reward model that name a file or folder: they are inputs of a run, known by content, not by place."""


class ModelChoice(NamedTuple):
    """A reward model that can be built: its kind, what it is called, its settings, and the files among them."""

    kind: str
    name: str
    settings: dict[str, Any]
    files: dict[str, Path]

    def inputs(self, role: str = "model") -> dict[str, Path]:
        """The files by role, as a run records its inputs."""
        return {f"{role}.{key}": path for key, path in self.files.items()}


def choose_model(model: str, settings: Mapping[str, Any] | None = None) -> ModelChoice:
    """An existing folder, or anything with a path separator, is a trained model; else a kind in ``plugins/models``.

    Raises FileError for a file that is not there, KindError and ConfigError for what does not exist in the room.
    """
    given = dict(settings or {})
    is_folder = Path(model).is_dir() or os.sep in model or "/" in model
    kind, name = (FOLDER_KIND, Path(model).name) if is_folder else (model, model)
    if is_folder:
        _check_exists(Path(model))
        given["path"] = model
    resolved = msgspec.to_builtins(resolve_config(load("models", kind).Config, given, where=f"model.{kind}"))
    files = {key: Path(resolved.pop(key)) for key in FILE_SETTINGS if resolved.get(key)}
    for path in files.values():
        _check_exists(path)
    return ModelChoice(kind, name, resolved, files)


def build_model(choice: ModelChoice) -> RewardModel:
    """The reward model itself."""
    module = load("models", choice.kind)
    settings = choice.settings | {key: str(path) for key, path in choice.files.items()}
    return module.build(resolve_config(module.Config, settings, where=f"model.{choice.kind}"))


def scored(model: RewardModel, cases: Sequence[Case], *, name: str, quietly: bool = False) -> Iterator[Scores]:
    """The model's line for each case, checked. Raises EvidenceError for NaN, infinity or a response left out."""
    asked = cases if quietly else track(cases, f"scoring with {name}", len(cases))
    for case, line in zip(cases, model.score(asked), strict=True):
        assert line.prompt == case.prompt.id, "a model must score every case, in order"
        yield checked_scores(case, line, by=f"the model {name!r}")


def _check_exists(path: Path) -> None:
    if not path.exists():
        raise FileError("there is no such file or folder", where=str(path), do="check the path")
