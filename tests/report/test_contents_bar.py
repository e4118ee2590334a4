"""The bar of contents in Chromium: one line at every width and in both languages, and every section within reach."""

import pytest

from browser import CHROMIUM
from browser_tab import Tab
from steelyard.report.items import JoinedItems, pack
from steelyard.report.page import Page, Section, render

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.xdist_group("chromium"),
]
ANCHORS = ["accuracy", "rewards", "comparison", "judges", "conflicts", "training", "languages", "leaderboard"]
ANCHORS += ["supervised", "debiased", "prepared_prompts", "sampled", "cleaned", "described", "data_checks", "converted"]
ENTRIES = "[...document.querySelectorAll('#contents a')]"
IS_CUT = (
    "(() => { const e = document.querySelector('#contents .entries'); return e.scrollWidth > e.clientWidth + 1; })()"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Tab(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    sections = tuple(Section(anchor, (), ()) for anchor in ANCHORS)
    page = Page("title", "en", (), False, (), (), sections, pack(JoinedItems({}, []), budget=2**20), (), "1")
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text("<!doctype html>" + render(page), encoding="utf-8")
    return f"file://{path}"


@pytest.mark.parametrize("width", [1280, 800, 390])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_entries_that_do_not_fit_are_in_the_list_that_opens(browser, address, width, language):
    browser.resize(width, 800, is_phone=width < 600)
    browser.open(f"{address}?language={language}")
    browser.wait("!document.querySelector('#contents .further').hidden")
    browser.wait(f"!{IS_CUT}")
    links = ["#summary", *(f"#{anchor}" for anchor in ANCHORS), "#protocol"]
    assert browser.value(f"{ENTRIES}.map((a) => a.getAttribute('href'))") == links
    assert browser.value("document.querySelector('#contents').getBoundingClientRect().height") < 50
    assert browser.value("document.documentElement.scrollWidth") <= width
    browser.click(".further summary")
    shown = "(() => { const r = document.querySelector('.further .list').getBoundingClientRect();"
    assert browser.value(f"{shown} return r.height > 50 && r.left >= 0 && r.right <= innerWidth; }})()")
    browser.click(".further a:last-child")
    browser.wait("location.hash === '#protocol' && !document.querySelector('.further').open")


def test_a_wider_window_takes_entries_back(browser, address):
    browser.resize(390, 800)
    browser.open(address)
    browser.wait("document.querySelectorAll('.further a').length > 8")
    browser.resize(3000, 800)
    browser.wait("document.querySelector('.further').hidden")
    assert browser.value("document.querySelectorAll('.entries a').length") == len(ANCHORS) + 2
    browser.resize(1280, 900)
