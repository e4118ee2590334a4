"""Case files that become items of a project with their tasks, batch by batch."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import floor
from types import MappingProxyType

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from steelyard.annotation.task_kinds import category_of_tasks, kinds_of
from steelyard.core.errors import Faults, Place
from steelyard.core.names import NAME_RULE, is_name, mark_unseen, normalize_name, similar_name
from steelyard.core.numerics import generator
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import answer_language
from steelyard.core.types import Case, JsonObject
from steelyard.io.cases import encode_case
from steelyard.workbench.pipeline.projects import ProjectSettings, settings_of
from steelyard.workbench.pipeline.round_plans import draw_reviews, first_tasks, lasting_name, no_task, plan_case
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.number_lists import is_among, next_item_numbers
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import StoredItem, StoredProject, StoredSpareNumber, StoredTask

CasePlaces = Mapping[tuple[str, str | None], Place]
"""The places of cases in their file, by their keys."""
NO_PLACES: CasePlaces = MappingProxyType({})
_BLOCK = 500
_LONGEST = {"prompt": 500, "language": 40, "category": 200, "batch": 200}
"""The characters that columns of `StoredItem` hold: SQLite would take more, and could not move to PostgreSQL."""


@dataclass(frozen=True)
class ImportNote:
    """The outcome of an import: items, their tasks, how many items each layer of review checks, and cases left out."""

    num_items: int
    num_tasks: int
    num_drawn: dict[str, int]
    num_skipped: int


def import_cases(
    session: Session,
    project: StoredProject,
    cases: Iterable[Case],
    *,
    batch: str,
    by: int | None,
    at: float,
    places: CasePlaces = NO_PLACES,
) -> ImportNote:
    """Make an item of each case, with its tasks, as one batch.

    Which items the layers of review will check is drawn here, for the whole batch. Raises RefusedError for a batch that
    the project has already, and with all cases that it has already or that lack what their tasks show, unless the
    project skips such cases: at their places in the file, where ``places`` has them.
    """
    settings = settings_of(project)
    if not is_name(batch, most=_LONGEST["batch"]):
        raise RefusedError(f"{batch[:50]!r} is not a name of a batch", words="name", where="batch", allowed=NAME_RULE)
    batches = select(StoredItem.batch).where(StoredItem.project_id == project.id).distinct()
    if taken := similar_name(batch, session.scalars(batches)):
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

    faults = Faults("cases are wrong, and nothing was imported", RefusedError)
    source = importable_cases(counted(), settings, places=places, faults=faults)
    while block := list(islice(source, _BLOCK)):
        _check_new(session, project, block, places, faults)
        if faults:  # The rest is read for its own faults.
            continue
        items = [_item_values(project, case, batch, settings, at) for case in block]
        _number_items(session, items, settings, num_before=num_before + num_items)
        # Values, not objects: those of thousands of cases take most of the time that others wait for the database.
        stored = insert(StoredItem).returning(StoredItem.id, sort_by_parameter_order=True)
        numbers = session.scalars(stored, items).all()
        tasks = [
            values
            for number, item, case in zip(numbers, items, block, strict=True)
            for values in first_tasks(number, item, case, settings)
        ]
        session.execute(insert(StoredTask), tasks)
        names |= {
            lasting_name(item["prompt"], item["language"]): number for number, item in zip(numbers, items, strict=True)
        }
        num_items, num_tasks = num_items + len(items), num_tasks + len(tasks)
    faults.check()
    drawn = draw_reviews(session, project, names, batch)
    skipped = num_in - num_items
    detail: JsonObject = {"batch": batch, "items": num_items, "tasks": num_tasks, "drawn": drawn, "skipped": skipped}
    record(session, AuditEvent("batch imported", "project", project.id, by, detail), at=at)
    return ImportNote(num_items, num_tasks, drawn, skipped)


def importable_cases(
    cases: Iterable[Case],
    settings: ProjectSettings,
    *,
    places: CasePlaces = NO_PLACES,
    faults: Faults | None = None,
) -> Iterator[Case]:
    """Yield the cases that an import makes items of: drawn, and with enough responses.

    Raises RefusedError after the last for those that lack what their tasks show, unless the project skips such cases;
    with ``faults`` they are gathered there.
    """
    gathered = Faults("cases get no task", RefusedError) if faults is None else faults
    for case in kinds_of(settings.tasks)[0].select(cases, settings.tasks, seed=settings.seed):
        is_plannable = False
        with gathered.gathered():
            is_plannable = _is_plannable(case, settings, places)
        if is_plannable:
            yield case
    if faults is None:
        gathered.check()


def _is_plannable(case: Case, settings: ProjectSettings, places: CasePlaces) -> bool:
    """Tell whether a case gets tasks. Raises RefusedError for one that does not, unless the project skips it."""
    if plan_case(case, settings) is not None:
        return True
    if settings.tasks.too_few == "skip":
        return False
    too_few = Remedy("tasks.too_few", "skip")
    do = Advice("leave such cases out: ", too_few, " for a new project, or on the project's page")
    raise no_task(case, settings, where=place_of(case, "responses", places), do=do)


def place_of(case: Case, path: str | None, places: CasePlaces, *, otherwise: str = "cases") -> Place:
    """Return the place of a field of a case, in its file where that is known."""
    return places.get(case.key, Place(otherwise))._replace(path=path)


def _item_values(project: StoredProject, case: Case, batch: str, settings: ProjectSettings, at: float) -> JsonObject:
    return {
        "project_id": project.id,
        "prompt": case.prompt.id,
        "language": case.prompt.language or "",
        "category": category_of_tasks(case, settings.tasks),
        "batch": batch,
        "case_json": encode_case(case).decode(),
        "state": "annotating",
        "discarded": [],
        "changed_at": at,
    }


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


def _check_storable(case: Case, places: CasePlaces) -> None:
    """Raise RefusedError for a name of a case that a database cannot keep in its column."""
    prompt = case.prompt
    names = (
        ("prompt", "prompt.id", prompt.id),
        ("language", "prompt.language", prompt.language or ""),
        ("language", "prompt.meta.answer_language", answer_language(prompt) or ""),
        ("category", "prompt.category[0]", (*(prompt.category or ()), "")[0]),
    )
    for what, field, name in names:
        if len(name) > _LONGEST[what] or "\0" in name:
            length = "with a NUL character" if "\0" in name else f"of {len(name):,} characters"
            raise RefusedError(
                f"prompt {prompt.id[:50]!r} has {'an id' if what == 'prompt' else f'a {what}'} {length}",
                words="long name",
                values={"prompt": mark_unseen(prompt.id[:50]), "limit": f"{_LONGEST[what]}"},
                where=place_of(case, field, places),
                allowed=f"at most {_LONGEST[what]} characters, without NUL",
                do="give it a shorter name",
            )


def _check_new(
    session: Session, project: StoredProject, cases: Sequence[Case], places: CasePlaces, faults: Faults
) -> None:
    """Gather the cases whose names a database cannot keep, and those that the project has already."""
    # PostgreSQL takes no NUL in a query; a name with one is refused below.
    ids = [case.prompt.id for case in cases if "\0" not in case.prompt.id]
    known = session.execute(
        select(StoredItem.prompt, StoredItem.language).where(
            StoredItem.project_id == project.id, is_among(StoredItem.prompt, ids)
        )
    )
    taken = {(prompt, language) for prompt, language in known}
    for case in cases:
        with faults.gathered():
            _check_storable(case, places)
            key = (case.prompt.id, case.prompt.language or "")
            if key in taken:
                raise RefusedError(
                    f"prompt {case.prompt.id!r} is in the project already, or twice among the cases",
                    words="known case",
                    values={"prompt": mark_unseen(case.prompt.id)},
                    where=place_of(case, "prompt.id", places),
                    do="leave it out, or make another project",
                )
            taken.add(key)
