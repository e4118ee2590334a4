"""No word of one language in the page of the other: visible texts, those for screen readers, and what scripts draw."""

import ast
import re
from pathlib import Path

import pytest

import steelyard
from browser import CHROMIUM, opened, tree
from page_words import PRODUCTS, page_text, words
from report_runs import CATEGORIES, TEXTS, all_runs
from steelyard.prompts.harmful import HARM_CATEGORIES
from steelyard.prompts.private_data import RULES
from steelyard.report.page import page_strings
from steelyard.report.run_records import rule_word
from steelyard.report.sources import read_sources
from steelyard.translation.screening import LANGUAGE_BOUND_CLASSES
from steelyard.views.page import read_data


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return all_runs(tmp_path_factory.mktemp("runs"), 14)


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


@pytest.mark.slow
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
            if isinstance(node, ast.keyword) and node.arg in ("noted", "dropped") and isinstance(node.value, ast.Dict):
                yield from (key.value for key in node.value.keys if isinstance(key, ast.Constant))
            if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
                continue
            name = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            if name in ("noted", "dropped") and isinstance(node.slice.value, str):
                yield node.slice.value


@pytest.mark.parametrize(
    "rule",
    [
        *(f"private_data: {name}" for name in sorted({rule.name for rule in RULES})),
        *(f"harmful: {name}" for name in (*HARM_CATEGORIES, "other")),
        *(f"harmful by model: {name}" for name in HARM_CATEGORIES),
        *(f"language_bound: {name}" for name in LANGUAGE_BOUND_CLASSES),
        *(f"language_bound by model: {name}" for name in LANGUAGE_BOUND_CLASSES),
    ],
)
def test_every_kind_of_private_data_harm_and_english_is_translated(rule):
    shown = page_strings().translate(rule_word(rule), "zh")
    assert not re.search(r"[A-Za-z]", shown)
    title, found = shown.split("：")
    assert title
    assert found


@pytest.mark.parametrize(
    "rule",
    [
        "answers over the limit, zh",
        "held out: cut answers",
        "held out: pairs of equal tokens",
        "fewer than 2 responses",
        "cases without a supervised judgment",
    ],
)
def test_counts_with_a_part_are_translated_whole(rule):
    assert not re.search(r"[a-z]{3,}", page_strings().translate(rule_word(rule), "zh"))


def test_a_rule_names_a_file_without_its_folder():
    assert "someone" not in rule_word("overlap: /of/someone/bench.jsonl")
    assert "bench.jsonl" in rule_word("overlap: /of/someone/bench.jsonl")


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
