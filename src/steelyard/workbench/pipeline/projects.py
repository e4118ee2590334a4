"""Projects: their settings, how they are made and found, and what their items are."""

from typing import Literal

import msgspec
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.pipeline import PipelineRules
from steelyard.annotation.qualification import QualificationRules
from steelyard.annotation.task_kinds import TaskRules
from steelyard.core.config import Config, resolve_config
from steelyard.core.errors import ConfigError
from steelyard.core.names import NAME_RULE, is_name, normalize_name, similar_name
from steelyard.core.types import Case
from steelyard.workbench.pipeline.work_limits import WorkLimits
from steelyard.workbench.storage.account_names import lock_names
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import (
    StoredItem,
    StoredProject,
)

_HIGHEST_PRICE = 1e9
ENDED = frozenset(("finished", "dropped"))
"""The states in which an item waits for nobody."""
DEFAULT_DISCARDS = ("garbled", "wrong language", "truncated", "empty", "harmful", "other")


class ProjectSettings(Config, frozen=True):
    """The settings of a project."""

    rules: PipelineRules = PipelineRules()
    """The ways of items."""
    tasks: TaskRules = TaskRules()
    """Which tasks a case gets."""
    qualification: QualificationRules = QualificationRules()
    """The qualification that new annotators pass before real tasks."""
    limits: WorkLimits = WorkLimits()
    """The amount of work of one person."""
    discard_reasons: tuple[str, ...] = DEFAULT_DISCARDS
    """Why a response may be discarded."""
    seed: int = 0
    """The seed of designs, orders and draws."""
    price: float = 0.0
    """The price of an hour of active time, or of an answer; 0 where the pages show no cost."""
    priced_by: Literal["hour", "answer"] = "hour"
    """The unit of the price."""
    currency: str | None = None
    """The currency of the price, as it is shown; nothing for none."""

    def __post_init__(self) -> None:
        if not 0 <= self.price <= _HIGHEST_PRICE:
            raise ConfigError(f"a price of {self.price}", where="price", allowed=f"0 to {_HIGHEST_PRICE:,.0f}")


def add_project(
    session: Session, name: str, settings: ProjectSettings, *, by: int | None, at: float, is_simulated: bool = False
) -> StoredProject:
    """Make a project. Raises ConfigError for a name that is taken, looks like one that is, or cannot be shown."""
    if not is_name(name):
        raise RefusedError(f"{name[:50]!r} is not a name of a project", words="name", where="name", allowed=NAME_RULE)
    lock_names(session)
    if taken := similar_name(name, session.scalars(select(StoredProject.name))):
        problem = f"there is a project {taken!r} already"
        raise RefusedError(problem, words="taken", values={"name": taken}, where="name", do="choose another name")
    project = StoredProject(
        name=normalize_name(name), settings=msgspec.to_builtins(settings), created_at=at, is_simulated=is_simulated
    )
    session.add(project)
    session.flush()
    record(session, AuditEvent("project made", "project", project.id, by, project.settings), at=at)
    return project


def project_named(session: Session, name: str) -> StoredProject | None:
    """Return the project of a name, however a terminal writes its letters with marks; null where there is none."""
    return session.scalar(select(StoredProject).where(StoredProject.name.in_((name.strip(), normalize_name(name)))))


def is_simulated(session: Session) -> bool:
    """Tell whether any project has simulated people: every page then says so."""
    return session.scalar(select(StoredProject.id).where(StoredProject.is_simulated).limit(1)) is not None


def settings_of(project: StoredProject) -> ProjectSettings:
    """Return the settings of a project."""
    return resolve_config(ProjectSettings, project.settings, where=project.name)


def case_of(item: StoredItem) -> Case:
    """Return the case of an item as it was imported."""
    return msgspec.json.decode(item.case_json, type=Case)


def count_states(session: Session, project: int) -> dict[str, int]:
    """Return the number of items in each state."""
    states = select(StoredItem.state, func.count()).where(StoredItem.project_id == project).group_by(StoredItem.state)
    return {state: number for state, number in session.execute(states)}  # noqa: C416 - `dict` takes no rows
