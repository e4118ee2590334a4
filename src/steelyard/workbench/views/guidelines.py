"""Guidelines: a text for each category and language, in versions that stay, so that an answer can name the one it had.

A guideline of the empty category is for every category that has none of its own.
"""

from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.core.names import NAME_RULE, is_name
from steelyard.core.text import natural_order
from steelyard.workbench.pipeline.question_words import category_spellings
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import StoredGuideline, StoredItem, StoredProject
from steelyard.workbench.views.pages import LANGUAGES

_MOST_CHARACTERS = 200_000
_MOST_CATEGORIES = 500


class NewGuideline(NamedTuple):
    """A text to be the newest version. ``category``: empty for all categories."""

    category: str
    language: str
    text: str


def add_guideline(session: Session, project: StoredProject, new: NewGuideline, *, by: int | None, at: float) -> None:
    """Add a version of a guideline. Raises ConfigError for a text that is empty, too long, or the newest one again."""
    if not new.text.strip() or len(new.text) > _MOST_CHARACTERS:
        raise RefusedError(
            f"a guideline of {len(new.text)} characters",
            words="remark",
            values={"limit": f"{_MOST_CHARACTERS:,}"},
            where="text",
            allowed=f"1 to {_MOST_CHARACTERS} characters",
        )
    if new.language not in LANGUAGES:
        problem = f"{new.language!r} is not a language of the pages"
        raise RefusedError(problem, words="misfit", where="language", allowed=", ".join(LANGUAGES))
    # Items may have a category of any characters.
    if new.category and not is_name(new.category) and new.category not in categories_of(session, project.id):
        problem = f"{new.category[:50]!r} is not a name of a category"
        raise RefusedError(problem, words="name", where="category", allowed=NAME_RULE)
    latest = session.scalar(
        select(StoredGuideline)
        .where(
            StoredGuideline.project_id == project.id,
            StoredGuideline.category == new.category,
            StoredGuideline.language == new.language,
        )
        .order_by(StoredGuideline.version.desc())
        .limit(1)
    )
    if latest is not None and latest.text == new.text:
        raise RefusedError("this is the newest version already", words="same text", where="text", do="change the text")
    guideline = StoredGuideline(
        project_id=project.id,
        category=new.category,
        language=new.language,
        version=1 if latest is None else latest.version + 1,
        text=new.text,
        person_id=by,
        at=at,
    )
    session.add(guideline)
    session.flush()
    detail = {"category": new.category, "language": new.language, "version": guideline.version}
    record(
        session,
        AuditEvent("guideline written", "guideline", guideline.id, by, {**detail, "project": project.id}),
        at=at,
    )


def latest_guidelines(session: Session, project: int) -> list[StoredGuideline]:
    """Return the newest version of each category and language, by category."""
    newest = (
        select(func.max(StoredGuideline.id))
        .where(StoredGuideline.project_id == project)
        .group_by(StoredGuideline.category, StoredGuideline.language)
    )
    statement = select(StoredGuideline).where(StoredGuideline.id.in_(newest))
    return sorted(session.scalars(statement), key=lambda each: (natural_order(each.category), each.language))


def stored_category(session: Session, text: str) -> str:
    """Return the category that an entered name means: its key where items have it or nothing of that name, else it."""
    *names, key = category_spellings(text.strip())
    used = set(session.scalars(select(StoredItem.category).where(StoredItem.category.in_((*names, key))).distinct()))
    return next((name for name in (key, *names) if name in used), key)


def categories_of(session: Session, project: int) -> list[str]:
    """Return the categories of a project's items, at most 500."""
    names = select(StoredItem.category).where(StoredItem.project_id == project, StoredItem.category != "").distinct()
    return sorted(session.scalars(names.order_by(StoredItem.category).limit(_MOST_CATEGORIES)), key=natural_order)
