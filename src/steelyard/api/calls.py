"""One call of a verb: settings as a Config, values as files, a result folder, and errors in the words of Python.

A stage reads and writes files. Cases in memory are written to a temporary folder, which lives as long as the result
that needs it; with ``out`` they are kept next to it, in ``OUT.inputs``, since the record of the run names them.
"""

import hashlib
import inspect
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import msgspec
import numpy as np

from steelyard.api.arguments import called, check_value
from steelyard.api.cases import Cases, CasesLike
from steelyard.api.wording import RENAMED, in_python, python_words
from steelyard.core.config import ConfigType, resolve_config
from steelyard.core.errors import ConfigError, UserError, choices
from steelyard.core.settings_help import REQUIRED, Setting, read_settings
from steelyard.io.cases import write_cases
from steelyard.io.progress import worded_by
from steelyard.ranking.judgment_table import Only, parse_only

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
PathText = str | PathLike[str]
_TEMPORARY = "steelyard-"
_INPUTS = "inputs"
_IN_MEMORY = "in memory"
_PARAMETERS: dict[str, Mapping[str, inspect.Parameter]] = {}
"""The parameters of each verb, once its module is imported."""


class Keyword(NamedTuple):
    """A keyword of a verb that is a setting: ``name`` as it is typed, and the field of the Config."""

    name: str
    setting: Setting


class Folder:
    """A folder of results: the user's, or a temporary one that is removed with the last value that uses it."""

    __slots__ = ("__weakref__", "path")

    def __init__(self, path: Path | None = None) -> None:
        if path is None:
            path = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
            weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)
        self.path = path


class Call:
    """One call of a stage. As a context it removes, after an error, the inputs that it wrote.

    ``owners`` keep the temporary files alive that the run names as its inputs. ``function`` is the function that is
    called, where its name is not that of the folder.
    """

    def __init__(self, stage: str, out: PathText | None, *, function: str | None = None) -> None:
        self.is_kept = out is not None
        self.folder = Folder() if out is None else Folder(Path(out))
        self.out = self.folder.path / stage if out is None else self.folder.path
        self.owners: list[object] = [self.folder]
        self._written: list[Path] = []
        self._in_memory: dict[str, str] = {}
        self._parameters = _PARAMETERS.get(function or stage, {})
        self._logs = worded_by(python_words(self._parameters, self._in_memory))

    def __enter__(self) -> "Call":
        self._logs.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._logs.__exit__(None, None, None)
        if error is None:
            return
        for path in self._written:
            path.unlink(missing_ok=True)
        folder = self._inputs()
        if self.is_kept and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
        if isinstance(error, UserError):
            raise in_python(error, self._in_memory, self._parameters) from error

    def file(self, value: CasesLike, role: str = "cases") -> Path:
        """Return the case file of a value: its own if it has one that will stay, else a new one."""
        if isinstance(value, str | PathLike):
            return Path(value)
        cases = value if isinstance(value, Cases) else Cases(value)
        file = cases.file
        if file is not None and (file.owner is None or not self.is_kept):
            self.owners.append(file.owner)
            if file.owner is not None:
                self._in_memory[str(file.path)] = f"{role} {_IN_MEMORY}"
            return file.path
        return self.write(role, ".jsonl", lambda path: write_cases(path, cases))

    def optional_file(self, value: CasesLike | None, role: str) -> Path | None:
        """Return the case file of a value, null for null."""
        return None if value is None else self.file(value, role)

    def write(self, role: str, suffix: str, write: Callable[[Path], object]) -> Path:
        """Write an input and return its path; with ``out`` its name has a digest of its content."""
        folder = self._inputs()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{role}{suffix}"
        write(path)
        if self.is_kept:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
            stored = folder / f"{role}-{digest}{suffix}"
            if stored.exists():
                path.unlink()
                return stored
            path = path.rename(stored)
        self._written.append(path)
        self._in_memory[str(path)] = f"{role} {_IN_MEMORY}"
        return path

    def owners_of_result(self) -> tuple[object, ...]:
        """Return what the result keeps alive: the temporary folders of its files and inputs."""
        return () if self.is_kept else tuple(owner for owner in self.owners if owner is not None)

    def _inputs(self) -> Path:
        if self.is_kept:
            out = self.out if self.out.name else self.out.absolute()
            return out.with_name(f"{out.name}.{_INPUTS}")
        return self.folder.path / _INPUTS


def verb(
    stage: str, *, more: tuple[str, str] | None = None, foresees: Sequence[str] = ()
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Return a decorator that gives a function the settings of a stage as keywords.

    The function has ``**settings``; its signature becomes that of its own parameters and of the fields of the stage's
    Config; ``model`` and ``bench`` are ``model_settings`` and ``bench_settings`` there. ``more``: module and name of
    another Config whose fields are keywords too. An unknown keyword raises ConfigError with the nearest one, and so
    does an argument of another type than its annotation.

    ``foresees``: keywords with which the function says what it would do, in place of doing it. Its result is then the
    second one of its annotation; the stub has a signature for each (``docs/api_page.py``).
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        keywords = _keywords(stage, more)
        signature = _signature(function, keywords)
        _PARAMETERS[function.__name__] = signature.parameters

        @wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            for name in kwargs:
                if name not in signature.parameters:
                    problem = f"{function.__name__} has no keyword {name!r}"
                    raise ConfigError(problem, allowed=choices(name, signature.parameters))
            return called(function, args, kwargs)

        documented = cast("Any", call)
        documented.__signature__ = signature
        documented.keywords = keywords
        documented.foresees = tuple(foresees)
        return call

    return decorate


def config_of(config_type: type[ConfigType], settings: Mapping[str, object], *, where: str) -> ConfigType:
    """Return the Config of a verb's settings. Raises ConfigError for a value that is not allowed.

    Paths may be `Path`, records may be instances, and the judgments that count (`Only`) ``["kind=human"]`` as on the
    command line.
    """
    values = {RENAMED.get(name, name): json_value(value) for name, value in settings.items()}
    fields = {field.name: field.type for field in msgspec.structs.fields(config_type)}
    for name, value in values.items():
        is_list = isinstance(value, list | tuple | str)
        if fields.get(name) is Only and is_list:
            values[name] = parse_only([value] if isinstance(value, str) else value)
    return resolve_config(config_type, values, where=where)


def json_value(value: Any) -> Any:
    """Return a value of a setting as JSON: paths as text, records as objects, any collection as a list.

    A number of numpy becomes one of Python, as in a loop over seeds or learning rates.
    """
    if isinstance(value, PathLike):
        return str(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if isinstance(value, Mapping):
        for key in value:
            check_value("the name of a setting", key, str, where="settings")
        return {key: json_value(inner) for key, inner in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [json_value(inner) for inner in value]
    return value


def _keywords(stage: str, more: tuple[str, str] | None) -> tuple[Keyword, ...]:
    settings: Sequence[Setting] = read_settings(f"steelyard.stages.{stage}")
    settings = [*settings, *(read_settings(*more) if more else ())]
    names = {field: keyword for keyword, field in RENAMED.items()}
    return tuple(Keyword(names.get(setting.name, setting.name), setting) for setting in settings)


def _signature(function: Callable[..., Any], keywords: Sequence[Keyword]) -> inspect.Signature:
    signature = inspect.signature(function)
    inputs = [part for part in signature.parameters.values() if part.kind is not inspect.Parameter.VAR_KEYWORD]
    settings = [
        inspect.Parameter(
            keyword.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if keyword.setting.default is REQUIRED else keyword.setting.default,
            annotation=keyword.setting.type,
        )
        for keyword in keywords
        if keyword.name not in {part.name for part in inputs}
    ]
    return signature.replace(parameters=[*inputs, *settings])
