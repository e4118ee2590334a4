"""The taxonomy: names in both languages, criteria, the categories of published sets, and a user's own file."""

import re
import tomllib
from pathlib import Path

import pytest

from steelyard.core.errors import ConfigError
from steelyard.prompts.taxonomy import GENERAL, categorise, parse_taxonomy, read_data, taxonomy

TREE = taxonomy()
SOURCES = read_data("prompt_sources.toml")
OWN = """
[categories.cooking]
en = "Cooking"
zh = "烹饪"
criteria = "knowledge"

[categories.cooking.below.soups]
en = "Soups"
zh = "汤"

[categories.cooking.below.soups.below]
cold = { en = "Cold soups", zh = "冷汤" }
"""
PAGES = [Path(__file__).parents[2] / "docs" / name for name in ("taxonomy.md", "taxonomy.zh.md")]


def parse(text):
    return parse_taxonomy(tomllib.loads(text), where="mine.toml")


def test_there_are_eight_main_categories_and_dozens_below_them():
    assert list(TREE.categories) == [
        "language", "knowledge", "understanding", "reasoning", "mathematics", "code", "safety", "complex_instructions",
    ]  # fmt: skip
    assert len(list(TREE.paths())) == 8 + 82
    assert set(TREE.dimensions) == {"difficulty", "scenario"}


def test_every_category_is_found_by_its_path_and_named_in_chinese():
    for tiers in TREE.paths():
        assert TREE.tiers_of("/".join(tiers)) == tiers
        assert len(TREE.names(tiers, "zh")) == len(tiers)
        assert re.search(r"[一-鿿]", TREE.names(tiers, "zh")[-1])
        assert not re.search(r"[一-鿿]", TREE.names(tiers, "en")[-1])
    assert TREE.names(("code", "nothing"), "zh") == ("代码", "nothing")


@pytest.mark.parametrize(
    ("name", "tiers"),
    [
        ("Mathematics", ("mathematics",)),
        ("word-problems", ("mathematics", "word_problems")),
        ("应用题", ("mathematics", "word_problems")),
        ("Code Generation", ("code", "code_generation")),
        ("复杂指令", ("complex_instructions",)),
        ("nothing of this", None),
        ("", None),
    ],
)
def test_a_name_in_either_language_has_its_tiers(name, tiers):
    assert TREE.tiers_of(name) == tiers


def test_every_category_is_judged_by_the_criteria_of_its_main_category():
    for tiers in TREE.paths():
        criteria = TREE.criteria_of(tiers)
        assert criteria == TREE.categories[tiers[0]].criteria
        assert TREE.criteria_named(tiers, None) == criteria
        assert TREE.criteria_named(TREE.names(tiers, "en"), None) == criteria
        assert TREE.criteria_named(TREE.names(tiers, "zh"), None) == criteria
    assert TREE.criteria_named(("nobody knows",), None) == GENERAL


@pytest.mark.parametrize("source", SOURCES)
def test_every_mapped_category_exists(source):
    for path, target in SOURCES[source]["categories"].items():
        assert TREE.find(target.split("/")) is not None, (path, target)


@pytest.mark.parametrize(
    ("source", "category", "tiers", "is_known"),
    [
        ("alignbench", ("专业能力", "音乐"), ("knowledge", "arts"), True),
        ("alignbench", ("专业能力", "手艺"), ("knowledge",), True),
        ("flames", ("Legality", "Law violation"), ("safety", "law_violation"), True),
        ("flames", ("New", "dimension"), ("safety",), True),
        ("gaokao_bench", ("History_MCQs",), ("knowledge", "history"), True),
        ("humaneval_xl", ("python",), ("code", "code_completion"), True),
        ("mathoctopus", (), ("mathematics", "word_problems"), True),
        ("coig_cqia", ("生成", "标题"), ("生成", "标题"), False),
        ("coig_cqia", ("生成", "翻译"), ("language", "translation"), True),
        ("no such set", ("Code",), ("code",), True),
        ("no such set", (), (), False),
    ],
)
def test_a_source_category_is_mapped_or_stays_as_it_is(source, category, tiers, is_known):
    assert categorise(source, category) == (tiers, is_known)


def test_a_taxonomy_of_ones_own_has_the_criteria_of_the_package():
    tree = parse(OWN)
    assert tree.tiers_of("冷汤") == ("cooking", "soups", "cold")
    assert tree.criteria_of(("cooking", "soups", "cold")) == "knowledge"
    assert tree.criteria_named(("math-prm",), None) == "reasoning"
    assert categorise("alignbench", ("专业能力", "音乐"), tree) == (("专业能力", "音乐"), False)
    assert categorise("alignbench", ("美食", "汤"), tree) == (("cooking", "soups"), True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not a taxonomy"),
        ("[categories]", "without categories"),
        (OWN.replace('zh = "烹饪"\n', ""), "not a taxonomy"),
        (OWN.replace("[categories.cooking]", "colour = 1\n[categories.cooking]", 1), "not a taxonomy"),
        (OWN.replace('"knowledge"', '"knowlege"'), "did you mean 'knowledge'"),
        (OWN.replace("cold =", "Cold =", 1), "'Cold' is not a key"),
        (OWN + 'iced = { en = "Cold-soups", zh = "冰汤" }\n', "two categories are named 'cold soups'"),
        (OWN + '[categories.kitchen]\nen = "Kitchen"\nzh = "烹饪"\n', "two categories are named '烹饪'"),
    ],
)
def test_a_broken_taxonomy_is_refused_by_the_name_of_its_file(text, problem):
    with pytest.raises(ConfigError, match=r"^mine\.toml.*") as caught:
        parse(text)
    assert problem in str(caught.value)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_lists_every_category_and_its_example_runs(page):
    text, language = page.read_text("utf-8"), "zh" if ".zh." in page.name else "en"
    for tiers in TREE.paths():
        assert f"`{tiers[-1]}`" in text
        assert TREE.names(tiers, language)[-1] in text
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(example, {})
