"""The command line: the verbs by group. Each error that a user can cause has its exit code; our own end in 1."""

import errno
import inspect
import os
import re
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from steelyard.cli.output import escape_unencodable
from steelyard.cli.stage_verb import StageVerb
from steelyard.cli.verb import FunctionVerb, GroupCommand, VerbCommand, VerbGroup
from steelyard.cli.verbs import installation, pipelines
from steelyard.cli.verbs.inspect import INSPECT
from steelyard.cli.verbs.view import VIEW
from steelyard.cli.verbs.workbench import WORKBENCH
from steelyard.cli.wording import setting_names
from steelyard.core.errors import CeilingError, ConfigError, FileError, MissingPartError, UserError, WaitingError
from steelyard.io.progress import InterruptedRun, as_interruption, interruptible, log
from steelyard.io.system_errors import REMEDIES, system_error
from steelyard.io.verbs import stage_verbs

_ABOUT = """Steelyard (杆秤) builds and evaluates reward models in any language.

From raw verdicts to a conflict-free ranking, a trained reward model, an evaluation with intervals, and a report.

Begin with `steelyard demo`: the whole pipeline on built-in data, in minutes, on a CPU.
"""
_UsageError: Any = typer.BadParameter.__base__
"""Every error of unknown options, missing arguments and invalid values; Typer has no public name for it."""
_INTERRUPTED = 128 + signal.SIGINT
"""The exit code that Typer gives for any KeyboardInterrupt outside of verbs."""
# In fewer columns the framed help would cut the names of options.
_NARROW = 70
_FUNCTIONS: dict[str, Sequence[FunctionVerb | VerbGroup]] = {
    "Whole pipelines": pipelines.VERBS,
    "Data": (INSPECT,),
    "Prompts and responses": (),
    "Judgments": (WORKBENCH,),
    "Models": (),
    "Comparisons and reports": (VIEW,),
    "Installation": installation.VERBS,
}
"""The verbs that run no stage, by their group of the help."""


@cache
def _verbs() -> Mapping[str, Sequence[StageVerb | FunctionVerb | VerbGroup]]:
    """Return the verbs by their group of the help: those of stages, then the others."""
    stages = [(verb, StageVerb(stage, verb)) for stage, verb in stage_verbs().items() if verb.is_command]
    return {
        title: (*(command for verb, command in stages if verb.group == title), *others)
        for title, others in _FUNCTIONS.items()
    }


def build_app() -> typer.Typer:
    """Return the command-line application with every verb. Heavy packages are imported only by the verb that runs."""
    columns = shutil.get_terminal_size().columns
    is_narrow = columns < _NARROW
    app = typer.Typer(
        help=_ABOUT,
        pretty_exceptions_enable=False,
        rich_markup_mode=None if is_narrow else "markdown",
        context_settings={"terminal_width": columns} if is_narrow else {},
    )
    app.callback(invoke_without_command=True)(_options)
    for title, verbs in _verbs().items():
        for verb in verbs:
            if isinstance(verb, VerbGroup):
                short = inspect.cleandoc(verb.about).partition("\n")[0]
                group = _group(verb)
                app.add_typer(group, name=verb.name, short_help=short, rich_help_panel=title)
            else:
                _register(app, verb, title)
    return app


def _group(group: VerbGroup) -> typer.Typer:
    app = typer.Typer(help=inspect.cleandoc(group.about), no_args_is_help=True, cls=GroupCommand)
    for verb in group.verbs:
        _register(app, verb, None)
    return app


def _register(app: typer.Typer, verb: StageVerb | FunctionVerb, panel: str | None) -> None:
    about = inspect.cleandoc(verb.about)
    command_class: Any = partial(VerbCommand, verb=verb)
    short = about.split("\n")[0]
    app.command(verb.name, cls=command_class, help=about, short_help=short, rich_help_panel=panel)(_placeholder)


def _placeholder() -> None:
    """Stand in for a verb, whose options `VerbCommand` makes when they are needed."""


def verbs_by_name() -> dict[str, StageVerb | FunctionVerb | VerbGroup]:
    """Return every verb, in the order of the help."""
    return {verb.name: verb for verbs in _verbs().values() for verb in verbs}


def main() -> None:
    """Run one verb.

    Exit codes: 0 success, 1 more failures than allowed or an internal error, 2 user error, 3 stopped at a ceiling or
    waiting for batch files or people, 130 interrupted.
    """
    escape_unencodable()
    try:
        _check_words(sys.argv[1:])
        # Other libraries' progress bars would stand between our lines, also those of processes that we start.
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        with interruptible():
            code = _run()
        sys.exit(code)
    except UserError as error:
        _refuse(error)
    except _UsageError as error:
        _refuse_usage(error, sys.argv[1:])
    except ModuleNotFoundError as error:
        missing = MissingPartError.of(error)
        if missing is not None:
            _refuse(missing)
        _fail(error)
    except OSError as error:
        refusal = system_error(error)
        if refusal is None:
            _fail(error)
        else:
            _refuse(refusal)
    except KeyboardInterrupt as error:
        # While a verb runs it answers signals itself: this is before or after it.
        log("stopped")
        sys.exit(128 + error.number if isinstance(error, InterruptedRun) else _INTERRUPTED)
    except MemoryError:
        _refuse(FileError("out of memory", do=REMEDIES[errno.ENOMEM]))
    except Exception as error:
        _fail(error)


def _run() -> int:
    """Run the verb of the command line and return its exit code. Raises KeyboardInterrupt after a signal."""
    code = build_app()(prog_name="steelyard", standalone_mode=False)
    if code == _INTERRUPTED:
        raise as_interruption(KeyboardInterrupt())
    return code if isinstance(code, int) else 0


def _check_words(words: Sequence[str]) -> None:
    """Raise FileError for a name that is not UTF-8: a record could not name that input."""
    for word in words:
        try:
            word.encode("utf-8")
        except UnicodeEncodeError as error:
            raise FileError(
                f"the name {word!r} is not UTF-8",
                do="rename the file; where names are Chinese and the terminal is not, set LANG=C.UTF-8",
            ) from error


def _options(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"steelyard {installed('steelyard')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _refuse(error: UserError) -> None:
    stopped = "stopped" if isinstance(error, CeilingError) else "waiting" if isinstance(error, WaitingError) else None
    log(f"{stopped or 'error'}: {error}")
    sys.exit(error.exit_code)


def _refuse_usage(error: Any, words: Sequence[str]) -> None:
    """Print an error in the words of a command in the form of every other, or the help of a group without a verb."""
    message = error.format_message().strip()
    if "\n" in message:
        log(message)
        sys.exit(2)
    problem, _, nearest = re.sub(r" \(Possible options: (.*)\)$", r" Did you mean \1?", message).partition(
        " Did you mean "
    )
    allowed = f"did you mean {nearest}" if nearest else None
    option = next(
        (name for name in getattr(getattr(error, "param", None), "opts", ()) if name in _options_in(words)), None
    )
    if option is not None:
        problem, allowed = f"{option} is {_options_in(words)[option]!r}", _allowed_value(message)
    setting = str(getattr(error, "option_name", "")).removeprefix("--").replace("-", "_")
    if isinstance(getattr(error.ctx, "command", None), VerbCommand) and setting in setting_names(error.ctx.command):
        allowed = f"--set {setting}=VALUE: a setting without an option of its own"
    verb = [word for word in words[:1] if not word.startswith("-")]
    command = error.ctx.command_path if error.ctx else " ".join(["steelyard", *verb])
    problem = problem[:1].lower() + problem[1:].rstrip(".")
    _refuse(ConfigError(problem, allowed=allowed, do=f"see the options and arguments: {command} --help"))


def _options_in(words: Sequence[str]) -> dict[str, str]:
    """Return the options among the words with the value that follows each."""
    split = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    return dict(pairwise(split))


def _allowed_value(message: str) -> str:
    """Return what a refusal of an option's value allows, in the words of our other errors."""
    text = message.partition(": ")[2].removeprefix("Value error, ")
    plain = {"valid number": "a number", "valid integer": "a whole number", "valid boolean": "true or false"}
    words = next((words for sign, words in plain.items() if sign in text), None)
    return words or (text.partition("is not one of ")[2] or text).rstrip(".")


def _fail(error: Exception) -> None:
    with tempfile.NamedTemporaryFile("w", prefix="steelyard-", suffix=".txt", delete=False, encoding="utf-8") as file:
        traceback.print_exception(error, file=file)
    log(f"error: Steelyard failed ({type(error).__name__}: {error}). This is a defect of ours, not of your data.")
    log(f"  do: report it with {Path(file.name)}; files written before are intact")
    sys.exit(1)
