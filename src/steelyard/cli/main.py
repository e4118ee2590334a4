"""The command line. The verbs are the files of ``cli/verbs``; the user's errors end in exit code 2, ours in 1."""

import errno
import importlib
import pkgutil
import shutil
import sys
import tempfile
import traceback
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from steelyard.cli import verbs
from steelyard.cli.output import escape_unencodable
from steelyard.cli.stage_verb import StageCommand, StageVerb
from steelyard.cli.verb import Verb
from steelyard.core.errors import FileError, MissingPartError, UserError
from steelyard.io.progress import log

_ABOUT = """Steelyard (杆秤) builds and evaluates reward models in any language.

From raw verdicts to a conflict-free ranking, a trained reward model, an evaluation with intervals, and a report.

Begin with `steelyard demo`: the whole pipeline on built-in data, in minutes, on a CPU.
"""
_REMEDIES = {
    errno.EACCES: "ask for the right to read or write there, or name another place",
    errno.EPERM: "ask for the right to read or write there, or name another place",
    errno.EROFS: "name a place that can be written to",
    errno.ENOSPC: "make room there, or name another place; what was written before is intact",
    errno.EDQUOT: "make room there, or name another place; what was written before is intact",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "name the file that the link should lead to",
    errno.ENOTDIR: "name a folder where a folder is meant",
    errno.ENOENT: "it was removed or renamed while it was needed: run the same command again",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), or name another place",
    errno.EIO: "look after the disk or the network that holds it, and run the same command again",
    errno.ESTALE: "the network disk has lost it: run the same command again",
    errno.EMFILE: "raise the limit of open files: ulimit -n 4096",
    errno.ENOMEM: "free memory, or use a machine with more; what was written before is intact",
    errno.EISDIR: "name a file where a file is meant",
    errno.ENXIO: "name a file: nothing can be read from a socket or a device without a driver",
    errno.EEXIST: "name another place: a file stands where a folder would have to be made",
}
"""By error number of the operating system: what the user can do."""
_NARROW = 70  # in fewer columns the framed help would cut the names of options
_GROUPS = {
    "jinja2": "report",
    "vl_convert": "report",
    "jaxtyping": "train",
    "safetensors": "train",
    "torch": "train",
    "transformers": "train",
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
    for name in verb_names():
        _add_verb(app, name)
    return app


def _add_verb(app: typer.Typer, name: str) -> None:
    module = importlib.import_module(f"{verbs.__name__}.{name}")
    declaration, function = module.command, module.command
    command_class: Any = partial(Verb, config=module.CONFIG if hasattr(module, "CONFIG") else None)
    if isinstance(declaration, StageVerb):
        command_class = partial(StageCommand, declaration=declaration)

        def function() -> None:
            """Stand in for the generated command."""

        function.__doc__ = module.__doc__
    summary = (function.__doc__ or "").strip().split("\n")[0]
    app.command(name.rstrip("_").replace("_", "-"), cls=command_class, short_help=summary)(function)


def verb_names() -> tuple[str, ...]:
    """Return the names of the files in ``cli/verbs``, sorted. ``list_`` is the verb ``list``, a name of Python's."""
    return tuple(sorted(name for _, name, _ in pkgutil.iter_modules(verbs.__path__) if not name.startswith("_")))


def main() -> None:
    """Run one verb. Exit codes: 0 done, 1 we failed, 2 asked wrongly, 130 interrupted."""
    escape_unencodable()
    try:
        _check_words(sys.argv[1:])
        build_app()()
    except UserError as error:
        _refuse(error)
    except ModuleNotFoundError as error:
        group = _GROUPS.get((error.name or "").split(".")[0])
        if group is None:
            _fail(error)
        _refuse(MissingPartError(f"this needs {error.name}", do=f"pip install 'steelyard[{group}]'"))
    except OSError as error:
        do = _REMEDIES.get(error.errno or 0)
        if do is None:
            _fail(error)
        where = None if error.filename is None else str(error.filename)
        _refuse(FileError((error.strerror or str(error)).lower(), where=where, do=do))
    except KeyboardInterrupt:
        # While a verb runs it answers signals itself: this is before or after it.
        log("stopped")
        sys.exit(130)
    except MemoryError:
        do = "free memory, or use a machine with more; what was written before is intact"
        _refuse(FileError("the memory is not enough", do=do))
    except Exception as error:
        _fail(error)


def _check_words(words: Sequence[str]) -> None:
    """Raise FileError for a name that is not UTF-8: records name their inputs."""
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
    log(f"error: {error}")
    sys.exit(2)


def _fail(error: Exception) -> None:
    with tempfile.NamedTemporaryFile("w", prefix="steelyard-", suffix=".txt", delete=False, encoding="utf-8") as file:
        traceback.print_exception(error, file=file)
    log(f"error: Steelyard failed ({type(error).__name__}: {error}). This is a defect of ours, not of your data.")
    log(f"  do: report it with {Path(file.name)}; what was written before is intact")
    sys.exit(1)
