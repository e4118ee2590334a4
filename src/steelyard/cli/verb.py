"""A verb as a command: other libraries' option names lead to ours, and inputs that are pipes are copied."""

import os
import re
import signal
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from steelyard.cli.settings import SETTINGS_OPTION, print_settings
from steelyard.core.errors import PEER_NAMES, ConfigError, UserError
from steelyard.core.settings_help import read_settings
from steelyard.io.progress import InterruptedRun, interruptible, log
from steelyard.io.run_folder import resumable_work
from steelyard.io.tempfiles import copy_pipe, is_pipe

_OUTPUTS = ("out", "folder")
_JUDGE_SETTING = re.compile(r"--set ('?)((?:judge|chat)\.|allow_even=)")
_MODEL_OPTION = re.compile(r"(--(?:chat-template|max-length|over-length))(?: ([^\s,;:()-][^\s,;:()]*))?")


class Verb(TyperCommand):
    """A verb. Pipes among its inputs are copied first, so that it can read every file more than once.

    ``config`` is the module and the name of the Config that ``--settings`` prints.
    """

    def __init__(self, *, config: tuple[str, str] | None = None, **arguments: Any) -> None:
        self._config = config
        super().__init__(**arguments)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words after the verb; ``--settings`` prints the settings, whatever else is missing.

        Raises ConfigError for another library's name of an option.
        """
        if self._config is not None and SETTINGS_OPTION in args:
            print_settings(read_settings(*self._config), as_json="--json" in args)
            ctx.exit()
        check_option_names(
            args, {option for parameter in self.params for option in parameter.opts}, verb=str(self.name)
        )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb. Raises its errors, with each copy's name replaced by the pipe's.

        An interrupted run reports what can be resumed, and exits with 130 after Ctrl-C (128 plus the signal's number).
        """
        try:
            with interruptible():
                return self._with_copied_pipes(ctx)
        except KeyboardInterrupt as error:
            number = error.number if isinstance(error, InterruptedRun) else signal.SIGINT
            out = ctx.params.get("out")
            if os.environ.get("RANK", "0") == "0":
                log(resumable_work(out if isinstance(out, Path) else None))
            raise SystemExit(128 + number) from error

    def _options(self) -> set[str]:
        return {option for parameter in self.params for option in parameter.opts}

    def _with_copied_pipes(self, ctx: Any) -> Any:
        if os.environ.get("WORLD_SIZE", "1") != "1":
            # Of many processes only one could read a pipe; all refuse it as what is no file.
            return super().invoke(ctx)
        copies: dict[Path, Path] = {}
        with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
            for name, value in ctx.params.items():
                if name not in _OUTPUTS:
                    ctx.params[name] = _with_copies(value, Path(folder), copies)
            try:
                return super().invoke(ctx)
            except UserError as error:
                do = None if error.do is None else fitted_remedy(error.do, self._options(), verb=str(self.name))
                if not copies and do == error.do:
                    raise
                names = {str(copy): str(pipe) for pipe, copy in copies.items()}
                fitted = type(error)(error.problem, where=error.where, allowed=error.allowed, do=do)
                raise _renamed(fitted, names) from error


def fitted_remedy(do: str, options: Collection[str], *, verb: str) -> str:
    """Return a remedy as it is written after this verb.

    Settings of a judge and its chat stand below ``model`` in verbs that ask a model, and options of a model that the
    verb lacks are settings of the model. What names another verb (`steelyard VERB`) is left as it is.
    """
    if "--set" not in options or "steelyard " in do:
        return do
    if verb != "judge":
        do = _JUDGE_SETTING.sub(r"--set \1model.\2", do)
    return _MODEL_OPTION.sub(lambda match: match[0] if match[1] in options else _as_setting(match), do)


def _as_setting(match: re.Match[str]) -> str:
    name = match[1].removeprefix("--").replace("-", "_")
    return f"--set model.{name}={match[2] or 'VALUE'}"


def check_option_names(words: Sequence[str], options: Collection[str], *, verb: str) -> None:
    """Raises ConfigError for another library's name of an option or a setting, with what to write instead."""
    for word in words:
        name = word.partition("=")[0]
        ours = PEER_NAMES.get(name.removeprefix("--").replace("-", "_")) if name.startswith("--") else None
        if word == "--":
            return
        if ours is None or name in options:
            continue
        option = f"--{ours.replace('_', '-')}"
        if option in options:
            raise ConfigError(f"{verb} has no option {name}: it is {option} here", do=f"write {option} VALUE")
        if "--set" in options:
            problem = f"{verb} has no option {name}: the setting is {ours!r} here"
            raise ConfigError(problem, do=f"write --set {ours}=VALUE")


def _with_copies(value: Any, folder: Path, copies: dict[Path, Path]) -> Any:
    """The parameter with every pipe replaced by its copy; the file of ``KIND=FILE`` counts as well."""
    if isinstance(value, list | tuple):
        return type(value)(_with_copies(item, folder, copies) for item in value)
    if isinstance(value, str):
        kind, equals, file = value.rpartition("=")
        changed = _with_copies(Path(file), folder, copies) if file else Path(file)
        return f"{kind}{equals}{changed}" if changed != Path(file) else value
    if not isinstance(value, Path) or not is_pipe(value):
        return value
    if value not in copies:
        place = folder / str(len(copies))
        place.mkdir()
        copies[value] = copy_pipe(value, place)
    return copies[value]


def _renamed(error: UserError, names: dict[str, str]) -> UserError:
    def renamed(text: Any) -> Any:
        for copy, pipe in names.items():
            text = None if text is None else str(text).replace(copy, pipe)
        return text

    return type(error)(
        renamed(error.problem), where=renamed(error.where), allowed=renamed(error.allowed), do=renamed(error.do)
    )
