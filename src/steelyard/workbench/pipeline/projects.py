"""Projects: their settings, and case files that become items with tasks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import floor
from typing import Literal

import msgspec
from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from steelyard.annotation.pipeline import LAYERS, PipelineRules
from steelyard.annotation.qualification import QualificationRules
from steelyard.annotation.review import draw_for_review
from steelyard.annotation.task_kinds import Design, TaskKind, TaskRules, kinds_of
from steelyard.core.config import Config, resolve_config
from steelyard.core.errors import ConfigError
from steelyard.core.names import NAME_RULE, is_name, name_key, normalize_name
from steelyard.core.numerics import generator
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import Case, JsonObject
from steelyard.io.cases import encode_case
from steelyard.workbench.pipeline.work_limits import WorkLimits
from steelyard.workbench.storage.account_names import lock_names
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.number_lists import is_among, next_item_numbers
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import (
    StoredItem,
    StoredProject,
    StoredReview,
    StoredSpareNumber,
    StoredTask,
)

_BLOCK = 500
_HIGHEST_PRICE = 1e9
_LONGEST = {"prompt": 500, "language": 40, "category": 200, "batch": 200}
"""The characters that columns of `StoredItem` hold: SQLite would take more, and could not move to PostgreSQL."""
GOLD_ANSWERS = 10**9
"""The number of answers to a task whose answer is known: everybody may get it."""
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
    if taken := _similar(name, session.scalars(select(StoredProject.name))):
        problem = f"there is a project {taken!r} already"
        raise RefusedError(problem, words="taken", values={"name": taken}, where="name", do="choose another name")
    project = StoredProject(
        name=normalize_name(name), settings=msgspec.to_builtins(settings), created_at=at, is_simulated=is_simulated
    )
    session.add(project)
    session.flush()
    record(session, AuditEvent("project made", "project", project.id, by, project.settings), at=at)
    return project


def _similar(name: str, others: Iterable[str]) -> str | None:
    """Return the first of other names that looks the same; null where there is none."""
    key = name_key(name)
    return next((other for other in others if name_key(other) == key), None)


def project_named(session: Session, name: str) -> StoredProject | None:
    """Return the project of a name, however a terminal writes its letters with marks; null where there is none."""
    return session.scalar(select(StoredProject).where(StoredProject.name.in_((name.strip(), normalize_name(name)))))


def is_simulated(session: Session) -> bool:
    """Tell whether any project has simulated people: every page then says so."""
    return session.scalar(select(StoredProject.id).where(StoredProject.is_simulated).limit(1)) is not None


def settings_of(project: StoredProject) -> ProjectSettings:
    """Return the settings of a project."""
    return resolve_config(ProjectSettings, project.settings, where=project.name)


@dataclass(frozen=True)
class ImportNote:
    """The outcome of an import: items, their tasks, how many items each layer of review checks, and cases left out."""

    num_items: int
    num_tasks: int
    num_drawn: dict[str, int]
    num_skipped: int


def import_cases(
    session: Session, project: StoredProject, cases: Iterable[Case], *, batch: str, by: int | None, at: float
) -> ImportNote:
    """Make an item of each case, with its tasks, as one batch.

    Which items the layers of review will check is drawn here, for the whole batch. Raises RefusedError for a case that
    lacks what its tasks show, unless the project skips such cases, and for a batch or a case that the project has
    already.
    """
    settings = settings_of(project)
    if not is_name(batch, most=_LONGEST["batch"]):
        raise RefusedError(f"{batch[:50]!r} is not a name of a batch", words="name", where="batch", allowed=NAME_RULE)
    batches = select(StoredItem.batch).where(StoredItem.project_id == project.id).distinct()
    if taken := _similar(batch, session.scalars(batches)):
        problem, do = f"the batch {taken!r} is imported already", "give the new one its own name"
        raise RefusedError(problem, words="taken", values={"name": taken}, where="batch", do=do)
    batch = normalize_name(batch)
    num_before = session.scalar(select(func.count()).where(StoredItem.project_id == project.id)) or 0
    num_items = num_tasks = num_in = 0
    names: dict[str, int] = {}

    def counted() -> Iterator[Case]:
        nonlocal num_in
        for case in cases:
            num_in += 1
            yield case

    source = importable_cases(counted(), settings)
    while block := list(islice(source, _BLOCK)):
        _check_new(session, project, block)
        items = [_item_values(project, case, batch, at) for case in block]
        _number_items(session, items, settings, num_before=num_before + num_items)
        # Values, not objects: those of thousands of cases take most of the time that others wait for the database.
        stored = insert(StoredItem).returning(StoredItem.id, sort_by_parameter_order=True)
        numbers = session.scalars(stored, items).all()
        tasks = [
            values
            for number, item, case in zip(numbers, items, block, strict=True)
            for values in _first_tasks(number, item, case, settings)
        ]
        session.execute(insert(StoredTask), tasks)
        names |= {
            _lasting_name(item["prompt"], item["language"]): number for number, item in zip(numbers, items, strict=True)
        }
        num_items, num_tasks = num_items + len(items), num_tasks + len(tasks)
    drawn = draw_reviews(session, project, names, batch)
    skipped = num_in - num_items
    detail: JsonObject = {"batch": batch, "items": num_items, "tasks": num_tasks, "drawn": drawn, "skipped": skipped}
    record(session, AuditEvent("batch imported", "project", project.id, by, detail), at=at)
    return ImportNote(num_items, num_tasks, drawn, skipped)


def importable_cases(cases: Iterable[Case], settings: ProjectSettings) -> Iterator[Case]:
    """Yield the cases that an import makes items of: drawn, and with enough responses.

    Raises RefusedError for a case that lacks what its tasks show, unless the project skips such cases.
    """
    for case in kinds_of(settings.tasks)[0].select(cases, settings.tasks, seed=settings.seed):
        if _is_plannable(case, settings):
            yield case


def plan_tasks(
    item: StoredItem,
    case: Case,
    settings: ProjectSettings,
    *,
    discarded: Sequence[str],
) -> list[StoredTask]:
    """Return the tasks of the present round over the responses that were not discarded; none for too few."""
    remaining = msgspec.structs.replace(
        case, responses=tuple(response for response in case.responses if response.id not in discarded)
    )
    planned = plan_case(remaining, settings)
    if planned is None:
        return []
    kind, design = planned
    return [
        task_of(item, number, kind.name, shown, num_wanted=settings.rules.num_annotators)
        for number, shown in enumerate(design, start=1)
    ]


def task_of(item: StoredItem, number: int, kind: str, responses: Sequence[str], *, num_wanted: int) -> StoredTask:
    """Return a new task of the present round of an item."""
    place = {"project_id": item.project_id, "item_id": item.id, "round": item.round, "category": item.category}
    return StoredTask(**_task_values(place, number, kind, responses, num_wanted=num_wanted))


def _task_values(place: JsonObject, number: int, kind: str, responses: Sequence[str], *, num_wanted: int) -> JsonObject:
    """Return the columns of a new task. ``place`` has those that come from its item."""
    return {**place, "number": number, "kind": kind, "responses": list(responses), "num_wanted": num_wanted}


def plan_case(case: Case, settings: ProjectSettings) -> tuple[TaskKind, Design] | None:
    """Return the first kind of the project that the case has enough responses for, and its tasks."""
    for kind in kinds_of(settings.tasks):
        design = kind.design(case, settings.tasks, seed=settings.seed)
        if design is not None:
            return kind, design
    return None


def _is_plannable(case: Case, settings: ProjectSettings) -> bool:
    """Tell whether a case gets tasks. Raises RefusedError for one that does not, unless the project skips it."""
    if plan_case(case, settings) is not None:
        return True
    if settings.tasks.too_few == "skip":
        return False
    too_few = Remedy("tasks.too_few", "skip")
    do = Advice("leave such cases out: ", too_few, " for a new project, or on the project's page")
    raise no_task(case, settings, where="cases", do=do)


def no_task(case: Case, settings: ProjectSettings, *, where: str, do: str) -> RefusedError:
    """Return the refusal of a case that gets no task."""
    return RefusedError(
        f"prompt {case.prompt.id!r} with {number_of(len(case.responses), 'response')} gets no task",
        words="no task",
        values={"prompt": case.prompt.id, "responses": f"{len(case.responses)}"},
        where=where,
        allowed=f"for the kind {settings.tasks.kind!r}: {kinds_of(settings.tasks)[-1].needs}",
        do=do,
    )


def draw_reviews(
    session: Session,
    project: StoredProject,
    names: Mapping[str, int],
    batch: str,
    *,
    rounds: Mapping[int, int] | None = None,
) -> dict[str, int]:
    """Write a review to be made for every item that a layer checks; research checks whole batches.

    ``names`` are lasting names of the items (`item_name`), with their ids; ``rounds`` their rounds by id, 1 by default.
    Returns the number of items that each layer has drawn.
    """
    settings = settings_of(project)
    shares = {"delivery": settings.rules.delivery_share, "operations": settings.rules.operations_share}
    numbers: dict[str, int] = {}
    for layer in LAYERS:
        if layer not in shares:
            continue
        drawn = draw_for_review(tuple(names), layer, share=shares[layer], batch=batch, seed=settings.seed)
        reviews = [
            {
                "project_id": project.id,
                "item_id": names[name],
                "round": (rounds or {}).get(names[name], 1),
                "layer": layer,
            }
            for name in sorted(drawn)
        ]
        if reviews:
            session.execute(insert(StoredReview), reviews)
        numbers[layer] = len(drawn)
    return numbers


def item_name(item: StoredItem) -> str:
    """Return the name of an item that stays the same wherever its case is imported: prompt and language."""
    return _lasting_name(item.prompt, item.language)


def _lasting_name(prompt: str, language: str) -> str:
    return msgspec.json.encode([prompt, language]).decode()


def case_of(item: StoredItem) -> Case:
    """Return the case of an item as it was imported."""
    return msgspec.json.decode(item.case_json, type=Case)


def count_states(session: Session, project: int) -> dict[str, int]:
    """Return the number of items in each state."""
    states = select(StoredItem.state, func.count()).where(StoredItem.project_id == project).group_by(StoredItem.state)
    return {state: number for state, number in session.execute(states)}  # noqa: C416 - `dict` takes no rows


def _item_values(project: StoredProject, case: Case, batch: str, at: float) -> JsonObject:
    return {
        "project_id": project.id,
        "prompt": case.prompt.id,
        "language": case.prompt.language or "",
        "category": case.prompt.category[0] if case.prompt.category else "",
        "batch": batch,
        "case_json": encode_case(case).decode(),
        "state": "annotating",
        "discarded": [],
        "changed_at": at,
    }


def _first_tasks(number: int, item: JsonObject, case: Case, settings: ProjectSettings) -> Iterator[JsonObject]:
    """Yield the values of the tasks of a new item."""
    planned = plan_case(case, settings)
    assert planned is not None, "an importable case has tasks"
    kind, design = planned
    place = {"project_id": item["project_id"], "item_id": number, "category": item["category"]}
    for task, shown in enumerate(design, start=1):
        yield _task_values(place, task, kind.name, shown, num_wanted=settings.rules.num_annotators)


def _number_items(session: Session, items: Sequence[JsonObject], settings: ProjectSettings, *, num_before: int) -> None:
    """Give new items of a batch their places and numbers, and leave some numbers between them for planted reviews.

    Both are in random order: items that come to a layer in that of the import tell nothing of the numbers. As many are
    left as the layers will get, by their shares. Without planted reviews the database numbers the items.
    """
    for place, item in enumerate(items, start=num_before):
        item["place"] = place
    rules = settings.rules
    share = rules.review_gold_share / (1 - rules.review_gold_share)
    rate = 2 * share * (rules.delivery_share + rules.operations_share + rules.validation)
    if not rate:
        return
    # Rounded over the project, not over each batch: small batches have their share, too.
    num_spare = floor(rate * (num_before + len(items))) - floor(rate * num_before)
    numbers = next_item_numbers(session, len(items) + num_spare)
    rng = generator(settings.seed, "spare numbers", items[0]["batch"], num_before)
    # The last number is an item's: the next import counts on from there.
    order = [*rng.permutation(len(numbers) - 1).tolist(), len(numbers) - 1]
    spare, taken = sorted(order[:num_spare]), rng.permutation(order[num_spare:]).tolist()
    of_block = {"project_id": items[0]["project_id"], "batch": items[0]["batch"], "place": num_before}
    if spare:
        session.execute(insert(StoredSpareNumber), [{"id": numbers[each], **of_block} for each in spare])
    for item, each in zip(items, taken, strict=True):
        item["id"] = numbers[each]


def _check_storable(case: Case) -> None:
    """Raise RefusedError for a name of a case that a database cannot keep in its column."""
    prompt = case.prompt
    names = {"prompt": prompt.id, "language": prompt.language or "", "category": (*(prompt.category or ()), "")[0]}
    for what, name in names.items():
        if len(name) > _LONGEST[what] or "\0" in name:
            length = "with a NUL character" if "\0" in name else f"of {len(name):,} characters"
            raise RefusedError(
                f"prompt {prompt.id[:50]!r} has {'an id' if what == 'prompt' else f'a {what}'} {length}",
                words="long name",
                values={"prompt": prompt.id[:50].replace("\0", "\N{SYMBOL FOR NULL}"), "limit": f"{_LONGEST[what]}"},
                where="cases",
                allowed=f"at most {_LONGEST[what]} characters, without NUL",
                do="give it a shorter name",
            )


def _check_new(session: Session, project: StoredProject, cases: Sequence[Case]) -> None:
    for case in cases:
        _check_storable(case)
    known = session.execute(
        select(StoredItem.prompt, StoredItem.language).where(
            StoredItem.project_id == project.id, is_among(StoredItem.prompt, (case.prompt.id for case in cases))
        )
    )
    taken = {(prompt, language) for prompt, language in known}
    for case in cases:
        key = (case.prompt.id, case.prompt.language or "")
        if key in taken:
            raise RefusedError(
                f"prompt {case.prompt.id!r} is in the project already, or twice among the cases",
                words="known case",
                values={"prompt": case.prompt.id},
                where="cases",
                do="leave it out, or make another project",
            )
        taken.add(key)
