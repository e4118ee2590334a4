"""Forms in Chromium: a server that is away, a session that ended and two clicks lose nothing."""

import json
import time

import pytest
from sqlalchemy import delete, select

from browser import CHROMIUM
from steelyard.workbench.accounts.people import log_in
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.storage.tables import StoredGuideline, StoredItem, StoredLoginSession, StoredRemark
from workbench_people import answer, make_project, send, take
from workbench_server import PASSWORD, Login
from workbench_site import case_lines

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


def new_project(database, name):
    """Make a project without items; returns its number."""
    return database.write(lambda session: add_project(session, name, ProjectSettings(), by=None, at=time.time()).id)


def test_a_guideline_outlives_a_session_and_a_server_that_end(served, browser):
    database, server = served
    project = new_project(database, "guidelines")
    login = Login(database, "who writes", "administrator")
    browser.set_cookie(server.origin, "steelyard_workbench", login.cookie)
    browser.open(f"{server.origin}/manage/projects/{project}/guidelines")
    click = "document.querySelector('button[value={}]').click()"
    browser.value(f"{FIELD}.value = '准确 — exact'")

    def end_sessions(session):
        session.execute(delete(StoredLoginSession).where(StoredLoginSession.person_id == login.person))

    database.write(end_sessions)
    for step in ("save", "preview"):
        browser.value(f"{NOTE}.hidden = true; {click.format(step)}")
        browser.wait(f"!{NOTE}.hidden && {NOTE}.textContent.includes('You are logged out')")
        assert browser.value(f"{FIELD}.value") == "准确 — exact"
    cookie = database.write(lambda session: log_in(session, "who writes", PASSWORD, address="test", at=time.time()))
    browser.set_cookie(server.origin, "steelyard_workbench", cookie)
    server.kill()
    browser.value(click.format("preview"))
    browser.wait(f"{NOTE}.textContent.includes('did not answer')")
    server.start()
    browser.value(click.format("preview"))
    browser.wait("document.querySelector('section[lang=en] .text')?.textContent.includes('准确 — exact')")
    browser.value(f"window.isLeft = true; {click.format('save')}; {click.format('save')}")
    browser.wait(
        "!window.isLeft && document.readyState === 'complete' && document.querySelector('a[href^=\"?version\"]')"
    )
    with database.reading() as session:
        texts = session.scalars(select(StoredGuideline.text).where(StoredGuideline.project_id == project)).all()
    assert texts == ["准确 — exact"]


def test_settings_outlive_a_session_that_ended_and_a_file_is_sent_as_a_whole(served, browser, tmp_path):
    database, server = served
    project = new_project(database, "settings")
    login = Login(database, "who sets", "administrator")
    address = f"{server.origin}/manage/projects/{project}"
    browser.set_cookie(server.origin, "steelyard_workbench", login.cookie)
    browser.open(address)
    seed = "document.querySelector('input[name=seed]')"
    send_form = "document.querySelector('form[action$={}]').requestSubmit()"
    browser.disconnect(True)
    browser.value(f"{seed}.value = '17'; {send_form.format('settings')}")
    browser.wait(f"!{NOTE}.hidden && {NOTE}.textContent.includes('did not answer')")
    browser.disconnect(False)
    browser.value(f"window.isLeft = true; {send_form.format('settings')}")
    browser.wait(f"!window.isLeft && {seed}?.value === '17'")
    lines = case_lines(2).decode()
    browser.value(f"""(() => {{
      const files = new DataTransfer();
      files.items.add(new File([{json.dumps(lines)}], 'new.jsonl'));
      document.querySelector('input[type=file]').files = files.files;
      document.querySelector('input[name=batch]').value = 'b2';
      window.isLeft = true;
      {send_form.format("import")};
    }})()""")
    browser.wait("!window.isLeft && document.querySelector('[role=status]')")
    with database.reading() as session:
        assert session.scalars(select(StoredItem.prompt).where(StoredItem.batch == "b2")).all() == ["q100", "q101"]
