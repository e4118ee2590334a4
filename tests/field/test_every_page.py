"""Every page of the demonstration's workbench in Chromium: both languages, light and dark, on a desk and on a phone.

Nothing is wider than the screen, axe finds nothing serious, and what a finger presses is 44 pixels high.
"""

import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import update

from browser import CHROMIUM
from browser_tab import Tab
from steelyard.workbench.accounts.people import log_in
from steelyard.workbench.accounts.permissions import COOKIE
from steelyard.workbench.demo import open_demo
from steelyard.workbench.simulated_projects import PASSWORD
from steelyard.workbench.storage.tables import StoredPerson
from workbench_server import ServedWorkbench

pytestmark = [pytest.mark.field, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")]
AXE = Path(__file__).parents[1] / "golden" / "axe" / "axe.min.js"
MANAGED = "/manage/projects/1"
PAGES = {
    "annotator": ["/annotate", *(f"/annotate?project={number}" for number in range(1, 8)), "/align", "/account"],
    "researcher": ["/review", "/nothing", "/manage"],
    "administrator": [
        *("/manage", MANAGED, "/manage/people", "/manage/audit", "/api", "/progress"),
        *(f"{MANAGED}/{name}" for name in ("items", "guidelines", "guidelines?version=1", "qualification", "releases")),
        *(f"/progress/1{name}" for name in ("", "/agreement", "/people", "/disagreement", "/items/1")),
        *(f"/progress/3{name}" for name in ("", "/native")),
    ],
}
"""The pages by role. Lists of items lead to one more each: the first that waits."""
QUEUES = {"annotator": "/align", "researcher": "/review"}
IS_LOADED = "document.querySelector('#annotator')?.dataset.state !== 'loading'"
SERIOUS = (
    "axe.run(document).then((r) => r.violations.filter((v) => ['serious', 'critical'].includes(v.impact))"
    ".map((v) => v.id + ': ' + v.nodes.map((n) => n.html).slice(0, 3).join(' ')))"
)
PRESSED = "button, select, summary, input:not([type=hidden], [type=checkbox]), .top nav a, .tabs a, .links a, td > a"
SMALL = (
    f"[...document.querySelectorAll('{PRESSED}')].filter((each) => each.checkVisibility())"
    ".filter((each) => each.getBoundingClientRect().height < 43.5).map((each) => each.outerHTML.slice(0, 200))"
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The database and the server of a demonstration."""
    folder = tmp_path_factory.mktemp("demo")
    database = open_demo(folder, seed=0)
    server = ServedWorkbench(f"sqlite:///{folder / 'workbench.db'}")
    yield database, server
    server.kill()
    database.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Tab(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


def cookie_of(database, name, language):
    def enter(session):
        session.execute(update(StoredPerson).where(StoredPerson.name == name).values(language=language))
        return log_in(session, name, PASSWORD, address="test", at=time.time())

    return database.write(enter)


def addresses(server, role, cookie):
    """The pages of a role, and the first item of its queue."""
    yield from PAGES[role]
    if role in QUEUES:
        _, text = server.request("GET", QUEUES[role], SimpleNamespace(cookie=cookie, token=""))
        yield re.search(rf'"({QUEUES[role]}/\d+)"', text)[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("role", PAGES)
def test_every_page_fits_and_keeps_nobody_out(demo, browser, role, language, scheme):
    database, server = demo
    cookie = cookie_of(database, role, language)
    browser.set_cookie(server.origin, COOKIE, cookie)
    browser.prefer(scheme)
    found = {}
    for address in addresses(server, role, cookie):
        for width in (1280, 390):
            browser.resize(width, 900, is_phone=width < 500)
            browser.open(server.origin + address)
            browser.wait(IS_LOADED)
            browser.value(AXE.read_text(encoding="utf-8") + "; 1")
            browser.value("Promise.allSettled(document.getAnimations().map((each) => each.finished)).then(() => 1)")
            faults = browser.value(SERIOUS) + (browser.value(SMALL) if width < 500 else [])
            if browser.value("document.documentElement.scrollWidth") > width:
                faults.append("wider than the screen")
            if faults:
                found[address, width] = faults
    assert found == {}
