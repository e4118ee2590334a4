"""Every table of the workbench, one class each, in the order of the pipeline: people, items, tasks, answers, reviews.

Columns of JSON hold one record each, named in the docstring. Times are seconds since 1970 in UTC. Nothing that a person
entered is changed or deleted: a later answer has a later round. Rows of ``events`` cannot be changed at all: the
migration that creates the table adds triggers against it. Sums behind figures: `figure_tables`.
"""

from typing import Any, Literal

from sqlalchemy import (
    JSON,
    BigInteger,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from steelyard.annotation.pipeline import ItemState, Layer
from steelyard.core.types import JsonObject

Role = Literal["annotator", "delivery", "operations", "researcher", "administrator"]
"""From who labels, over the three layers of review, to who manages accounts and projects."""
_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
# SQLite numbers rows by itself only in a column of this very type.
_Number = BigInteger().with_variant(Integer, "sqlite")
_IS_LEFT = text("num_answered < num_wanted AND NOT is_retired AND NOT is_gold")


class WorkbenchTable(DeclarativeBase):
    """The base of all tables. Constraints have names, so that a migration can find them on every database."""

    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map = {JsonObject: JSON, list[str]: JSON, list[list[Any]]: JSON, int: _Number, str: Text}  # noqa: RUF012 - SQLAlchemy's own form

    id: Mapped[int] = mapped_column(_Number, primary_key=True, autoincrement=True)


class StoredProject(WorkbenchTable):
    """A set of items with one purpose, language of the pages, and rules. ``settings``: `ProjectSettings`."""

    __tablename__ = "projects"

    name: Mapped[str] = mapped_column(String(200), unique=True)
    settings: Mapped[JsonObject]
    created_at: Mapped[float]
    is_simulated: Mapped[bool] = mapped_column(default=False)


class StoredPerson(WorkbenchTable):
    """An account. ``pseudonym`` signs everything that leaves the workbench; ``skills`` are categories, empty for all.

    ``erased_at``: when the person asked to be forgotten. Name and password are then empty, and the judgments stay.
    """

    __tablename__ = "people"

    name: Mapped[str] = mapped_column(String(200), unique=True)
    display_name: Mapped[str] = mapped_column(default="")
    pseudonym: Mapped[str] = mapped_column(String(40), unique=True)
    password_hash: Mapped[str] = mapped_column(default="")
    role: Mapped[Role] = mapped_column(String(20))
    language: Mapped[str] = mapped_column(String(20), default="en")
    skills: Mapped[list[str]]
    is_active: Mapped[bool] = mapped_column(default=True)
    is_simulated: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[float]
    qualified_at: Mapped[float | None]
    erased_at: Mapped[float | None]


class StoredKey(WorkbenchTable):
    """A random key of this workbench, made when it is first opened: cookies are signed with it."""

    __tablename__ = "keys"

    name: Mapped[str] = mapped_column(String(40), unique=True)
    value: Mapped[str] = mapped_column(String(100))


class StoredLoginSession(WorkbenchTable):
    """A browser that is logged in. The cookie holds the token, this row its SHA-256."""

    __tablename__ = "login_sessions"

    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"), index=True)
    created_at: Mapped[float]
    expires_at: Mapped[float]


class StoredApiToken(WorkbenchTable):
    """A token of the REST interface with rights of its owner until it expires; only its SHA-256 is stored."""

    __tablename__ = "api_tokens"

    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str] = mapped_column(String(200))
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"), index=True)
    scope: Mapped[str] = mapped_column(String(20))
    created_at: Mapped[float]
    expires_at: Mapped[float]
    revoked_at: Mapped[float | None]


class StoredLoginAttempt(WorkbenchTable):
    """A login that failed: what throttling counts, by name and by address."""

    __tablename__ = "login_attempts"
    __table_args__ = (Index("ix_login_attempts_name_at", "name", "at"), Index("ix_login_attempts_at", "address", "at"))

    name: Mapped[str] = mapped_column(String(200))
    address: Mapped[str] = mapped_column(String(100))
    at: Mapped[float]


HAS_DISCARDS = "CAST(discarded AS VARCHAR) != '[]'"
"""The items that have an index of their own, as it is written there: a database knows it by its words."""


class StoredItem(WorkbenchTable):
    """One case on its way through the pipeline. ``case_json`` is its line of a case file, ``state`` an `ItemState`.

    ``round`` counts how often it was sent back; ``discarded`` are ids of responses that people took out. ``place`` is
    that of the import: where reviews are planted, numbers are in another order (`projects.import_cases`).
    """

    __tablename__ = "items"
    __table_args__ = (
        UniqueConstraint("project_id", "prompt", "language"),
        Index("ix_items_state", "project_id", "state", "id"),
        Index("ix_items_place", "project_id", "state", "place", "id"),
        Index("ix_items_batch", "project_id", "batch"),
        # Queues have the items of all projects, those that wait longest first.
        Index("ix_items_waiting", "state", "changed_at", "id"),
        # Figures are counted in these indexes alone, past the texts of the cases.
        Index("ix_items_progress", "project_id", "batch", "category", "state", "round"),
        Index("ix_items_discarded", "project_id", sqlite_where=text(HAS_DISCARDS), postgresql_where=text(HAS_DISCARDS)),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    prompt: Mapped[str] = mapped_column(String(500))
    language: Mapped[str] = mapped_column(String(40), default="")
    category: Mapped[str] = mapped_column(String(200), default="")
    batch: Mapped[str] = mapped_column(String(200), default="")
    case_json: Mapped[str]
    state: Mapped[ItemState] = mapped_column(String(30))
    round: Mapped[int] = mapped_column(default=1)
    agreement: Mapped[float | None]
    discarded: Mapped[list[str]]
    changed_at: Mapped[float]
    place: Mapped[int] = mapped_column(default=0)


class StoredSpareNumber(WorkbenchTable):
    """A number among those of the items of a batch that no item has: a planted review may get it (`review_placement`).

    ``id`` is the number itself, ``place`` the first place of the items that were numbered with it.
    """

    __tablename__ = "spare_numbers"
    __table_args__ = (Index("ix_spare_numbers_batch", "project_id", "batch", "place", "id"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    batch: Mapped[str] = mapped_column(String(200))
    place: Mapped[int]


class StoredTask(WorkbenchTable):
    """One comparison of an item that ``num_wanted`` people make. ``responses`` are ids in the order of the design.

    ``num_reserved`` counts answers of the round and assignments that are open: it never exceeds ``num_wanted``, which
    is what makes the number of answers exact. ``is_open``: more people may be assigned. ``gold``: the aligned answer
    (`TaskAnswer`) where the task checks people.
    """

    __tablename__ = "tasks"
    __table_args__ = (
        UniqueConstraint("item_id", "round", "number"),
        Index("ix_tasks_open", "project_id", "is_gold", "is_open", "id"),
        Index(
            "ix_tasks_left",
            "project_id",
            "category",
            "round",
            "num_wanted",
            "num_answered",
            sqlite_where=_IS_LEFT,
            postgresql_where=_IS_LEFT,
        ),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id"), index=True)
    round: Mapped[int] = mapped_column(default=1)
    number: Mapped[int]
    kind: Mapped[str] = mapped_column(String(30), default="triple")
    responses: Mapped[list[str]]
    category: Mapped[str] = mapped_column(String(200), default="")
    num_wanted: Mapped[int]
    num_reserved: Mapped[int] = mapped_column(default=0)
    num_answered: Mapped[int] = mapped_column(default=0)
    is_open: Mapped[bool] = mapped_column(default=True)
    is_retired: Mapped[bool] = mapped_column(default=False)
    is_gold: Mapped[bool] = mapped_column(default=False)
    gold: Mapped[JsonObject | None]


class StoredAssignment(WorkbenchTable):
    """A task in a person's hands. ``shown`` is the person's own order; ``draft`` what was entered so far.

    ``state``: ``open``, ``answered``, ``expired``, ``released``, or ``unseen``: loaded ahead, and given back before it
    was shown. Only time with the page in front counts in ``seconds``, up to the time since ``active_at``, when the
    latest draft came (null for none).
    """

    __tablename__ = "assignments"
    __table_args__ = (
        UniqueConstraint("task_id", "person_id"),
        Index("ix_assignments_person", "person_id", "state"),
        Index("ix_assignments_expiry", "state", "expires_at"),
    )

    task_id: Mapped[int] = mapped_column(ForeignKey("tasks.id"))
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"))
    shown: Mapped[list[str]]
    state: Mapped[str] = mapped_column(String(10), default="open")
    is_gold_place: Mapped[bool] = mapped_column(default=False)
    assigned_at: Mapped[float]
    expires_at: Mapped[float]
    seconds: Mapped[float] = mapped_column(default=0.0)
    active_at: Mapped[float | None]
    draft: Mapped[JsonObject | None]


class StoredAnswer(WorkbenchTable):
    """An answer that a person submitted, two people aligned on, or a layer settled. ``content``: `TaskAnswer`.

    ``stage`` is ``annotation``, ``proposal`` for a step of an alignment, ``alignment`` for what came of it, or the
    layer. One assignment has one answer, also where one is sent twice.
    """

    __tablename__ = "answers"
    __table_args__ = (Index("ix_answers_task", "task_id", "stage"), Index("ix_answers_person", "person_id", "at"))

    task_id: Mapped[int] = mapped_column(ForeignKey("tasks.id"))
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"))
    assignment_id: Mapped[int | None] = mapped_column(ForeignKey("assignments.id"), unique=True)
    stage: Mapped[str] = mapped_column(String(20), default="annotation")
    content: Mapped[JsonObject]
    seconds: Mapped[float]
    guideline_id: Mapped[int | None] = mapped_column(ForeignKey("guidelines.id"))
    at: Mapped[float]


class StoredRemark(WorkbenchTable):
    """One remark of the discussion of an item, in alignment or in a layer."""

    __tablename__ = "remarks"

    item_id: Mapped[int] = mapped_column(ForeignKey("items.id"), index=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"))
    text: Mapped[str]
    at: Mapped[float]


class StoredAdjudicationTime(WorkbenchTable):
    """The active time that a person spent on an item until a form was sent: in alignment, settlement or review.

    ``stage``: ``alignment``, or the layer.
    """

    __tablename__ = "adjudication_times"
    __table_args__ = (
        Index("ix_adjudication_times_person", "person_id", "at"),
        Index("ix_adjudication_times_project", "project_id", "stage", "seconds"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"))
    stage: Mapped[str] = mapped_column(String(20))
    seconds: Mapped[float]
    at: Mapped[float]


class StoredReview(WorkbenchTable):
    """A layer's decision on an item: ``accepted`` or ``rejected`` with its reason; null while it is to be made."""

    __tablename__ = "reviews"
    __table_args__ = (
        UniqueConstraint("item_id", "round", "layer"),
        Index("ix_reviews_open", "project_id", "layer", "decision"),
        Index("ix_reviews_figures", "project_id", "layer", "person_id", "decision", "at"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    round: Mapped[int]
    layer: Mapped[Layer] = mapped_column(String(20))
    person_id: Mapped[int | None] = mapped_column(ForeignKey("people.id"))
    decision: Mapped[str | None] = mapped_column(String(10))
    reason: Mapped[str] = mapped_column(default="")
    at: Mapped[float | None]


class StoredPlantedReview(WorkbenchTable):
    """A review whose right decision is known: a finished item, shown to a layer as one that waits for it.

    ``changed`` is the wrong answer that is shown (`SpoiledTask`); null where the truth itself is. It waits from
    ``placed_at`` on, null while it lies ready. ``number`` and ``batch`` are those with which its layer sees it; null
    for those of its item. ``remarks`` are lists of person, text and time. ``is_retired``: the truth was withdrawn, and
    the decision counts against nobody; ``is_upheld``: ``ruled_by`` confirmed it.
    """

    __tablename__ = "planted_reviews"
    __table_args__ = (
        UniqueConstraint("item_id", "round", "layer"),
        UniqueConstraint("number"),
        Index("ix_planted_reviews_open", "layer", "decision", "placed_at", "project_id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    round: Mapped[int]
    layer: Mapped[Layer] = mapped_column(String(20))
    changed: Mapped[JsonObject | None] = mapped_column(JSON(none_as_null=True))
    remarks: Mapped[list[list[Any]]]
    placed_at: Mapped[float | None]
    number: Mapped[int | None]
    batch: Mapped[str | None] = mapped_column(String(200))
    person_id: Mapped[int | None] = mapped_column(ForeignKey("people.id"))
    decision: Mapped[str | None] = mapped_column(String(10))
    reason: Mapped[str] = mapped_column(default="")
    at: Mapped[float | None]
    seconds: Mapped[float] = mapped_column(default=0.0)
    is_retired: Mapped[bool] = mapped_column(default=False)
    is_upheld: Mapped[bool] = mapped_column(default=False)
    ruled_by: Mapped[int | None] = mapped_column(ForeignKey("people.id"))


class StoredGuideline(WorkbenchTable):
    """A version of the guideline of a category (empty: of all) in one language, in Markdown."""

    __tablename__ = "guidelines"
    __table_args__ = (UniqueConstraint("project_id", "category", "language", "version"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    category: Mapped[str] = mapped_column(String(200), default="")
    language: Mapped[str] = mapped_column(String(20))
    version: Mapped[int]
    text: Mapped[str]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("people.id"))
    at: Mapped[float]


class StoredEvent(WorkbenchTable):
    """One line of the audit log: who did what to which object. ``hash`` covers the row and the hash before it."""

    __tablename__ = "events"
    __table_args__ = (Index("ix_events_subject", "subject", "subject_id"),)

    at: Mapped[float]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("people.id"))
    action: Mapped[str] = mapped_column(String(60))
    subject: Mapped[str] = mapped_column(String(30))
    subject_id: Mapped[int | None]
    detail: Mapped[JsonObject]
    previous_hash: Mapped[str] = mapped_column(String(64))
    hash: Mapped[str] = mapped_column(String(64), unique=True)
