"""Run a recipe, each stage in its own folder: finished stages are skipped. A plan lists the state of each stage."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from steelyard.core.errors import FileError, UserError, WaitingError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Counts, JsonObject, Record, Run
from steelyard.io.atomic import atomic_write, only_writer
from steelyard.io.hashing import file_hash
from steelyard.io.progress import log, log_error
from steelyard.io.run_folder import RUN_FILE, STARTED_FILE, RunRequest, has_replies, path_inside, read_run, read_started
from steelyard.io.run_state import read_state
from steelyard.judging.panel import chat_files, is_same_chat
from steelyard.recipes.preconditions import check_recipe
from steelyard.recipes.recipe import Recipe, Reference, Step

OVERVIEW_FILE = "overview.json"
State = Literal["finished", "to run", "to go on", "waiting", "to restart", "differs", "waits"]
_MAX_NAMED = 12
_CHATS = ("chat", "classify")
"""Settings of stages that are the settings of a chat."""


class PlannedStage(NamedTuple):
    """One stage with its state, and the reason for it.

    ``finished``: it will be skipped. ``to go on``: it failed or was killed, and continues. ``waiting``: when it ran
    last, ``num_waiting`` items waited for people, or requests for the results of batch files; ``do`` says what comes
    next. ``to restart``: it is not finished, and began with other settings or inputs than now, so that it starts anew.
    ``differs``: the folder holds a finished run of other settings or inputs, or replies of a chat model to other
    requests, and only ``--from`` replaces them. ``waits``: it has run or begun, and depends on a stage that will run
    before it.
    """

    step: Step
    folder: Path
    state: State
    why: str
    run: Run | None
    num_waiting: int = 0
    do: str = ""


def plan(recipe: Recipe, out: Path, redone: Sequence[str] = ()) -> tuple[PlannedStage, ...]:
    """Return every stage in order, without changes to ``out``; stages in ``redone`` run in any case."""
    planned: dict[str, PlannedStage] = {}
    for step in recipe.steps:
        planned[step.name] = _planned(step, recipe, out, planned, is_redone=step.name in redone)
    return tuple(planned.values())


def check_files(recipe: Recipe, out: Path) -> None:
    """Raise FileError for an input that neither exists nor is written by another stage.

    The same for a stage's folder that is a link out of ``out``.
    """
    for step in recipe.steps:
        path_inside(out, step.name)
        for key, reference in step.references():
            is_file = step.call.inputs[key].accepts != "name"
            path = recipe.locate(reference, out)
            if is_file and reference.stage is None and not path.exists() and not step.files(key, path):
                raise FileError(
                    f"there is no file {reference.text!r}",
                    where=f"{recipe.path} at stages.{step.name}.{key}",
                    allowed=f"a file beside the recipe, or what a stage writes: {_written_by(recipe)}",
                )


def _written_by(recipe: Recipe) -> str:
    """Return the stages' folders; of the many of an experiment only the first."""
    first = ", ".join(f"{step.name}/…" for step in recipe.steps[:_MAX_NAMED])
    more = len(recipe.steps) - _MAX_NAMED
    return f"{first} and {more} more" if more > 0 else first


def _planned(
    step: Step, recipe: Recipe, out: Path, before: dict[str, PlannedStage], *, is_redone: bool
) -> PlannedStage:
    folder = out / step.name
    run = read_run(folder) if (folder / RUN_FILE).is_file() else None
    if is_redone:
        return PlannedStage(step, folder, "to run", "requested", run)
    is_started = (folder / STARTED_FILE).is_file()
    if run is None and not is_started:
        return PlannedStage(step, folder, "to run", "", None)
    changing = [
        reference.stage
        for _, reference in step.references()
        if reference.stage and before[reference.stage].state != "finished"
    ]
    if changing:
        return PlannedStage(step, folder, "waits", f"for {', '.join(dict.fromkeys(changing))}", run)
    if run is None:
        state, why = _unfinished(step, recipe, out)
        planned = PlannedStage(step, folder, state, why, None)
        live = read_state(folder) if state == "waiting" else None
        return planned if live is None else planned._replace(num_waiting=live.num_waiting, do=live.next_step)
    why = _difference(run, step, recipe, out)
    return PlannedStage(step, folder, "differs" if why else "finished", why, run)


def _unfinished(step: Step, recipe: Recipe, out: Path) -> tuple[State, str]:
    """Return the state of a stage that failed or was killed, and the reason.

    Replies of a chat model cost money: a run of other settings that has some is not replaced without ``--from``.
    """
    folder = out / step.name
    live = read_state(folder)
    state = "interrupted" if live is None else live.state
    why = _difference(read_started(folder), step, recipe, out)
    if live is not None and state == "waiting":
        waiting = f"for {step.call.waits_for}: {live.problem.splitlines()[0]}"
        if not why:
            return "waiting", waiting
        ended = f"waiting {waiting}"
    else:
        ended = "failed" if state == "failed" else "interrupted"
        if not why:
            return "to go on", ended
    return "differs" if has_replies(folder) else "to restart", f"{ended}; {why}"


def _difference(run: Run | RunRequest, step: Step, recipe: Recipe, out: Path) -> str:
    """Return how the recorded run differs from the recipe's stage; empty where it does not."""
    if run.stage.split(".")[0] != step.call.verb:
        return f"the folder holds a run of {run.stage}"
    config: JsonObject = msgspec.json.decode(msgspec.json.encode(step.config))
    # Under the name of an input a run records that input, not the setting of that name.
    comparable = config.keys() & run.config.keys() - step.call.inputs.keys()
    changed = [
        key
        for key in config
        if key in comparable
        and run.config[key] != config[key]
        and not (key in _CHATS and is_same_chat(config[key], run.config[key]))
    ]
    if changed:
        return f"other settings: {', '.join(changed)}"
    known = {recorded.sha256 for recorded in run.inputs.values()}
    for key, reference in step.references():
        path = recipe.locate(reference, out)
        # A name that is not a path (a kind of model, a hub name) has no content to compare.
        if any(file_hash(file) not in known for file in step.files(key, path)):
            return f"another content of {key}: {reference.text}"
    for key in comparable & {*_CHATS}:
        for name, path in chat_files(config[key]).items():
            if not path.exists() or file_hash(path) not in known:
                return f"another content of {key}.{name}: {path}"
    return _live_difference(known, step, recipe, out)


def _live_difference(known: set[str], step: Step, recipe: Recipe, out: Path) -> str:
    """Return how an input without a file, such as a project of people, differs now; also where it is gone."""
    if step.call.live_hashes is None:
        return ""
    paths = {key: recipe.locate(reference, out) for key, reference in step.references()}
    try:
        hashes = step.call.live_hashes(paths, step.config)
    except UserError as error:
        return error.problem
    changed = [role for role, sha256 in hashes.items() if sha256 not in known]
    return f"another content of {', '.join(changed)}: people have changed a decision" if changed else ""


class CompletedStage(NamedTuple):
    """One stage after a run: whether it was finished before, its seconds in this run, and its record."""

    name: str
    verb: str
    was_finished: bool
    seconds: float
    folder: Path
    run: Run


class StageOverview(Record, frozen=True, kw_only=True):
    """One stage in ``overview.json``: ``seconds`` in this run, and when it ran; its outputs with sizes in bytes."""

    name: str
    verb: str
    was_finished: bool
    seconds: float
    seconds_when_run: float
    counts: Counts
    wrote: dict[str, int]


class Overview(Record, frozen=True, kw_only=True):
    """The stages of a recipe that have completed: ``overview.json``."""

    recipe: str
    about: str
    stages: tuple[StageOverview, ...]


def run(recipe: Recipe, out: Path, *, redo_from: str | None = None) -> tuple[CompletedStage, ...]:
    """Run every stage that is not finished, and write ``overview.json`` after each.

    ``redo_from`` names a stage that runs again, with every stage that depends on it. Raises FileError for a missing
    input before anything runs, and the error of a stage after logging its name.
    """
    redone = () if redo_from is None else recipe.after(redo_from)
    check_files(recipe, out)
    check_recipe(recipe, out)
    with only_writer(out):
        return tuple(_run_steps(recipe, out, redone))


def _run_steps(recipe: Recipe, out: Path, redone: Sequence[str]) -> list[CompletedStage]:
    """Run the steps in order. Where one waits, those that do not depend on it go on; the last error ends the run."""
    finished = {stage.step.name for stage in plan(recipe, out, redone) if stage.state == "finished"}
    completed: list[CompletedStage] = []
    blocked: set[str] = set()
    waiting: list[WaitingError] = []
    for number, step in enumerate(recipe.steps, 1):
        if step.name in blocked:
            continue
        log(f"{number}/{len(recipe.steps)} {step.name}: {step.call.verb}")
        started = time.monotonic()
        try:
            record = _run_step(step, recipe, out, force=step.name in redone or _is_restarted(step, recipe, out))
        except WaitingError as error:
            blocked.update(recipe.after(step.name))
            waiting.append(error)
            continue
        was_finished = step.name in finished
        seconds = 0.0 if was_finished else round(time.monotonic() - started, 3)
        completed.append(CompletedStage(step.name, step.call.verb, was_finished, seconds, out / step.name, record))
        with atomic_write(out / OVERVIEW_FILE) as file:
            file.write(msgspec.json.format(msgspec.json.encode(overview(recipe, completed)), indent=2) + b"\n")
    for error in waiting[:-1]:
        log_error("waiting", error)
    if waiting:
        raise waiting[-1]
    return completed


def _is_restarted(step: Step, recipe: Recipe, out: Path) -> bool:
    """Return whether an unfinished run of other settings or inputs is replaced, and log it.

    Called when the stages before it have finished: what they wrote is compared too.
    """
    folder = out / step.name
    if (folder / RUN_FILE).is_file() or not (folder / STARTED_FILE).is_file():
        return False
    state, why = _unfinished(step, recipe, out)
    if state == "to restart":
        log(f"{folder} is unfinished ({why}): this stage starts anew")
    return state == "to restart"


def _run_step(step: Step, recipe: Recipe, out: Path, *, force: bool) -> Run:
    inputs = {key: _argument(step, key, recipe, out) for key in step.inputs}
    if step.batch is not None:
        inputs["batch"] = path_inside(out, step.batch)
    try:
        with _threads(step.num_threads):
            return step.call.function(**inputs, out=out / step.name, config=step.config, force=force)
    except WaitingError:
        once = "once they have finished" if step.call.waits_for == "people" else "once their results are there"
        log(f"{step.name} waits for {step.call.waits_for}; the same command goes on from here {once}")
        raise
    except UserError:
        log(f"stopped at {step.name}; the stages finished before it are kept")
        if not force and (out / step.name).exists():
            replaced = f"to replace {out / step.name} and all stages that depend on it: "
            log(Advice(replaced, Remedy("redo_from", step.name)))
        raise


def _argument(step: Step, key: str, recipe: Recipe, out: Path) -> Any:
    """Return an input as the stage takes it: a path, several paths, or a name."""
    accepts = step.call.inputs[key].accepts
    paths = [_path(reference, step, key, recipe, out) for reference in step.inputs[key]]
    if accepts == "files":
        return paths
    (path,) = paths
    return str(path) if accepts == "name" else path


def _path(reference: Reference, step: Step, key: str, recipe: Recipe, out: Path) -> Path | str:
    """Return the path of an input, or its text. Raises FileError for an output that its stage did not write."""
    path = recipe.locate(reference, out)
    is_there = path.exists() or bool(step.files(key, path))
    if reference.stage is not None and not is_there:
        wrote = ", ".join(f"{reference.stage}/{item.name}" for item in sorted((out / reference.stage).iterdir()))
        problem = f"the stage {reference.stage!r} wrote no {reference.text!r}"
        raise FileError(problem, where=f"{recipe.path} at stages.{step.name}.{key}", allowed=wrote)
    # A name that is not a path stays as it is: a path would lose a hub name's form.
    return path if is_there else reference.text


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    """Bound torch's threads: in a tiny network two threads wait for each other longer than they compute."""
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


def overview(recipe: Recipe, completed: Sequence[CompletedStage]) -> Overview:
    """Return the completed stages with their times, counts and outputs."""
    return Overview(
        recipe=recipe.path.name,
        about=recipe.about,
        stages=tuple(
            StageOverview(
                name=stage.name,
                verb=stage.verb,
                was_finished=stage.was_finished,
                seconds=stage.seconds,
                seconds_when_run=stage.run.seconds,
                counts=stage.run.counts,
                wrote={name: _size(stage.folder / name) for name in stage.run.outputs},
            )
            for stage in completed
        ),
    )


def _size(path: Path) -> int:
    return sum(item.stat().st_size for item in (path.rglob("*") if path.is_dir() else [path]) if item.is_file())
