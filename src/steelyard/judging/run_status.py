"""Progress of a run that asks models: what is done and failing, its cost so far and to come, and its end.

It reads the state that the running process writes about once a second; the ledger, which belongs to its writer, only
where no process runs.
"""

from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

from steelyard.core.errors import FileError
from steelyard.core.types import Record
from steelyard.io.batch_marks import WaitingBatch
from steelyard.io.ledger import LEDGER_FILE, read_ledger
from steelyard.io.run_folder import RUN_FILE, read_run
from steelyard.io.run_state import TaskProgress, UnfinishedState, read_state

_ASKING = "asking "


class ModelStatus(Record, frozen=True, kw_only=True):
    """The requests to one model, as far as this process has come; replies of earlier calls are among those done.

    ``cost`` and ``cost_to_come`` are null without a price; the latter takes the replies so far for typical.
    """

    model: str
    num_done: int
    num_requests: int | None
    num_failed: int
    prompt_tokens: int
    reply_tokens: int
    cost: float | None = None
    cost_to_come: float | None = None
    seconds_left: float | None = None


class RunStatus(Record, frozen=True, kw_only=True):
    """The state of a run in its folder. ``ends`` is the local time at which the current model's requests end.

    ``command`` continues a run that has stopped; ``problem`` is why it did. ``batches`` are the batch files with
    requests that wait; they are not known while a process runs.
    """

    state: UnfinishedState | Literal["finished"]
    models: tuple[ModelStatus, ...] = ()
    batches: tuple[WaitingBatch, ...] = ()
    ends: str | None = None
    problem: str = ""
    command: str | None = None


class JudgeStatus(NamedTuple):
    """Progress of the run in a folder."""

    status: RunStatus
    kind: Literal["status"] = "status"


def status_of(folder: Path) -> RunStatus:
    """Return the status of the run in a folder. Raises FileError for a folder without one."""
    state = read_state(folder)
    if state is None:
        if not (folder / RUN_FILE).is_file():
            do = "name the folder of a run that was started"
            raise FileError("there is no run here", where=str(folder), do=do)
        read_run(folder)
        return RunStatus(state="finished")
    asking = [task for task in state.tasks if task.title.startswith(_ASKING)]
    models = tuple(map(_model_status, asking))
    is_running = state.state == "running"
    left = models[-1].seconds_left if models else None
    ends = None
    if is_running and left is not None:
        ends = datetime.fromtimestamp(state.updated + left).astimezone().isoformat(" ", "minutes")
    command = None if is_running else state.resume_line()
    with read_ledger(folder / LEDGER_FILE) as ledger:
        batches = () if ledger is None or is_running else ledger.batches.waiting()
    return RunStatus(
        state=state.state, models=models, batches=batches, ends=ends, problem=state.problem, command=command
    )


def replies_per_second(folder: Path) -> float | None:
    """Return the rate at which the unfinished run of a folder got replies; null where none is known."""
    state = read_state(folder)
    asking = [] if state is None else [task for task in state.tasks if task.title.startswith(_ASKING)]
    seconds = sum(task.seconds for task in asking)
    return sum(task.done for task in asking) / seconds if seconds else None


def _model_status(task: TaskProgress) -> ModelStatus:
    figures = task.figures
    cost, num_answered = figures.get("cost"), task.done - figures.get("failed", 0.0)
    left = None if task.total is None else max(task.total - task.done, 0.0)
    is_known = cost is not None and left is not None and num_answered > 0
    return ModelStatus(
        model=task.title.removeprefix(_ASKING),
        num_done=round(task.done),
        num_requests=None if task.total is None else round(task.total),
        num_failed=round(figures.get("failed", 0.0)),
        prompt_tokens=round(figures.get("prompt_tokens", 0.0)),
        reply_tokens=round(figures.get("reply_tokens", 0.0)),
        cost=cost,
        cost_to_come=cost * left / num_answered if is_known and cost is not None and left is not None else None,
        seconds_left=task.seconds_left,
    )
