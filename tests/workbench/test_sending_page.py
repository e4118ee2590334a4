"""Forms of alignment in Chromium: a server that is away, a session that ended and two clicks lose nothing."""

import time

import pytest
from sqlalchemy import delete, select

from browser import CHROMIUM
from steelyard.workbench.accounts.people import log_in
from steelyard.workbench.storage.tables import StoredItem, StoredLoginSession, StoredRemark
from workbench_people import answer, make_project, send, take
from workbench_server import PASSWORD, Login

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.xdist_group("chromium"),
]
FIELD = "document.querySelector('textarea[name=text]')"
CLICK = "document.querySelector('form[action$=remarks] button').click()"
NOTE = "document.querySelector('#sending')"


def remarks(database):
    with database.reading() as session:
        return session.scalars(select(StoredRemark.text).order_by(StoredRemark.id)).all()


def test_what_was_typed_stays_until_it_is_stored_once(served, browser):
    database, server = served
    project, _ = make_project(database, num_people=0)
    logins = [Login(database, f"aligning {number}") for number in (1, 2)]
    for login, order in zip(logins, (["r0", "r1", "r2"], ["r2", "r1", "r0"]), strict=True):
        ((number, _),) = take(database, project, login.person)
        send(database, number, answer(None, order))
    with database.reading() as session:
        item = session.scalar(select(StoredItem.id).where(StoredItem.project_id == project))
    browser.set_cookie(server.origin, "steelyard_workbench", logins[0].cookie)
    browser.open(f"{server.origin}/align/{item}")
    browser.value(f"{FIELD}.value = '看规范 — look'")

    server.kill()
    browser.value(CLICK)
    browser.wait(f"!{NOTE}.hidden && {NOTE}.textContent.includes('did not answer')")
    assert browser.value(f"{FIELD}.value") == "看规范 — look"
    server.start()

    def end_sessions(session):
        session.execute(delete(StoredLoginSession).where(StoredLoginSession.person_id == logins[0].person))

    database.write(end_sessions)
    browser.value(CLICK)
    browser.wait(f"{NOTE}.textContent.includes('You are logged out')")
    assert (browser.value(f"{FIELD}.value"), remarks(database)) == ("看规范 — look", [])
    # As in another tab: the session, and the token of forms with it, are new.
    cookie = database.write(lambda session: log_in(session, "aligning 1", PASSWORD, address="test", at=time.time()))
    browser.set_cookie(server.origin, "steelyard_workbench", cookie)
    browser.value(f"window.isLeft = true; {CLICK}; {CLICK}")
    browser.wait(f"!window.isLeft && document.readyState === 'complete' && {NOTE}")
    assert remarks(database) == ["看规范 — look"]
    assert "看规范 — look" in browser.value("document.querySelector('.remark').textContent")
