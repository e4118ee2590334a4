"""Where each stage of a recipe stands in a result folder, told without running or changing anything."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from steelyard.core.errors import FileError
from steelyard.core.types import Run
from steelyard.io.run_folder import RUN_FILE, STARTED_FILE, file_hash, path_inside, read_run
from steelyard.recipes.recipes import Recipe, Reference, Step

State = Literal["finished", "to run", "to go on", "differs", "waits"]
_MOST_NAMED = 12


class Planned(NamedTuple):
    """One stage and where it stands.

    ``finished``: it will be skipped. ``to go on``: it was killed. ``differs``: the folder holds a run of other settings
    or inputs, and only ``--from`` replaces it. ``waits``: it has run, and depends on what will run before it.
    """

    step: Step
    folder: Path
    state: State
    why: str
    run: Run | None


def plan(recipe: Recipe, out: Path, redone: Sequence[str] = ()) -> tuple[Planned, ...]:
    """Every stage in order; those in ``redone`` are to run whatever their folders hold."""
    found: dict[str, Planned] = {}
    for step in recipe.steps:
        found[step.name] = _planned(step, recipe, out, found, is_redone=step.name in redone)
    return tuple(found.values())


def resolved_path(reference: Reference, recipe: Recipe, out: Path) -> Path:
    """Where the file or folder lies: under ``out`` if a stage writes it, else beside the recipe or as given.

    Raises FileError for what a stage is said to write outside ``out``.
    """
    if reference.stage is not None:
        return path_inside(out, reference.text)
    beside = recipe.path.parent / reference.text
    return beside if beside.exists() else Path(reference.text)


def check_files(recipe: Recipe, out: Path) -> None:
    """Raises FileError for a file that a stage reads and that neither is there nor is written by another stage.

    Also for a stage's folder that is a link out of ``out``.
    """
    for step in recipe.steps:
        path_inside(out, step.name)
        for key, reference in step.references():
            is_file = step.call.parameters[key].accepts != "name"
            path = resolved_path(reference, recipe, out)
            if is_file and reference.stage is None and not path.exists():
                raise FileError(
                    f"there is no file {reference.text!r}",
                    where=f"{recipe.path} at stages.{step.name}.{key}",
                    allowed=f"a file beside the recipe, or what a stage writes: {_written_by(recipe)}",
                )


def _written_by(recipe: Recipe) -> str:
    """The stages' folders; of the many of an experiment only the first."""
    first = ", ".join(f"{step.name}/…" for step in recipe.steps[:_MOST_NAMED])
    more = len(recipe.steps) - _MOST_NAMED
    return f"{first} and {more} more" if more > 0 else first


def _planned(step: Step, recipe: Recipe, out: Path, before: dict[str, Planned], *, is_redone: bool) -> Planned:
    folder = out / step.name
    run = read_run(folder) if (folder / RUN_FILE).is_file() else None
    if is_redone:
        return Planned(step, folder, "to run", "asked for by --from", run)
    if run is None:
        is_killed = (folder / STARTED_FILE).is_file()
        return Planned(step, folder, "to go on" if is_killed else "to run", "killed" if is_killed else "", None)
    changing = [one.stage for _, one in step.references() if one.stage and before[one.stage].state != "finished"]
    if changing:
        return Planned(step, folder, "waits", f"for {', '.join(dict.fromkeys(changing))}", run)
    why = _difference(run, step, recipe, out)
    return Planned(step, folder, "differs" if why else "finished", why, run)


def _difference(run: Run, step: Step, recipe: Recipe, out: Path) -> str:
    """What tells the recorded run from the recipe's stage; empty where nothing does."""
    if run.stage.split(".")[0] != step.call.verb:
        return f"the folder holds a run of {run.stage}"
    wanted: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(step.config))
    # Under the name of an input a run records which one it was, not the setting of that name.
    own = wanted.keys() & run.config.keys() - step.call.parameters.keys()
    changed = [key for key in wanted if key in own and run.config[key] != wanted[key]]
    if changed:
        return f"other settings: {', '.join(changed)}"
    known = {given.sha256 for given in run.inputs.values()}
    for key, reference in step.references():
        path = resolved_path(reference, recipe, out)
        # A name that is no path (a kind of model, a hub name) has no content to compare.
        if path.is_file() and file_hash(path) not in known:
            return f"another content of {key}: {reference.text}"
    return ""
