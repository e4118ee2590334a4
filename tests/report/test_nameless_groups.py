"""Prompts without a category, runs without a section and missing parts, in the language of the reader."""

import re

import msgspec
import numpy as np
import pytest

from browser import CHROMIUM, opened, tree
from example_benches import example_bench
from page_words import PRODUCTS, page_text, words
from report_runs import CATEGORIES, made_cases
from steelyard.core.plugins import kinds
from steelyard.curation.debiasing import Config as DebiasConfig
from steelyard.evaluation.coverage import Coverage, LanguageCoverage
from steelyard.evaluation.leaderboard import LeaderboardSummary, Unranked
from steelyard.io.cases import write_cases
from steelyard.io.run_folder import read_run
from steelyard.report.bench_texts import headline_word
from steelyard.report.leaderboard import as_page
from steelyard.report.page import page_strings
from steelyard.stages.backbone import Config as BackboneConfig
from steelyard.stages.backbone import backbone
from steelyard.stages.debias import debias
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.stages.leaderboard import Config as BoardConfig
from steelyard.stages.leaderboard import leaderboard
from steelyard.stages.resolve import resolve
from steelyard.stages.split import split
from steelyard.statistics.bootstrap import Totals, UnitRows
from steelyard.statistics.groups import Cell

PATTERNS = {"zh": r"[A-Za-z]{2,}", "en": r"[\u4e00-\u9fff]+"}
"""The words of the other language."""
NAMES = {"simulated", "second", "tier", "backbone", "cheemsbench", "open", "prompt", "human", "instruction"}
NAMES |= {"train", "validation", "test", "cases", "nameless"}
"""Names in the cases, of verbs, benchmarks, their subsets, and files."""


@pytest.fixture(scope="module")
def nameless_runs(tmp_path_factory):
    """Runs on cases without categories, a part of a benchmark, its leaderboard, and a run without its own section."""
    folder = tmp_path_factory.mktemp("nameless")
    subsets = ("open_prompt", "human_instruction")
    cases = [
        msgspec.structs.replace(case, prompt=msgspec.structs.replace(case.prompt, category=(), subset=subsets[at % 2]))
        for at, case in enumerate(made_cases(12))
    ]
    named = [
        msgspec.structs.replace(case, prompt=msgspec.structs.replace(case.prompt, id=f"{case.prompt.id}n"))
        for case in made_cases(6)
    ]
    write_cases(folder / "cases.jsonl", [*cases, *named])
    write_cases(folder / "part.jsonl", cases)
    turned = [msgspec.structs.replace(case, ranking=case.ranking[::-1]) for case in cases[:5]]
    write_cases(folder / "turned.jsonl", [*turned, *cases[5:], *named])
    resolve(folder / "cases.jsonl", folder / "resolved")
    split(folder / "cases.jsonl", folder / "parts")
    debias(folder / "turned.jsonl", folder / "balanced", DebiasConfig(within="both"))
    backbone(folder / "cases.jsonl", folder / "network", BackboneConfig(hidden_size=32, vocabulary=400))
    board = []
    part_config = EvaluateConfig(bench_kind="cheemsbench", num_resamples=20)
    for model in ("first", "longer"):
        evaluate([folder / "cases.jsonl"], folder / model, EvaluateConfig(num_resamples=20), model=model)
        board.append(folder / f"{model}-part")
        evaluate([folder / "part.jsonl"], board[-1], part_config, model=model)
    leaderboard(board, out=folder / "board", config=BoardConfig(num_resamples=50))
    names = ("resolved", "parts", "balanced", "network", "first", "longer", "first-part", "board")
    return [folder / name for name in names]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_what_has_no_name_and_what_has_no_section_is_in_the_language_of_the_reader(nameless_runs, language):
    pattern = PATTERNS[language]
    names = {part for run in nameless_runs for part in re.findall(r"[A-Za-z]+", run.name)} | NAMES
    names |= {part for name in (*CATEGORIES, *CATEGORIES.values(), "标注员甲") for part in re.findall(pattern, name)}
    body = tree(page_text(nameless_runs, language)).all("body")[0]
    shown = [*words(body, language)]
    found = {word for text in shown for word in re.findall(pattern, text)}
    assert found - names - PRODUCTS == set()
    assert [text for text in shown if {"zh": "未分类", "en": "uncategorised"}[language] in text]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_prompts_without_a_category_keep_their_link_in_both_languages(nameless_runs, tmp_path):
    """The word changes with the language, the value of the filter and of the address does not."""
    (tmp_path / "page.html").write_text(page_text(nameless_runs, "en"), encoding="utf-8")
    shown = {}
    for language, label in {"zh": "未分类", "en": "uncategorised"}.items():
        address = f"file://{tmp_path}/page.html?language={language}#items&category=uncategorised"
        document = opened(address, tmp_path / "profile").document
        (chosen,) = [option for option in document.all("option") if option.attributes.get("value") == "uncategorised"]
        assert (chosen.text, "selected" in chosen.attributes) == (label, True)
        rows = document.all("tbody")
        shown[language] = [cell.text for row in rows for cell in row.all("td") if cell.text == label]
        chips = {chip.text for pair in document.all("div", of_class="pair") for chip in pair.all("span")}
        assert label in chips
        heat = [
            button for button in document.all("button") if button.attributes.get("data-category") == "uncategorised"
        ]
        assert heat
    # One prompt is no ground for a strong colour, and every answer can be read as it was written.
    assert "code" in {cell.attributes.get("data-category") for cell in document.all("button", "few")}
    assert document.all("span", "key")
    for pair in document.all("div", "pair"):
        assert len(pair.all("button", "raw-switch")) == 2
    assert len(shown["zh"]) == len(shown["en"]) > 0


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_leaderboard_says_in_both_languages_what_is_missing(nameless_runs, language):
    """Also what only some evaluations lack, and what models did not read alike; names of models and settings stay."""
    (board,) = (run for run in nameless_runs if run.name == "board")
    summary = msgspec.convert(read_run(board).summary, LeaderboardSummary)
    assert set(summary.missing) == {"open_prompt", "human_instruction"}
    reasons = ("most pairs have no score or verdict", "evaluated by an earlier version; evaluate it again",
               "ar (no cases of it), he (9 subsets incomplete (a: 0 prompts, expected 5, and 3 more)) and 2 more",
               )  # fmt: skip
    languages = {"unknown": LanguageCoverage(num_responses=9, num_cut=2, num_unscored=1)}
    coverage = Coverage(num_responses=9, num_cut=2, num_unscored=1, by_language=languages)
    rows = [msgspec.structs.replace(row, coverage=coverage) for row in summary.rows]
    changed = msgspec.structs.replace(
        summary, rows=tuple(rows), unlike_coverage=("first: all responses read whole",),
        partial=tuple(Unranked(name="first", why=why) for why in reasons),
        differing={"dtype (family first)": {"1": ("first",)}},
    )  # fmt: skip
    (body,) = tree(as_page(changed)).all("body")
    texts = [text for part in (body, *body.all("details")) for text in words(part, language)]
    found = {word for text in texts for word in re.findall(PATTERNS[language], text)}
    known = {"first", "longer", "part", "cheemsbench", "open", "prompt", "human", "instruction", "dtype", *CATEGORIES}
    assert found - known - PRODUCTS == set()


@pytest.mark.parametrize("kind", kinds("benches"))
def test_what_a_headline_is_the_mean_of_is_translated(kind):
    one = np.zeros(1, np.int64)
    units = UnitRows(
        row=one, cell=one, columns=np.ones((1, 12), np.int64), stratum=one, number=one + 1, sizes=np.ones(1)
    )
    totals = Totals((Cell("a", None, "en"),), np.ones((1, 12)), np.ones((1, 1, 12)), units)
    about = example_bench(kind).headline(totals).about
    assert re.search(r"[\u4e00-\u9fff]", page_strings().translate(headline_word(about), "zh")), about
