"""The order of a whole run's page, and its folds in Chromium: links and print open them, and the page stays short."""

import pytest

from browser import CHROMIUM
from browser_tab import Tab
from report_runs import all_runs
from steelyard.recipes.demo import demo
from steelyard.report.page import render
from steelyard.report.sources import read_sources
from steelyard.views.page import page_of, read_data

OPEN = ["summary", "failures", "accuracy", "losses"]
FOLDED = ["rewards", "conflicts", "training", "items", "protocol"]
TALLEST = 11_000
"""The height of the page of the demo's runs, in pixels, at a width of 1280 and with its folds closed."""


def write_page(runs, path):
    page = page_of(read_data(read_sources(runs)), title=None, language="en", budget=2**20, version="1")
    path.write_text("<!doctype html>" + render(page), encoding="utf-8")
    return f"file://{path}"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return write_page(all_runs(folder, 12), folder / "page.html")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Tab(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


in_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
one_browser = pytest.mark.xdist_group("chromium")


def opened(browser, address):
    browser.open("about:blank")
    browser.open(address)
    browser.wait("document.body.dataset.drawn && document.getElementById('pairs').dataset.drawn")


def is_open(browser, anchor):
    return browser.value(f"document.querySelector('#{anchor} > details.section').open")


@pytest.mark.slow
@in_chromium
@one_browser
def test_the_result_is_open_and_first_and_the_rest_is_folded(browser, address):
    opened(browser, address)
    assert browser.value("[...document.querySelectorAll('main > section')].map((s) => s.id)") == OPEN + FOLDED
    links = browser.value("[...document.querySelectorAll('#contents a')].map((a) => a.getAttribute('href'))")
    assert links == [f"#{anchor}" for anchor in OPEN + FOLDED]
    assert browser.value("[...document.querySelectorAll('section.fold')].map((s) => s.id)") == FOLDED
    assert not any(is_open(browser, anchor) for anchor in FOLDED)
    for width in (1280, 390):
        browser.resize(width, 900, is_phone=width < 600)
        assert browser.value("document.documentElement.scrollWidth") <= width
    browser.resize(1280, 900)


@pytest.mark.slow
@in_chromium
@one_browser
def test_a_link_into_a_fold_opens_it(browser, address):
    for fragment in ("conflicts", "conflicts-1", "protocol"):
        opened(browser, f"{address}#{fragment}")
        anchor = fragment.split("-")[0]
        browser.wait(f"document.querySelector('#{anchor} > details.section').open")
        assert [name for name in FOLDED if is_open(browser, name)] == [anchor]
    opened(browser, address)
    follow = "document.querySelector('#contents a[href=\"#rewards\"]').click()"
    close = "document.querySelector('#rewards > details').open = false"
    for _ in range(2):  # again after it was closed: the address is the same
        browser.value(follow)
        browser.wait("document.querySelector('#rewards > details').open")
        assert browser.value("document.querySelector('#rewards svg').getBoundingClientRect().width") > 200
        browser.value(close)
    browser.value("document.querySelector('#failures button.heat').click()")
    browser.wait("document.querySelector('#items > details').open")


@pytest.mark.slow
@in_chromium
@one_browser
def test_print_shows_the_folds_and_leaves_them_as_they_were(browser, address):
    opened(browser, address)
    browser.value("dispatchEvent(new Event('beforeprint'))")
    assert all(is_open(browser, anchor) for anchor in FOLDED)
    browser.value("dispatchEvent(new Event('afterprint'))")
    assert not any(is_open(browser, anchor) for anchor in FOLDED)


@pytest.mark.slow
@in_chromium
@one_browser
def test_the_page_of_the_demo_stays_short(browser, tmp_path):
    demo(tmp_path / "demo")
    runs = [each.parent for each in sorted((tmp_path / "demo").glob("*/run.json")) if each.parent.name != "report"]
    address = write_page(runs, tmp_path / "page.html")
    for language in ("en", "zh"):
        opened(browser, f"{address}?language={language}")
        assert browser.value("document.documentElement.scrollHeight") <= TALLEST
        browser.resize(390, 900, is_phone=True)
        assert browser.value("document.documentElement.scrollWidth") <= 390
        browser.resize(1280, 900)
