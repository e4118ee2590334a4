"""Tokens of the REST interface: what each scope opens, and how a token ends."""

import re
import time

import pytest

from steelyard.workbench.accounts.api_tokens import SCOPES, issue_token
from steelyard.workbench.storage.tables import StoredPerson
from workbench_routes import HOLDERS, ROUTES, filled
from workbench_site import PASSWORD

PROJECTS = "/api/v1/projects"


def make_token(visit, name, scope, *, at=None, days=90):
    """Return a program with a new token of a person."""
    number = visit.site.people[name]
    return visit.program(
        visit.database.write(
            lambda session: issue_token(
                session, session.get_one(StoredPerson, number), "t", at=at or time.time(), scope=scope, days=days
            )
        )
    )


def send_form(visit, path, **form):
    """Send a form as the administrator does."""
    sent = visit.browser("administrator").post(path, data=form | {"csrf": visit.csrf("administrator")})
    assert sent.status_code < 400, sent.text
    return sent


@pytest.mark.parametrize("act", ["reset", "own", "close", "close and open", "role", "erase", "revoke"])
def test_a_token_ends_with_the_password_and_the_account(visit, act):
    person = f"/manage/people/{visit.site.people['researcher']}"
    program = visit.program(visit.site.tokens["researcher"])
    assert program.get(PROJECTS).status_code == 200
    if act == "own":
        form = {"old": PASSWORD, "new": "another password", "csrf": visit.csrf("researcher")}
        assert visit.browser("researcher").post("/account/password", data=form).status_code == 303
    elif act == "reset":
        send_form(visit, f"{person}/password")
    elif act == "erase":
        send_form(visit, f"{person}/erase", confirmation="researcher")
    elif act == "revoke":
        send_form(visit, f"{person}/tokens/{visit.site.token_numbers['researcher']}/revoke")
    elif act == "role":
        send_form(visit, person, role="operations", is_active="true")
        send_form(visit, person, role="researcher", is_active="true")
    else:
        send_form(visit, person, role="researcher")
        if act == "close and open":
            send_form(visit, person, role="researcher", is_active="true")
    assert program.get(PROJECTS).status_code == 401


def test_a_change_of_skills_leaves_tokens(visit):
    send_form(visit, f"/manage/people/{visit.site.people['researcher']}", role="researcher", is_active="1", skills="a")
    assert visit.program(visit.site.tokens["researcher"]).get(PROJECTS).status_code == 200


def test_a_token_ends_by_itself(visit):
    day = 24 * 3600
    assert make_token(visit, "researcher", "read", at=time.time() - 6 * day, days=7).get(PROJECTS).status_code == 200
    assert make_token(visit, "researcher", "read", at=time.time() - 8 * day, days=7).get(PROJECTS).status_code == 401


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=lambda part: part.strip("/") or "home")
def test_no_token_opens_a_page_or_more_than_its_scope(visit, method, path):
    row = ROUTES[method, path]
    role = sorted(HOLDERS[row.permission])[0]
    is_read = path.startswith("/api/") and method == "GET"
    is_task = path.startswith("/annotate/")
    opened = {"read": is_read, "annotate": is_task or is_read, "administer": path.startswith("/api/") or is_task}
    for scope in SCOPES:
        address = filled(path, visit.site, role, is_foreign=False) + row.query
        status = make_token(visit, role, scope).request(method, address, **row.sent).status_code
        assert (status != 403) == opened[scope], (scope, status)


def test_the_page_makes_tokens_with_a_scope_and_an_end(visit):
    browser, csrf = visit.browser("researcher"), visit.csrf("researcher")
    made = browser.post("/account/tokens", data={"name": "laptop", "scope": "read", "days": "7", "csrf": csrf})
    program = visit.program(re.search(r"<code>(sty_[\w-]+)</code>", made.text)[1])
    assert program.get(PROJECTS).status_code == 200
    assert program.post(f"{PROJECTS}/{visit.site.project}/releases", json={"name": "1"}).status_code == 403
    for wrong in ({"scope": "all"}, {"days": "0"}, {"days": "366"}, {"days": "x"}):
        sent = browser.post("/account/tokens", data={"name": "n", "scope": "read", "days": "7", "csrf": csrf, **wrong})
        assert sent.status_code in (400, 422), wrong
    listed = visit.browser("administrator").get("/manage/people").text
    assert "laptop" in listed
    assert "valid until" in listed
