"""No word of one language in the page of the other: visible texts, those for screen readers, and what scripts draw."""

import ast
import re
from pathlib import Path

import pytest

import steelyard
from browser import CHROMIUM, opened, tree
from report_runs import CATEGORIES, TEXTS, all_runs
from steelyard.report.contents import page_of, read_data
from steelyard.report.page import page_strings, render
from steelyard.report.run_records import rule_word
from steelyard.report.sources import read_sources

PRODUCTS = {
    "Steelyard",
    "SHA",
    "SVG",
    "PNG",
    "CSV",
    "EN",
    "Best",
    "of",
    "n",
    "gram",
    "bootstrap",
    "Kappa",
    "kappa",
    "Brier",
}
PRODUCTS |= {
    "Kendall",
    "Bradley",
    "Terry",
    "Holm",
    "micro",
    "LLM",
    "Elo",
    "τ",
    "tau",
    "p",
    "N",
    "A",
    "B",
    "C",
    "D",
    "E",
}
PRODUCTS |= {"Esc", "evaluate", "resolve"}
"""Names of products, formats, statistics, keys and verbs that both languages write alike."""
SILENT = {"script", "style", "noscript", "code", "pre", "annotation", "option"}
DATA = {"text", "preview", "id", "run", "hand", "where", "author"}
"""Classes of texts of the user, and of records of runs, whose settings, files and versions keep their names."""
SPOKEN = ("title", "aria-label", "placeholder", "alt")


def words(element, language):
    """Yield every text and spoken attribute that a reader of this language gets."""
    for child in element.children:
        if isinstance(child, str):
            yield child
            continue
        classes = set(child.classes)
        hidden = "t" in classes and child.attributes.get("lang") != language
        if hidden or child.tag in {"script", "style", "noscript", "code", "pre", "annotation", "option"}:
            continue
        if classes & {"text", "preview", "id", "run", "hand", "where", "author"} or child.attributes.get(
            "data-language"
        ):
            continue
        yield from (child.attributes[name] for name in SPOKEN if child.attributes.get(name))
        yield from words(child, language)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return all_runs(tmp_path_factory.mktemp("runs"), 14)


def page_text(runs, language):
    data = read_data(read_sources(runs))
    return "<!doctype html>" + render(page_of(data, title=None, language=language, budget=2**22, version="1"))


@pytest.fixture(scope="module")
def names(runs):
    """The words of the data: names of runs, models, judges and categories."""
    data = read_data(read_sources(runs))
    known = {*data.items, *CATEGORIES.values(), *CATEGORIES, *TEXTS, *(source.name for source in data.sources)}
    for cases in data.cases.values():
        for case in cases.cases:
            known |= {judgment.judge for judgment in case.judgments} | set(case.prompt.category)
            known |= {judgment.reason or "" for judgment in case.judgments}
            known |= {response.author or "" for response in case.responses} | {case.prompt.source or ""}
    return {part for name in known for part in re.findall(r"[A-Za-z]+|[\u4e00-\u9fff]+", name)}


def test_the_chinese_page_has_no_english(runs, names):
    body = tree(page_text(runs, "zh")).all("body")[0]
    foreign = {
        word for text in words(body, "zh") for word in re.findall(r"[A-Za-z]{2,}", text) if word not in names | PRODUCTS
    }
    assert foreign == set()


def test_the_english_page_has_no_chinese(runs, names):
    body = tree(page_text(runs, "en")).all("body")[0]
    foreign = {word for text in words(body, "en") for word in re.findall(r"[\u4e00-\u9fff]+", text)}
    assert foreign - names == set()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("language", ["zh", "en"])
def test_what_scripts_draw_is_in_the_language_of_the_reader(runs, names, tmp_path, language):
    """The page is written in the other language and switched: every text follows, also those that are only spoken."""
    other = {"zh": "en", "en": "zh"}[language]
    (tmp_path / "page.html").write_text(page_text(runs, other), encoding="utf-8")
    page = opened(f"file://{tmp_path}/page.html?language={language}#item=p1", tmp_path / "profile")
    (body,) = page.document.all("body")
    pattern = {"zh": r"[A-Za-z]{2,}", "en": r"[\u4e00-\u9fff]+"}[language]
    found = {word for text in words(body, language) for word in re.findall(pattern, text)}
    assert found - names - PRODUCTS == set()
    assert body.all("svg", role="img")


def counted_names():
    """Yield the names under which the package counts what it dropped or noted."""
    for path in Path(steelyard.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
                continue
            name = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            if name in ("noted", "dropped") and isinstance(node.slice.value, str):
                yield node.slice.value


def test_every_count_of_a_run_is_translated():
    strings = page_strings()
    counted = set(counted_names())
    assert len(counted) > 30
    untranslated = {
        name
        for name in counted
        if not re.search(r"[\u4e00-\u9fff]", strings.translate(rule_word(name), "zh"))
        or re.search(r"[a-z]{3,} [a-z]{3,}", strings.translate(rule_word(name), "zh"))
    }
    assert untranslated == set()
