"""Tables of the qualification: tasks with a reference, rounds of people, and the answers within a round."""

from sqlalchemy import JSON, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from steelyard.core.types import JsonObject
from steelyard.workbench.storage.tables import WorkbenchTable


class StoredQualificationTask(WorkbenchTable):
    """A task whose answer is known and shown afterwards. ``case_json``: its case. ``reference``: a `TaskAnswer`.

    ``responses`` are ids in the order of the design; ``reason`` says why the reference is as it is.
    """

    __tablename__ = "qualification_tasks"
    __table_args__ = (Index("ix_qualification_tasks_project", "project_id", "is_retired", "id"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    kind: Mapped[str] = mapped_column(String(30))
    case_json: Mapped[str]
    responses: Mapped[list[str]]
    reference: Mapped[JsonObject]
    reason: Mapped[str] = mapped_column(default="")
    is_retired: Mapped[bool] = mapped_column(default=False)


class StoredQualificationRound(WorkbenchTable):
    """A person's try in a project. ``tasks`` are numbers of its tasks in their order.

    ``outcome``: ``open``, ``passed``, ``failed``, or ``let pass`` and ``let repeat`` where a manager decided, whose
    number and reason are kept. ``accuracy`` is null while the round is open, and where nothing was answered.
    """

    __tablename__ = "qualification_rounds"
    __table_args__ = (UniqueConstraint("project_id", "person_id", "number"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"), index=True)
    number: Mapped[int]
    tasks: Mapped[list[int]] = mapped_column(JSON)
    outcome: Mapped[str] = mapped_column(String(20), default="open")
    accuracy: Mapped[float | None]
    decided_by: Mapped[int | None] = mapped_column(ForeignKey("people.id"))
    reason: Mapped[str] = mapped_column(default="")
    begun_at: Mapped[float]
    ended_at: Mapped[float | None]


class StoredQualificationAnswer(WorkbenchTable):
    """An answer within a round. ``content``: a `TaskAnswer`. ``num_same`` of ``num_points`` are as in the reference."""

    __tablename__ = "qualification_answers"
    __table_args__ = (UniqueConstraint("round_id", "task_id"),)

    round_id: Mapped[int] = mapped_column(ForeignKey("qualification_rounds.id"))
    task_id: Mapped[int] = mapped_column(ForeignKey("qualification_tasks.id"))
    content: Mapped[JsonObject]
    num_same: Mapped[int]
    num_points: Mapped[int]
    seconds: Mapped[float]
    at: Mapped[float]
