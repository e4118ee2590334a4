"""Running a recipe: each stage in its own folder, what is finished skipped, what was done told at the end."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.core.errors import FileError, UserError
from steelyard.core.types import Run
from steelyard.io.atomic import atomic_write
from steelyard.io.locks import only_writer
from steelyard.io.progress import log
from steelyard.recipes.plan import check_files, plan, resolved_path
from steelyard.recipes.preconditions import check_recipe
from steelyard.recipes.recipes import Recipe, Reference, Step

OVERVIEW_FILE = "overview.json"


class Done(NamedTuple):
    """One stage after a run: whether it ran now or was finished before, how long now, and its record."""

    name: str
    verb: str
    was_finished: bool
    seconds: float
    folder: Path
    run: Run


def run(recipe: Recipe, out: Path, *, redo_from: str | None = None) -> tuple[Done, ...]:
    """Run every stage that is not finished, and write ``overview.json`` after each.

    ``redo_from`` names a stage that runs again, with every stage that reads what it writes. Raises FileError for a file
    that is not there before anything runs, and whatever a stage raises, after saying which it was.
    """
    redone = () if redo_from is None else recipe.after(redo_from)
    check_files(recipe, out)
    check_recipe(recipe, out)
    with only_writer(out):
        return tuple(_run_steps(recipe, out, redone))


def _run_steps(recipe: Recipe, out: Path, redone: Sequence[str]) -> list[Done]:
    finished = {one.step.name for one in plan(recipe, out, redone) if one.state == "finished"}
    done: list[Done] = []
    for number, step in enumerate(recipe.steps, 1):
        log(f"{number}/{len(recipe.steps)} {step.name}: {step.call.verb}")
        started = time.monotonic()
        record = _run_step(step, recipe, out, force=step.name in redone)
        seconds = 0.0 if step.name in finished else round(time.monotonic() - started, 3)
        done.append(Done(step.name, step.call.verb, step.name in finished, seconds, out / step.name, record))
        _write_overview(recipe, out, done)
    return done


def _run_step(step: Step, recipe: Recipe, out: Path, *, force: bool) -> Run:
    inputs = {key: _given(step, key, recipe, out) for key in step.inputs}
    try:
        with _threads(step.num_threads):
            return step.call.function(**inputs, out=out / step.name, config=step.config, force=force)
    except UserError:
        log(f"stopped at {step.name}; what was finished before it stays")
        if not force and (out / step.name).exists():
            log(f"to replace what {out / step.name} holds, and all that follows from it: --from {step.name}")
        raise


def _given(step: Step, key: str, recipe: Recipe, out: Path) -> Any:
    """An input as the stage takes it: a path, several paths, or a name. Raises FileError for what was not written."""
    value = step.inputs[key]
    accepts = step.call.parameters[key].accepts
    found = [_path(one, step, key, recipe, out) for one in ((value,) if isinstance(value, Reference) else value)]
    if accepts == "files":
        return found
    (path,) = found
    return str(path) if accepts == "name" else path


def _path(reference: Reference, step: Step, key: str, recipe: Recipe, out: Path) -> Path | str:
    path = resolved_path(reference, recipe, out)
    if reference.stage is not None and not path.exists():
        wrote = ", ".join(f"{reference.stage}/{item.name}" for item in sorted((out / reference.stage).iterdir()))
        found = f"the stage {reference.stage!r} wrote no {reference.text!r}"
        raise FileError(found, where=f"{recipe.path} at stages.{step.name}.{key}", allowed=wrote)
    # A name that is no path stays as it is: a path would lose a hub name's form.
    return path if path.exists() else reference.text


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    """Torch on so many threads: in a tiny network, two wait for each other longer than they work."""
    if number is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _write_overview(recipe: Recipe, out: Path, done: Sequence[Done]) -> None:
    with atomic_write(out / OVERVIEW_FILE) as file:
        file.write(msgspec.json.format(msgspec.json.encode(overview(recipe, done)), indent=2) + b"\n")


def overview(recipe: Recipe, done: Sequence[Done]) -> dict[str, Any]:
    """What ran, how long it took, what went in and out, and what each stage wrote with sizes in bytes."""
    return {
        "recipe": recipe.path.name,
        "about": recipe.about,
        "stages": [
            {
                "name": one.name,
                "verb": one.verb,
                "was_finished": one.was_finished,
                "seconds": one.seconds,
                "seconds_when_run": one.run.seconds,
                "counts": msgspec.to_builtins(one.run.counts),
                "wrote": {name: _size(one.folder / name) for name in one.run.outputs},
            }
            for one in done
        ],
    }


def _size(path: Path) -> int:
    return sum(item.stat().st_size for item in (path.rglob("*") if path.is_dir() else [path]) if item.is_file())
