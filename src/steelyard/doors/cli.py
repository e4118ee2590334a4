"""The command line: the verbs are the files of ``doors/verbs``; errors of the user's end in exit code 2, ours in 1."""

import importlib
import pkgutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Annotated

import typer

from steelyard.core.errors import MissingPartError, UserError
from steelyard.doors import verbs
from steelyard.files.talk import say

_ABOUT = """Steelyard (杆秤) builds and evaluates reward models in any language.

From raw verdicts to a conflict-free ranking, a trained reward model, a score with its interval, and a page to read.

Begin with `steelyard demo`: the whole path on built-in data, in minutes, on a CPU.
"""
_GROUPS = {
    "altair": "report",
    "jinja2": "report",
    "vl_convert": "report",
    "jaxtyping": "train",
    "safetensors": "train",
    "torch": "train",
    "transformers": "train",
}


def build_app() -> typer.Typer:
    """The command-line application with every verb in it. Heavy packages are imported only by the verb that runs."""
    app = typer.Typer(help=_ABOUT, pretty_exceptions_enable=False, rich_markup_mode="markdown", add_completion=True)
    app.callback(invoke_without_command=True)(_options)
    for name in verb_names():
        module = importlib.import_module(f"{verbs.__name__}.{name}")
        app.command(name.rstrip("_").replace("_", "-"))(module.command)
    return app


def verb_names() -> tuple[str, ...]:
    """The files of the room of verbs, sorted. ``list_`` is the verb ``list``: Python keeps some words for itself."""
    return tuple(sorted(name for _, name, _ in pkgutil.iter_modules(verbs.__path__) if not name.startswith("_")))


def main() -> None:
    """Run one verb. Exit codes: 0 done, 1 we failed, 2 asked wrongly."""
    try:
        build_app()()
    except UserError as error:
        _refuse(error)
    except ModuleNotFoundError as error:
        group = _GROUPS.get((error.name or "").split(".")[0])
        if group is None:
            _fail(error)
        _refuse(MissingPartError(f"this needs {error.name}", do=f"pip install 'steelyard[{group}]'"))
    except Exception as error:
        _fail(error)


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
    say(f"error: {error}")
    sys.exit(2)


def _fail(error: Exception) -> None:
    with tempfile.NamedTemporaryFile("w", prefix="steelyard-", suffix=".txt", delete=False, encoding="utf-8") as file:
        traceback.print_exception(error, file=file)
    say(f"error: Steelyard failed ({type(error).__name__}: {error}). This is a defect of ours, not of your data.")
    say(f"  do: report it with {Path(file.name)}; what was written before is intact")
    sys.exit(1)
