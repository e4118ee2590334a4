"""Every route of the workbench: its permission, a request that does what it is for, and addresses of it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from fastapi.routing import APIRoute

from steelyard.annotation.answers import TaskAnswer
from steelyard.workbench.accounts.people import ROLES
from workbench_site import ABSENT, case_lines, reference_lines

HOLDERS = {
    "annotate": {"annotator"},
    "align": {"annotator"},
    "review as delivery": {"delivery"},
    "review as operations": {"operations"},
    "validate": {"researcher"},
    "adjudicate": {"delivery", "operations", "researcher"},
    "pass on": {"delivery", "operations"},
    "decide on batches": {"operations", "researcher"},
    "see progress": {"delivery", "operations", "researcher", "administrator"},
    "see people": {"delivery", "operations", "researcher", "administrator"},
    "export": {"researcher", "administrator"},
    "manage project": {"administrator"},
    "manage people": {"administrator"},
    "see audit log": {"administrator"},
    "own account": set(ROLES),
}
"""Who has each permission, written a second time by hand."""
OPEN = {("GET", "/login"), ("POST", "/login"), ("GET", "/api/openapi.json"), ("HEAD", "/api/openapi.json")}
OPEN |= {("", "/static"), ("", "/vendored")}
"""What nobody may do, too. The description of the interface has no data, and files of pages have none."""


class Row(NamedTuple):
    """A route: its permission, the status for those who have it, and a request that does what it is for.

    ``sent``: keyword arguments of the request. ``query`` follows the address.
    """

    permission: str
    status: int
    sent: Mapping[str, Any] = MappingProxyType({})
    query: str = ""


def _answer():
    content = TaskAnswer(scores={"A": 5, "B": 3, "C": 1}, ranking=(("A",), ("B",), ("C",)))
    return {"content": msgspec.json.encode(content), "headers": {"content-type": "application/json"}}


def _form():
    return {"data": {"score": ["5", "3", "1"], "place": ["1", "2", "3"], "discard": ["", "", ""]}}


MANAGE, REST = "/manage/projects/{project}", "/api/v1/projects"
ROUTES = {
    ("GET", "/"): Row("own account", 303),
    ("POST", "/logout"): Row("own account", 303),
    ("GET", "/account"): Row("own account", 200),
    ("POST", "/account/language"): Row("own account", 303, {"data": {"language": "zh"}}),
    ("POST", "/account/password"): Row("own account", 303, {"data": {"old": "a long password", "new": "0123456789"}}),
    ("POST", "/account/tokens"): Row("own account", 200, {"data": {"name": "laptop"}}),
    ("POST", "/account/tokens/{number}/revoke"): Row("own account", 303),
    ("GET", "/annotate"): Row("annotate", 200),
    ("GET", "/annotate/tasks"): Row("annotate", 200, query="?project=1"),
    ("GET", "/annotate/progress"): Row("annotate", 200, query="?project=1"),
    ("GET", "/annotate/qualification/tasks"): Row("annotate", 200, query="?project=1"),
    # There is no qualification here: `test_qualification` has one.
    ("POST", "/annotate/qualification/{task}"): Row("annotate", 404, _answer(), query="?project=1"),
    ("POST", "/annotate/{assignment}/draft"): Row("annotate", 200, _answer()),
    ("POST", "/annotate/{assignment}/answer"): Row("annotate", 200, _answer()),
    ("POST", "/annotate/{assignment}/release"): Row("annotate", 200),
    ("POST", "/annotate/give-back"): Row("annotate", 204, {"data": {"assignment": "1", "until": "1"}}),
    ("GET", "/align"): Row("align", 200),
    ("GET", "/align/{item}"): Row("align", 200),
    ("POST", "/align/{item}/remarks"): Row("align", 303, {"data": {"text": "Why?"}}),
    ("POST", "/align/{item}/tasks/{task}"): Row("align", 303, _form()),
    ("POST", "/align/{item}/unresolved"): Row("align", 303, {"data": {"reason": "no way"}}),
    ("GET", "/review"): Row("adjudicate", 200),
    ("GET", "/review/{item}"): Row("adjudicate", 200),
    ("POST", "/review/{item}/decision"): Row("adjudicate", 303, {"data": {"verdict": "reject", "reason": "wrong"}}),
    ("POST", "/review/{item}/remarks"): Row("adjudicate", 303, {"data": {"text": "Why?"}}),
    ("POST", "/review/{item}/tasks/{task}"): Row("adjudicate", 303, _form()),
    ("POST", "/review/{item}/unresolved"): Row("pass on", 303, {"data": {"reason": "no way"}}),
    # Nobody doubts an answer here: `test_doubted_truths` has doubts.
    ("POST", "/review/{item}/truth"): Row("validate", 404, {"data": {"verdict": "accept"}}),
    ("POST", "/review/projects/{project}/batches"): Row(
        "decide on batches", 303, {"data": {"batch": "b0", "verdict": "accept"}}
    ),
    ("GET", "/manage"): Row("manage project", 200),
    ("POST", "/manage/projects"): Row("manage project", 303, {"data": {"name": "Q"}}),
    ("GET", MANAGE): Row("manage project", 200),
    ("POST", f"{MANAGE}/settings"): Row("manage project", 303, {"data": {"seed": "4"}}),
    ("POST", f"{MANAGE}/import"): Row(
        "manage project", 200, {"data": {"batch": "b2"}, "files": {"file": ("x.jsonl", case_lines(2))}}
    ),
    ("GET", f"{MANAGE}/export"): Row("export", 200, query="?evidence=aligned"),
    ("GET", f"{MANAGE}/items"): Row("manage project", 200, query="?state=annotating"),
    ("GET", f"{MANAGE}/guidelines"): Row("manage project", 200),
    ("POST", f"{MANAGE}/guidelines"): Row("manage project", 303, {"data": {"text": "Be exact."}}),
    ("GET", f"{MANAGE}/qualification"): Row("manage project", 200),
    ("POST", f"{MANAGE}/qualification/import"): Row(
        "manage project", 200, {"files": {"file": ("x.jsonl", reference_lines(2))}}
    ),
    ("POST", f"{MANAGE}/qualification/gold"): Row("manage project", 200, {"data": {"number": "3"}}),
    ("POST", f"{MANAGE}/qualification/people/{{person}}"): Row(
        "manage project", 303, {"data": {"decision": "let pass", "reason": "known from another project"}}
    ),
    ("GET", "/manage/people"): Row("manage people", 200),
    ("POST", "/manage/people"): Row("manage people", 200, {"data": {"name": "new", "role": "annotator"}}),
    ("POST", "/manage/people/{person}"): Row("manage people", 303, {"data": {"role": "delivery", "is_active": "true"}}),
    ("POST", "/manage/people/{person}/password"): Row("manage people", 200),
    ("POST", "/manage/people/{person}/tokens/{number}/revoke"): Row("manage people", 303),
    ("POST", "/manage/people/{person}/erase"): Row("manage people", 303, {"data": {"confirmation": "other"}}),
    ("GET", "/manage/audit"): Row("see audit log", 200),
    ("POST", "/manage/audit/check"): Row("see audit log", 200, {"data": {"whole": "true"}}),
    ("GET", "/progress"): Row("see progress", 303),
    ("GET", "/progress/{project}"): Row("see progress", 200),
    ("GET", "/progress/{project}/agreement"): Row("see people", 200),
    ("GET", "/progress/{project}/people"): Row("see people", 200),
    ("GET", "/progress/{project}/disagreement"): Row("see people", 200),
    ("GET", "/progress/{project}/items/{item}"): Row("see people", 200),
    # The project has tasks of another kind: `test_progress_pages` has one of this.
    ("GET", "/progress/{project}/native"): Row("see progress", 404),
    ("GET", f"{REST}/{{project}}/figures/native"): Row("see progress", 404),
    ("GET", f"{REST}/{{project}}/figures/progress"): Row("see progress", 200),
    ("GET", f"{REST}/{{project}}/figures/agreement"): Row("see people", 200),
    ("GET", f"{REST}/{{project}}/figures/people"): Row("see people", 200),
    ("GET", f"{REST}/{{project}}/figures/disagreement"): Row("see people", 200),
    ("GET", "/api"): Row("own account", 200),
    ("GET", REST): Row("see progress", 200),
    ("POST", REST): Row("manage project", 201, {"json": {"name": "R"}}),
    ("GET", f"{REST}/{{project}}"): Row("see progress", 200),
    ("GET", f"{REST}/{{project}}/progress"): Row("see progress", 200),
    ("GET", f"{REST}/{{project}}/items"): Row("see progress", 200),
    ("POST", f"{REST}/{{project}}/import"): Row(
        "manage project", 201, {"content": case_lines(2, first=200)}, query="?batch=b3"
    ),
    ("GET", f"{REST}/{{project}}/qualification"): Row("see people", 200),
    ("POST", f"{REST}/{{project}}/qualification/import"): Row("manage project", 201, {"content": reference_lines(2)}),
    ("POST", f"{REST}/{{project}}/qualification/people/{{person}}"): Row(
        "manage project", 204, {"json": {"decision": "let pass", "reason": "known from another project"}}
    ),
    ("GET", f"{MANAGE}/releases"): Row("export", 200),
    # Nothing is finished here: `test_releases` has a release.
    ("POST", f"{MANAGE}/releases"): Row("export", 400, {"data": {"name": "1.0"}}),
    ("GET", f"{MANAGE}/releases/{{release}}"): Row("export", 404),
    ("GET", f"{REST}/{{project}}/releases"): Row("export", 200),
    ("POST", f"{REST}/{{project}}/releases"): Row("export", 400, {"json": {"name": "1.0"}}),
    ("GET", f"{REST}/{{project}}/releases/{{release}}"): Row("export", 404),
    ("GET", f"{REST}/{{project}}/export"): Row("export", 200),
    ("GET", f"{REST}/{{project}}/answers"): Row("export", 200),
}


def routes_of(routes):
    """The method and path of every route, also of routers inside."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from routes_of(inner.routes)
        elif isinstance(route, APIRoute) or getattr(route, "methods", None):
            yield from ((method, route.path, route) for method in route.methods)
        else:
            # An application of its own, such as a folder of files: nobody is asked who they are.
            yield "", route.path, route


def filled(path, site, role, *, is_foreign):
    """The path with the numbers of the role's own rows, or of rows that are absent or somebody else's."""
    waits = path.endswith(("/unresolved", "/{task}"))
    item, task = site.items.get((role, waits), (ABSENT, ABSENT))
    numbers = {
        "item": item,
        "task": task,
        "project": site.project,
        "assignment": site.assignment,
        "number": site.token_numbers[role],
        "person": site.people["other"],
        "release": ABSENT,
    }
    if path.startswith("/manage/people/"):
        numbers["number"] = site.other_token
    if is_foreign:
        numbers = {
            "item": site.other_item,
            "task": task,
            "project": ABSENT,
            "assignment": site.other_assignment,
            "number": site.other_token,
            "person": site.erased,
            "release": ABSENT,
        }
    return path.format(**numbers)
