"""Every route, for nobody, every role, a token and a revoked one, on objects that are theirs and that are not.

`ROUTES` is the whole list: a route of the application without a row there fails, and a row without a route does.
"""

import pytest
from fastapi.routing import APIRoute

from each_value import each
from steelyard.workbench.accounts.people import ROLES
from workbench_routes import HOLDERS, OPEN, ROUTES, filled, routes_of


def with_form_token(sent, token, *, is_form):
    """The arguments of a request with the session's token, in the form or in the header."""
    if is_form:
        return {**sent, "data": sent.get("data", {}) | {"csrf": token}}
    return {**sent, "headers": sent.get("headers", {}) | {"x-csrf-token": token}}


def test_every_route_has_a_row_and_every_row_a_route(visit):
    routes = {(method, path) for method, path, _ in routes_of(visit.app.routes)}
    assert routes - set(ROUTES) - OPEN == set(), "add a row to ROUTES"
    assert set(ROUTES) - routes == set(), "a row of a route that does not exist"


def test_every_route_names_the_permission_of_its_row(visit):
    def permissions(dependant):
        named = getattr(dependant.call, "permission", None)
        return ({named} if named else set()).union(*map(permissions, dependant.dependencies))

    for method, path, route in routes_of(visit.app.routes):
        expected = set() if (method, path) in OPEN else {ROUTES[method, path].permission}
        if isinstance(route, APIRoute):
            assert permissions(route.dependant) == expected, path
        else:
            # Files that are mounted have no function of their own.
            function = getattr(route, "endpoint", None)
            assert {getattr(function, "permission", None)} - {None} == expected, path


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=lambda part: part.strip("/") or "home")
def test_who_may_do_it_and_on_what(visit, method, path):
    row = ROUTES[method, path]
    site, holders = visit.site, HOLDERS[row.permission]
    is_data, is_change = path.startswith("/api/"), method != "GET"
    is_form = not {"content", "json"} & row.sent.keys()

    def statuses(client, role, *, is_foreign=False, token=None, sent=row.sent):
        sent = with_form_token(sent, token, is_form=is_form) if token and is_change else sent
        address = filled(path, site, role, is_foreign=is_foreign) + row.query
        return client.request(method, address, **sent).status_code

    # Nobody, and a token that was revoked.
    for client in (visit.browser(), visit.program(site.revoked), visit.program("sty_unknown")):
        assert statuses(client, "administrator") == (401 if is_data else 303)
    for role in ROLES:
        token = visit.csrf(role)
        if role not in holders:
            assert statuses(visit.browser(role), role, token=token) == 403, role
            assert statuses(visit.browser(role), role, token=token, is_foreign=True) == 403, role
            assert statuses(visit.program(site.tokens[role]), role) == 403, role
            continue
        # A change without the session's token, or with that of another session, is a forged one.
        if is_change:
            assert statuses(visit.browser(role), role) == 403, role
            stolen = visit.csrf("other")
            assert statuses(visit.browser(role), role, token=stolen) == 403, role
        if "{" in path:
            assert statuses(visit.browser(role), role, token=token, is_foreign=True) == 404, role
            # A token opens no page.
            is_opened = path.startswith(("/api/", "/annotate/"))
            assert statuses(visit.program(site.tokens[role]), role, is_foreign=True) == (404 if is_opened else 403), (
                role
            )
        assert statuses(visit.browser(role), role, token=token) == row.status, role


@each(("method", "path"), [key for key in ROUTES if "{" in key[1]])
@each("number", ["0", "-1", str(2**63), "9" * 400, "1.5", "%00", "x"])
def test_a_number_that_is_not_a_row_is_refused_in_words(visit, method, path, number):
    row = ROUTES[method, path]
    role = next(iter(HOLDERS[row.permission]))
    name = path.partition("{")[2].partition("}")[0]
    sent = with_form_token(row.sent, visit.csrf(role), is_form=not {"content", "json"} & row.sent.keys())
    sent = row.sent if method == "GET" else sent
    answer = visit.browser(role).request(method, path.replace(f"{{{name}}}", number) + row.query, **sent)
    assert answer.status_code in (400, 404, 405, 422)
    assert "Traceback" not in answer.text
