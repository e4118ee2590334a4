"""The inputs of verbs as parameters of functions: what each may be in memory, and the file that a stage reads then."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import msgspec

from steelyard.api.calls import Call, PathText, json_value
from steelyard.api.cases import CasesLike
from steelyard.api.loaded import ModelLike, ScoresLike, scores_file
from steelyard.api.outcomes import Outcome
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.remedies import FOLDER, Advice, Remedy
from steelyard.core.settings_help import REQUIRED, FunctionParameter
from steelyard.core.types import JsonObject
from steelyard.io.verbs import Argument, Option, stage_verbs, verb_parameters

WRITTEN = {"judge", "score", "evaluate", "convert", "report"}
"""The verbs of stages whose functions are written out: they take values that no other verb has."""
_STAGES = "steelyard.stages"
PlanLike = PathText | JsonObject
RunLike = PathText | Outcome[Any]


class InputKind(NamedTuple):
    """An input: its type, the type as it is written, and what becomes of a value."""

    type: Any
    text: str
    stored: Callable[[Call, str, Any], Any]


def _stored_plan(call: Call, name: str, value: PlanLike) -> Path:
    if not isinstance(value, Mapping):
        return Path(value)
    content = msgspec.json.encode(json_value(value))
    return call.write(name, ".json", lambda path: path.write_bytes(content))


def stored_run(call: Call, name: str, value: RunLike) -> Path:
    """Return the folder of a run. Raises EvidenceError where a result with a folder would name a temporary one."""
    if not isinstance(value, Outcome):
        return Path(value)
    if value.is_temporary:
        if call.is_kept:
            problem = f"a result with out= names the folders of its runs, and that of {value!r} is temporary"
            raise EvidenceError(problem, do="give each of these runs an out= of its own")
        call.owners.append(value)
    return value.folder


def _stored_backbone(call: Call, name: str, value: RunLike) -> str:
    call.owners.append(value)
    return str(value.folder if isinstance(value, Outcome) else value)


def stored_batch(call: Call, name: str, value: PathText) -> Path:
    """Return the folder of batch files. Raises ConfigError without ``out``: the next call would know of none."""
    if not call.is_kept:
        problem = "batch files outlive a call, and a result without a folder does not"
        raise ConfigError(problem, where="batch", do=Advice("name a folder for the result: ", Remedy("out", FOLDER)))
    return Path(value)


KINDS: Mapping[str, InputKind] = {
    "cases": InputKind(CasesLike, "CasesLike", lambda call, name, value: call.file(value, name)),
    "scores": InputKind(ScoresLike, "ScoresLike", lambda call, name, value: scores_file(call, value, name)),
    "run": InputKind(RunLike, "RunLike", stored_run),
    "model": InputKind(ModelLike, "ModelLike", lambda call, name, value: value),
    "backbone": InputKind(RunLike, "RunLike", _stored_backbone),
    "plan": InputKind(PlanLike, "PlanLike", _stored_plan),
    "batch": InputKind(PathText, "PathText", stored_batch),
}


_PATH = InputKind(PathText, "PathText", lambda call, name, value: Path(value))


class InputOfVerb(NamedTuple):
    """An input of a verb as a parameter of its function."""

    name: str
    kind: InputKind
    default: Any
    is_sequence: bool = False
    is_first: bool = False

    @property
    def is_star(self) -> bool:
        """Pass several values as several arguments: case files, but not runs."""
        return self.is_first and self.is_sequence and self.kind.text == "CasesLike"

    @property
    def text(self) -> str:
        """The type as it is written."""
        text = f"Sequence[{self.kind.text}]" if self.is_sequence and not self.is_star else self.kind.text
        return f"{text} | None" if self.default is None else text

    @property
    def parameter(self) -> inspect.Parameter:
        """The parameter of the function."""
        kinds = inspect.Parameter
        place = kinds.VAR_POSITIONAL if self.is_star else kinds.POSITIONAL_OR_KEYWORD
        hint = Sequence[self.kind.type] if self.is_sequence and not self.is_star else self.kind.type
        return inspect.Parameter(
            self.name,
            place if self.is_first else kinds.KEYWORD_ONLY,
            default=kinds.empty if self.default is REQUIRED or self.is_star else self.default,
            annotation=hint | None if self.default is None else hint,
        )

    def stored(self, call: Call, value: Any) -> Any:
        """Return the value as the stage takes it."""
        if value is None or not self.is_sequence:
            return value if value is None else self.kind.stored(call, self.name, value)
        name = "cases" if self.is_star else self.name
        return [self.kind.stored(call, f"{name}-{number}", each) for number, each in enumerate(value, 1)]


def stage_inputs(stage: str) -> tuple[InputOfVerb, ...]:
    """Return the inputs of a verb, that of its first argument first, with ``out`` and ``force`` at the end."""
    parts = stage_verbs()[stage].parts
    shown = {part.name for part in parts if isinstance(part, Argument) or (isinstance(part, Option) and part.in_python)}
    declared = verb_parameters(stage)
    inputs = [
        _input(each, is_first=number == 0 and each.name != "out")
        for number, each in enumerate(declared.values())
        if each.name in shown - {"out"}
    ]
    return (*inputs, InputOfVerb("out", _PATH, default=None), InputOfVerb("force", _input_kind(bool), default=False))


def _input(declared: FunctionParameter, *, is_first: bool) -> InputOfVerb:
    is_union = get_origin(declared.type) in (Union, type(int | str))
    choices = get_args(declared.type) if is_union else (declared.type,)
    members = [member for member in choices if member is not type(None)]
    is_sequence = len(members) == 1 and get_origin(members[0]) is Sequence
    (member,) = get_args(members[0]) if is_sequence else members
    return InputOfVerb(declared.name, _input_kind(member), declared.default, is_sequence=is_sequence, is_first=is_first)


def _input_kind(member: Any) -> InputKind:
    if get_origin(member) is Annotated:
        return KINDS[get_args(member)[1]]
    return _PATH if member is Path else InputKind(member, member.__name__, lambda call, name, value: value)


def made_verbs() -> tuple[str, ...]:
    """Return the names of the functions that are made from declarations."""
    return tuple(stage for stage in stage_verbs() if stage not in WRITTEN)
