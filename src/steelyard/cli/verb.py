"""The commands of verbs.

That of a verb which runs one stage (`StageVerb`) is made from its declaration (`steelyard.io.verbs`), with ``--set``,
``--config``, ``--settings``, ``--force``, ``--verbose`` and ``--json``. Any other verb (`FunctionVerb`) is a function
with Typer parameters.
"""

import importlib
import inspect
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from steelyard.cli.help_page import Entry, entries_of, help_page
from steelyard.cli.options import (
    LIST_SETTINGS,
    SETTINGS_OPTION,
    Values,
    add_setting,
    general_parameters,
    input_parameter,
    merge_settings,
    setting_parameter,
)
from steelyard.cli.output import (
    counts_line,
    echo_record,
    has_colour,
    print_lines,
    print_settings,
    run_answer,
    step_line,
)
from steelyard.cli.wording import command_line
from steelyard.core.config import parse_settings, resolve_config
from steelyard.core.errors import PEER_NAMES, ConfigError, UserError
from steelyard.core.settings_help import read_nested_settings, read_settings
from steelyard.core.types import Run
from steelyard.io.lines import check_readable
from steelyard.io.progress import InterruptedRun, interruptible, log, log_details, worded_by
from steelyard.io.run_folder import resumable_work
from steelyard.io.run_state import started_by
from steelyard.io.tempfiles import copy_pipe, is_pipe
from steelyard.io.verbs import Argument, CaseFile, SettingOption, Verb, paragraphs, run_verb, verb_parameters

_OUTPUTS = ("out", "folder")
_IN_PYTHON = ("Raises ", ">>>")
"""How the paragraphs of a docstring begin that are about Python."""
_NOWHERE = Path()
"""What stands for --out in the answer of a verb that needs none."""


class StageVerb(NamedTuple):
    """The command of a verb that is declared beside its stage, a module of ``steelyard.stages``."""

    stage: str
    verb: Verb

    @property
    def name(self) -> str:
        """The verb as it is typed."""
        return self.stage.replace("_", "-")

    @property
    def config(self) -> tuple[str, str]:
        """The module and the name of the Config that ``--settings`` prints."""
        return f"steelyard.stages.{self.stage}", "Config"

    @property
    def about(self) -> str:
        """The text of the help: the docstring of the stage's function, with settings as options."""
        shown = [text for text in paragraphs(self.stage) if not text.startswith(_IN_PYTHON)]
        return re.sub(r"``(\w+)(?:=(\S+))?``", self._option_text, "\n\n".join(shown))

    def _option_text(self, match: re.Match[str]) -> str:
        """Return a setting of the docstring, such as ``min_margin`` or ``policy="cycles"``, as it is typed."""
        name, value = match[1], (match[2] or "").strip("[]\"'").replace('\\"', "").replace(",", "")
        option = next(
            (part.option for part in self.verb.parts if part.name == name and not isinstance(part, Argument)), None
        )
        if option is None and name == "config":
            option = "--config"
        if option is None:
            return f"`--set {name}={value}`" if value else f"`--set {name}=`"
        return f"`{option} {value}`" if value else f"`{option}`"

    def function(self) -> Callable[..., None]:
        """Return a function with the verb's parameters, as Typer reads them."""
        module = self.config[0]
        declared = verb_parameters(self.stage)
        parameters = [
            setting_parameter(part, module)
            if isinstance(part, SettingOption)
            else input_parameter(part, declared[part.name])
            for part in self.verb.parts
        ]
        parameters += general_parameters(has_settings=bool(read_settings(module)))

        def function(**values: Any) -> None:
            with process_group() if self.verb.is_distributed else nullcontext():
                self._run(values)

        function.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
        function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return function

    def _run(self, values: Values) -> None:
        inputs = {
            part.name: values[part.name]
            for part in self.verb.parts
            if not isinstance(part, SettingOption) and values[part.name] is not None
        }
        settings = self._settings(values)
        stage = importlib.import_module(self.config[0])
        if self.verb.prepare is not None:
            getattr(stage, self.verb.prepare)(inputs, settings)
        config = resolve_config(stage.Config, settings, where=self.stage)
        # Before torch is imported: a name that is wrong is answered at once.
        declared = verb_parameters(self.stage)
        for name, value in inputs.items():
            if isinstance(value, Path) and declared[name].type == CaseFile:
                check_readable(value)
        is_verbose = bool(values["verbose"])
        with log_details(is_shown=is_verbose):
            result = run_verb(stage, self.verb, inputs, config, force=bool(values["force"]))
        if values["as_json"]:
            echo_record(result if isinstance(result, Run) else result._asdict())
            return
        from steelyard.views.view import view_of

        out, view = inputs.get("out", _NOWHERE), view_of(self.stage)
        if not isinstance(result, Run):
            assert view is not None, f"{self.stage} has a result without a record, which no view shows"
            print_lines(view.unrecorded(result, out))
            return
        more = [*_finding_lines(result), counts_line(result)]
        if view is not None and view.next_step is not None and out != _NOWHERE:
            more.append(step_line(view.next_step(result, out)))
        print_lines(run_answer(result, out, is_verbose=is_verbose, num_more=len(more)))
        print_lines(more)

    def _settings(self, values: Values) -> Values:
        """Return the settings of the file, those of ``--set`` over them, and those of options over both."""
        settings: Values = {}
        if (path := values.get("config")) is not None:
            from steelyard.io.lines import read_toml

            settings = read_toml(path)
        settings = merge_settings(settings, parse_settings(values.get("settings") or ()))
        for part in self.verb.parts:
            if isinstance(part, SettingOption) and values[part.parameter] not in (None, []):
                add_setting(settings, part, values[part.parameter], self.config[0])
        return settings


def process_group() -> AbstractContextManager[Any]:
    """Join the processes of one training: only the first prints. A process alone has nothing to join."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return nullcontext()  # without torch: a wrong setting is refused at once
    from steelyard.training import distributed

    return distributed.process_group()


def _finding_lines(run: Run) -> Iterable[str]:
    """Return a line for each finding of the checks of the input."""
    if not run.findings:
        return ()
    from steelyard.report.findings import finding_lines

    return finding_lines(run.findings)


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

        function.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
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
    def params(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The arguments and options."""
        return self._generated.params

    @cached_property
    def callback(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The function that runs the verb."""
        return self._generated.callback

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words after the verb; ``--settings`` prints the settings, whatever else is missing.

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
