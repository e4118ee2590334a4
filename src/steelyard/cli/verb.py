"""The commands of verbs: how words are parsed, pipes copied, interruptions answered, and help written.

A verb runs one stage (`StageVerb`), or is a function with Typer parameters (`FunctionVerb`).
"""

import inspect
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from steelyard.cli.help_page import Entry, entries_of, help_page
from steelyard.cli.options import LIST_SETTINGS, SETTINGS_OPTION
from steelyard.cli.output import has_colour, print_settings
from steelyard.cli.stage_verb import StageVerb
from steelyard.cli.wording import command_line
from steelyard.core.errors import PEER_NAMES, ConfigError, UserError
from steelyard.core.settings_help import read_nested_settings
from steelyard.io.progress import InterruptedRun, interruptible, log, worded_by
from steelyard.io.run_folder import resumable_work
from steelyard.io.run_state import started_by
from steelyard.io.tempfiles import copy_pipe, is_pipe

_OUTPUTS = ("out", "folder")


class FunctionVerb(NamedTuple):
    """A verb that is a function with Typer parameters. Its docstring is the text of the help.

    ``config`` is the module and the name of the Config that ``--settings`` prints, null without the option.
    """

    name: str
    run: Callable[..., None]
    config: tuple[str, str] | None = None

    @property
    def about(self) -> str:
        """The text of the help."""
        return self.run.__doc__ or ""

    def function(self) -> Callable[..., None]:
        """Return the function with the verb's parameters, as Typer reads them."""
        if self.config is None:
            return self.run
        parameters = [*inspect.signature(self.run).parameters.values(), LIST_SETTINGS]

        def function(**values: Any) -> None:
            del values[LIST_SETTINGS.name]
            self.run(**values)

        function.__signature__ = inspect.Signature(parameters)  # pyrefly: ignore[missing-attribute] - unknown to the stubs
        function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return function


class VerbGroup(NamedTuple):
    """Verbs that belong together, typed after a word of their own: ``steelyard workbench serve``."""

    name: str
    about: str
    verbs: Sequence[FunctionVerb]


class GroupCommand(TyperGroup):
    """The command of a group of verbs, whose help lists them in the form of a verb's own."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write what the group is for, and a line for each of its verbs."""
        commands = [
            Entry("Commands", name, " ".join((command.help or "").partition("\n\n")[0].split()))
            for name, command in self.commands.items()
        ]
        _write_help(self, ctx, formatter, [*commands, *entries_of(self.get_params(ctx), ctx)])


class VerbCommand(TyperCommand):
    """The command of a verb. Its options are made when they are needed: a list of verbs needs none.

    Option names of other libraries are answered with ours. Pipes among the inputs are copied first, so that the verb
    can read every file more than once.
    """

    def __init__(self, *, verb: StageVerb | FunctionVerb, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.verb = verb
        # Those of the placeholder that Typer registers; the properties below take their place.
        del self.params, self.callback

    @cached_property
    def _generated(self) -> Any:
        app = typer.Typer(add_completion=False)
        app.command()(self.verb.function())
        return typer.main.get_command(app)

    @cached_property
    def params(self) -> Any:
        """The arguments and options."""
        return self._generated.params

    @cached_property
    def callback(self) -> Any:
        """The function that runs the verb."""
        return self._generated.callback

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words after the verb; ``--settings`` prints the settings, also where arguments are missing.

        Raises ConfigError for another library's name of an option.
        """
        if self.verb.config is not None and SETTINGS_OPTION in args:
            print_settings(read_nested_settings(*self.verb.config), as_json="--json" in args)
            ctx.exit()
        check_option_names(args, self._options(), verb=self.verb.name)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb. Raises its errors, with each copy's name replaced by the pipe's.

        An interrupted run reports what can be resumed, and exits with 130 after Ctrl-C (128 plus the signal's number).
        """
        try:
            with interruptible(), worded_by(command_line(ctx)), started_by(typed_command()):
                return self._with_copied_pipes(ctx)
        except KeyboardInterrupt as error:
            number = error.number if isinstance(error, InterruptedRun) else signal.SIGINT
            out = ctx.params.get("out")
            if os.environ.get("RANK", "0") == "0":
                log(resumable_work(out if isinstance(out, Path) else None))
            raise SystemExit(128 + number) from error

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help in lines that fit the terminal."""
        _write_help(self, ctx, formatter, entries_of(self.get_params(ctx), ctx))

    def _options(self) -> set[str]:
        return {option for parameter in self.params for option in parameter.opts}

    def _with_copied_pipes(self, ctx: Any) -> Any:
        if os.environ.get("WORLD_SIZE", "1") != "1":
            # Only one of several processes could read a pipe, so all refuse it: it is not a regular file.
            return super().invoke(ctx)
        copies: dict[Path, Path] = {}
        with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
            for name, value in ctx.params.items():
                if name not in _OUTPUTS:
                    ctx.params[name] = _with_copies(value, Path(folder), copies)
            try:
                return super().invoke(ctx)
            except UserError as raised:
                error = raised.worded(command_line(ctx))
                if error is raised and not copies:
                    raise
                texts: list[Any] = [error.problem, error.where, error.allowed, error.do]
                for pipe, copy in copies.items():
                    texts = [text and str(text).replace(str(copy), str(pipe)) for text in texts]
                problem, where, allowed, do = texts
                raise type(error)(problem, where=where, allowed=allowed, do=do) from raised


def _write_help(command: Any, ctx: Any, formatter: Any, entries: Sequence[Entry]) -> None:
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    mark = partial(typer.style, fg=typer.colors.CYAN) if has_colour() else str
    formatter.write(help_page(command.help or "", usage, entries, shutil.get_terminal_size().columns, mark))


def typed_command() -> str | None:
    """Return the words that started this process for a shell; null unless they are those of the command line."""
    program, words = Path(sys.argv[0]), [word for word in sys.argv[1:] if word != "--force"]
    if program.name == "__main__.py" and program.parent.name == "steelyard":
        size = os.environ.get("LOCAL_WORLD_SIZE", "1")
        start = [sys.executable] if size == "1" else ["torchrun", f"--nproc-per-node={size}"]
        return shlex.join([*start, "-m", "steelyard", *words])
    if program.stem != "steelyard":
        return None
    is_on_path = shutil.which("steelyard") == str(program)
    return shlex.join(["steelyard" if is_on_path else str(program), *words])


def check_option_names(words: Sequence[str], options: Collection[str], *, verb: str) -> None:
    """Raise ConfigError for another library's name of an option or a setting, with our name in the remedy."""
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
    """Return a parameter with every pipe replaced by its copy, also the file of ``KIND=FILE``."""
    if isinstance(value, list | tuple):
        return type(value)(_with_copies(item, folder, copies) for item in value)
    if isinstance(value, str):
        kind, equals, file = value.rpartition("=")
        changed = _with_copies(Path(file), folder, copies) if file else Path(file)
        return f"{kind}{equals}{changed}" if changed != Path(file) else value
    if not isinstance(value, Path) or not is_pipe(value):
        return value
    if value not in copies:
        parent = folder / str(len(copies))
        parent.mkdir()
        copies[value] = copy_pipe(value, parent)
    return copies[value]
