"""Managing people, whose first password is shown once, and reading the audit log."""

import re
import time
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from sqlalchemy.orm import Session
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from steelyard.workbench.accounts.api_tokens import revoke_token, tokens_of
from steelyard.workbench.accounts.people import (
    ROLES,
    NewPerson,
    Role,
    Visitor,
    add_person,
    change_account,
    erase_person,
    first_password,
    set_password,
)
from steelyard.workbench.accounts.permissions import (
    LARGEST_NUMBER,
    Auditor,
    PeopleManager,
    RowNumber,
    Text,
    database_of,
)
from steelyard.workbench.pipeline.listings import EventSelection, event_page, people_page
from steelyard.workbench.routes.request_bodies import Endpoints, KnownRoute
from steelyard.workbench.storage.audit_log import BEGINNING, LogCheck, check_log, last_checked_event, record_check
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import StoredApiToken, StoredPerson
from steelyard.workbench.views.guidelines import stored_category
from steelyard.workbench.views.pages import LANGUAGES, form_version, page

router = APIRouter(route_class=KnownRoute, include_in_schema=False)
ENDPOINTS = Endpoints((router,))
_MOST_SKILLS = 100


@router.get("/manage/people")
def people_list(
    request: Request, visitor: PeopleManager, after: Annotated[int, Query(ge=0, le=LARGEST_NUMBER)] = 0
) -> Response:
    """List the accounts, a page at a time."""
    return _people_page(request, visitor, after=after)


@router.post("/manage/people")
def new_person(
    request: Request,
    visitor: PeopleManager,
    *,
    name: Text,
    role: Text,
    display_name: Text = "",
    language: Text = "en",
    skills: Text = "",
) -> Response:
    """Make an account and show its first password, this once."""
    if language not in LANGUAGES:
        raise RefusedError(
            f"{language!r} is not a language of the pages", words="misfit", where="language", allowed="en, zh"
        )
    password = first_password()

    def add(session: Session) -> StoredPerson:
        known = _skills(session, skills)
        new = NewPerson(name, _role(role), password, display_name, language, known)
        return add_person(session, new, by=visitor.person, at=time.time())

    person = database_of(request).write(add)
    return _people_page(request, visitor, after=person.id - 1, made=person, password=password)


@router.post("/manage/people/{person}")
def change_person(
    request: Request,
    visitor: PeopleManager,
    person: RowNumber,
    *,
    role: Text,
    skills: Text = "",
    is_active: Annotated[bool, Form()] = False,
    version: Text = "",
) -> Response:
    """Change role, skills, and whether the account is open, unless they were changed since the form was opened.

    Closing an account logs the person out.
    """

    def change(session: Session) -> bool:
        row = _person(session, person)
        # Of two forms that are sent at once, the second one has the account of the first.
        session.refresh(row, with_for_update={"key_share": True})
        if version not in ("", _version_of(row)):
            return False
        change_account(
            session,
            row,
            role=_role(role),
            is_active=is_active,
            skills=_skills(session, skills),
            by=visitor.person,
            at=time.time(),
        )
        return True

    if not database_of(request).write(change):
        return _people_page(request, visitor, after=person - 1, outdated=person)
    return RedirectResponse(f"/manage/people?after={person - 1}", 303)


@router.post("/manage/people/{person}/password")
def new_password(request: Request, visitor: PeopleManager, person: RowNumber) -> Response:
    """Give a person who forgot the password a new one, shown this once; every browser is logged out."""
    password = first_password()

    def change(session: Session) -> StoredPerson:
        row = _person(session, person)
        set_password(session, row, password, by=visitor.person, at=time.time())
        return row

    row = database_of(request).write(change)
    return _people_page(request, visitor, after=person - 1, made=row, password=password)


@router.post("/manage/people/{person}/tokens/{number}/revoke")
def end_token(request: Request, visitor: PeopleManager, person: RowNumber, number: RowNumber) -> Response:
    """Revoke a token of a person."""

    def revoke(session: Session) -> None:
        token = session.get(StoredApiToken, number)
        if token is None or token.person_id != person:
            raise HTTPException(404)
        revoke_token(session, token, by=visitor.person, at=time.time())

    database_of(request).write(revoke)
    return RedirectResponse(f"/manage/people?after={person - 1}", 303)


@router.post("/manage/people/{person}/erase")
def erase(request: Request, visitor: PeopleManager, person: RowNumber, confirmation: Text = "") -> Response:
    """Forget a person, whose name has to be typed; the judgments stay under the pseudonym."""

    def change(session: Session) -> None:
        row = _person(session, person)
        if confirmation.strip() != row.name:
            problem, do = "the name does not match", "type the name of the account"
            raise RefusedError(problem, words="confirmation", where="confirmation", do=do)
        erase_person(session, row, by=visitor.person, at=time.time())

    database = database_of(request)
    database.write(change)
    database.forget_traces()
    return RedirectResponse(f"/manage/people?after={person - 1}", 303)


@router.get("/manage/audit")
def audit_page(
    request: Request,
    visitor: Auditor,
    *,
    action: str = "",
    subject: str = "",
    number: str = "",
    person: str = "",
    before: Annotated[int, Query(ge=1, le=LARGEST_NUMBER)] = LARGEST_NUMBER,
) -> Response:
    """Show the audit log, the latest first."""
    wanted = EventSelection(action, subject, _number(number), _number(person))
    return _audit_page(request, visitor, wanted, before=before)


@router.post("/manage/audit/check")
def check_audit_log(request: Request, visitor: Auditor, *, whole: Annotated[bool, Form()] = False) -> Response:
    """Follow the chain of hashes: what was added since the last check that found nothing, or ``whole``."""
    database = database_of(request)
    # Read apart from the note of it: nobody's answer waits for a check of a long log.
    with database.reading() as session:
        check = check_log(session, BEGINNING if whole else last_checked_event(session))
    if check.is_whole:
        database.write(lambda session: record_check(session, check, by=visitor.person, at=time.time()))
    return _audit_page(request, visitor, EventSelection(), check=check)


def _audit_page(
    request: Request,
    visitor: Visitor,
    wanted: EventSelection,
    *,
    before: int = LARGEST_NUMBER,
    check: LogCheck | None = None,
) -> Response:
    with database_of(request).reading() as session:
        listed = event_page(session, wanted, before=before)
        checked = last_checked_event(session)
    return page(request, "audit.html", visitor, listed=listed, wanted=wanted, check=check, checked=checked)


def _person(session: Session, number: int) -> StoredPerson:
    person = session.get(StoredPerson, number)
    if person is None or person.erased_at is not None:
        raise HTTPException(404)
    return person


def _version_of(person: StoredPerson) -> str:
    return form_version(person.role, person.is_active, person.skills)


def _role(text: str) -> Role:
    for role in ROLES:
        if role == text:
            return role
    raise RefusedError(f"{text[:50]!r} is not a role", words="misfit", where="role", allowed=", ".join(ROLES))


def _skills(session: Session, text: str) -> tuple[str, ...]:
    """Return the categories of a list with commas, as items have them. Raises ConfigError for too many."""
    names = tuple(dict.fromkeys(name.strip() for name in re.split("[,，、]", text) if name.strip()))
    if len(names) > _MOST_SKILLS or any(len(name) > 200 for name in names):
        allowed = f"{_MOST_SKILLS} categories of 200 characters"
        problem, values = "too many categories, or one with too long a name", {"limit": f"{_MOST_SKILLS}"}
        raise RefusedError(problem, words="skills", values=values, where="skills", allowed=allowed)
    return tuple(dict.fromkeys(stored_category(session, name) for name in names))


def _number(text: str) -> int | None:
    """Return the number that a field of a filter holds; null for an empty one."""
    text = text.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise RefusedError(f"{text[:50]!r} is not a number", words="digits", where="filter", allowed="digits")
    return int(text)


def _people_page(
    request: Request,
    visitor: PeopleManager,
    *,
    after: int,
    made: StoredPerson | None = None,
    password: str | None = None,
    outdated: int | None = None,
) -> Response:
    with database_of(request).reading() as session:
        listed = people_page(session, after=after)
        tokens = tokens_of(session, [person.id for person in listed.rows], at=time.time())
    values = {"listed": listed, "tokens": tokens, "roles": ROLES, "made": made, "password": password}
    values |= {"outdated": outdated, "versions": {person.id: _version_of(person) for person in listed.rows}}
    return page(request, "people.html", visitor, status=200 if outdated is None else 409, **values)
