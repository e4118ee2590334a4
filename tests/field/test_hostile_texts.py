"""Texts that try to run a script, in every field that a page shows, on every page of every role in a real Chromium."""

import msgspec
import pytest
from sqlalchemy import select

from browser import CHROMIUM
from browser_tab import Tab
from steelyard.workbench.accounts.permissions import COOKIE
from steelyard.workbench.pipeline.projects import case_of
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredApiToken,
    StoredGuideline,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredRemark,
    StoredReview,
    StoredTask,
)
from workbench_people import NOON
from workbench_server import ServedWorkbench
from workbench_site import make_site

pytestmark = [pytest.mark.field, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]
PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><img src=x onerror=alert(1)>',
    "'\"--></style></script></title></textarea><script>alert(1)</script>",
    "<svg/onload=alert(1)>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<details open ontoggle=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<object data=javascript:alert(1)></object>",
    "<base href=//elsewhere.example/>",
    "<meta http-equiv=refresh content='0;url=//elsewhere.example/'>",
    "<link rel=stylesheet href=//elsewhere.example/x.css>",
    "<style>@import '//elsewhere.example/x.css';</style><p style=background:url(//elsewhere.example/x)>",
    "<form action=//elsewhere.example/><button autofocus>log in</button></form>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "&lt;img src=x onerror=alert(1)&gt; &#60;script&#62;alert(1)&#60;/script&#62;",
    "[x](javascript:alert(1)) [x](JaVaScRiPt&#58;alert(1)) [x](java\tscript:alert(1)) <javascript:alert(1)>",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==) [x](vbscript:x)",
    "[x][y]\n\n[y]: javascript:alert(1)",
    '![x](https://elsewhere.example/x.png) ![x](x" onerror="alert(1)) ![x](javascript:alert(1))',
    "$\\href{javascript:alert(1)}{x}$ $\\url{javascript:alert(1)}$ $\\includegraphics{https://elsewhere.example/x}$",
    "$\\htmlStyle{background:url(//elsewhere.example)}{x}$ $\\htmlData{x=<img src=x onerror=alert(1)>}{x}$",
    "$$\\text{<img src=x onerror=alert(1)>}$$ \\(<script>alert(1)</script>\\)",
    "```<img src=x onerror=alert(1)>\n<script>alert(1)</script>\n```\n`<script>alert(1)</script>`",
    "{{7*7}} {% raw %} ${7*7} {0.__class__} {name} %(name)s #{7*7}",
    "<a id=csrf-token name=csrf-token href=x>csrf</a><form id=annotator name=dialog><input name=task></form>",
]
LONG = "\n\n".join(PAYLOADS)
SHORT = '</script>"><img src=x onerror=alert(1)><script>alert(1)</script>{{7*7}}{name}'
FINDINGS = """[...document.querySelectorAll("*")].flatMap((element) => {
  const found = [];
  if (["IFRAME", "OBJECT", "EMBED", "BASE"].includes(element.tagName)) found.push(element.outerHTML);
  for (const {name, value} of element.attributes) {
    if (/^on|^srcdoc$/.test(name)) found.push(`${element.tagName} ${name}=${value}`);
    if (!["href", "src", "action", "formaction", "data", "xlink:href"].includes(name)) continue;
    const to = new URL(value, location.href);
    const isLink = element.tagName === "A" && ["https:", "http:", "mailto:"].includes(to.protocol);
    if (to.origin !== location.origin && !isLink) found.push(`${element.tagName} ${name}=${value}`);
  }
  return found;
})"""
"""Elements and attributes that no page has: handlers, frames, and addresses of elsewhere that are not links."""
MANAGE = "/manage/projects/1"
PAGES = {
    "administrator": [
        *("/manage", "/manage/people", "/manage/audit", "/account", "/api", "/progress/1"),
        *(MANAGE, *(f"{MANAGE}/{part}" for part in ("items", "guidelines?version=1", "qualification", "releases"))),
    ],
    "researcher": [
        *("/review", "/progress/1", "/progress/1/agreement", "/progress/1/people", "/progress/1/disagreement"),
    ],
    "annotator": ["/annotate?project=1", "/align", "/account"],
    "delivery": ["/review"],
    "operations": ["/review"],
}


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory):
    """A served workbench in which every text of a person, a model or a file is hostile; what is in it."""
    path = tmp_path_factory.mktemp("site") / "site.db"
    site = make_site(f"sqlite:///{path}")
    database = Database(f"sqlite:///{path}")
    database.write(spoil)
    with database.reading() as session:
        numbers = session.scalars(select(StoredItem.id).order_by(StoredItem.id)).all()
    database.close()
    server = ServedWorkbench(f"sqlite:///{path}")
    yield server, site, numbers
    server.kill()


def spoil(session):
    """Put hostile texts past all checks: as earlier versions or files might have brought them in."""
    for row in session.scalars(select(StoredPerson)):
        row.display_name, row.skills = f"{SHORT}{row.id}", [SHORT]
    for row in session.scalars(select(StoredApiToken)):
        row.name = SHORT
    project = session.get_one(StoredProject, 1)
    project.name = SHORT
    project.settings = {**project.settings, "discard_reasons": ["garbled", SHORT], "currency": SHORT}
    for item in session.scalars(select(StoredItem)):
        case = case_of(item)
        turns = tuple(msgspec.structs.replace(turn, content=LONG) for turn in case.prompt.messages)
        prompt = msgspec.structs.replace(case.prompt, messages=turns)
        responses = tuple(msgspec.structs.replace(each, text=LONG, author=SHORT) for each in case.responses)
        case = msgspec.structs.replace(case, prompt=prompt, responses=responses)
        item.case_json = msgspec.json.encode(case).decode()
        item.prompt, item.batch, item.category, item.language = f"{SHORT}{item.id}", SHORT, SHORT, SHORT[:40]
        session.add(StoredRemark(item_id=item.id, person_id=1, text=LONG, at=NOON))
    for task in session.scalars(select(StoredTask)):
        task.category = SHORT
    for answer in session.scalars(select(StoredAnswer)):
        marks = {response: [[0, 5, SHORT, LONG]] for response in answer.content.get("scores") or ()}
        answer.content = {**answer.content, "remark": LONG, "spans": marks}
    for review in session.scalars(select(StoredReview)):
        review.reason, review.decision, review.person_id, review.at = LONG, "accepted", 3, NOON
    for language in ("en", "zh"):
        for category in ("", SHORT):
            guideline = StoredGuideline(project_id=1, category=category, language=language, version=1, text=LONG)
            guideline.person_id, guideline.at = 1, NOON
            session.add(guideline)
    record(session, AuditEvent(SHORT[:60], SHORT[:30], 1, 1, {SHORT: LONG}), at=NOON)


def addresses(site, role, numbers):
    items = {site.items[key][0] for key in ((role, True), (role, False)) if key in site.items}
    form = "align" if role == "annotator" else "review"
    read = numbers if role == "researcher" else ()
    return [
        *PAGES[role],
        *(f"/progress/1/items/{item}" for item in read),
        *(f"/{form}/{item}" for item in sorted(items) if role not in ("administrator",)),
    ]


@pytest.mark.parametrize("role", PAGES)
def test_no_page_runs_or_loads_what_a_text_says(spoiled, tmp_path, role):
    server, site, numbers = spoiled
    with Tab(tmp_path / "profile") as tab:
        tab.set_cookie(server.origin, COOKIE, site.cookies[role])
        for path in addresses(site, role, numbers):
            tab.open(server.origin + path)
            if path.startswith("/annotate"):
                tab.wait("document.querySelector('#task').textContent.includes('alert(1)')")
                tab.press("i")
                tab.wait("document.querySelector('#guideline-text').textContent.includes('alert(1)')")
            # Every fold is opened; what a script would do had its time by then.
            tab.value("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            tab.value("new Promise((done) => setTimeout(done, 100))")
            assert tab.value("location.pathname") == path.partition("?")[0]
            assert tab.complaints == [], path
            assert tab.value(FINDINGS) == [], path
            assert tab.value("typeof document.querySelector('meta[name=csrf-token]')?.content") == "string"


def test_what_would_run_is_heard(spoiled, tmp_path):
    """The checks above are worth something: one handler in a page is found, and refused by its policy."""
    server, site, _ = spoiled
    with Tab(tmp_path / "profile") as tab:
        tab.set_cookie(server.origin, COOKIE, site.cookies["administrator"])
        tab.open(f"{server.origin}/account")
        tab.value("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=alert(1)>')")
        tab.wait("true")
        tab.value("new Promise((done) => setTimeout(done, 300))")
        assert any("Content Security Policy" in each for each in tab.complaints)
        assert tab.value(FINDINGS) == ["IMG onerror=alert(1)"]
        tab.value("alert(2)")
        assert "a page opened a dialog: 2" in tab.complaints
