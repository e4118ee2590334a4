import csv
import io
import re

import msgspec
import pytest

from steelyard.evaluation.leaderboard import LeaderboardSummary, Number
from steelyard.report.leaderboard import (
    as_csv,
    as_markdown,
    as_page,
    leaderboard_sentences,
    rank_range,
    value_with_interval,
)
from steelyard.report.page import page_strings, script_hash

ESTIMATE = {"value": 0.8125, "low": 0.75, "high": 0.875, "n": 32}


def row(name, ranks=(1, 2), **changes):
    numbers = [{"group": "headline", "name": "accuracy", **ESTIMATE}, {"group": "sections", "name": "chat", **ESTIMATE}]
    made = {"name": name, "folder": "x", "kind": "classifier", "value": 0.8125, "best_rank": ranks[0],
            "worst_rank": ranks[1], "group": "a", "rank_shares": [0.625, 0.375], "self_test": "passed",
            "numbers": numbers, "coverage": {"num_responses": 8, "num_cut": 2, "num_unscored": 1, "by_language": {}},
            "protocol": {"dtype": "float32", "max_length": 2048, "over_length": None, "template_hash": None},
            }  # fmt: skip
    return made | changes


def summary(*rows, **changes):
    columns = [{"group": "headline", "name": "accuracy"}, {"group": "sections", "name": "chat"}]
    made = {"bench": "cases", "bench_sha256": ["ab" * 32], "num_prompts": 1200, "ranked_by": "accuracy",
            "about": "a mean", "correction": "Holm", "columns": columns, "rows": rows, "comparisons": [],
            "partial": [], "missing": {}, "differing": {}, "unlike_coverage": []}  # fmt: skip
    return msgspec.convert(made | changes, LeaderboardSummary)


def test_a_rank_is_a_number_or_a_range():
    assert rank_range(2, 2) == "2"
    assert rank_range(1, 3) == "1–3"


def test_an_estimate_is_shown_with_its_interval_where_it_has_one():
    def shown(**changes):
        return value_with_interval(Number(group="headline", name="accuracy", **(ESTIMATE | changes)))

    assert shown() == "81.2% [75.0–87.5%]"
    assert shown(low=None) == "81.2%"
    assert shown(value=None) == value_with_interval(None) == ""


@pytest.mark.parametrize("name", ["a,b\nc", '"quoted"', "奖励模型", "نموذج", "🐢"])
def test_names_survive_csv(name):
    read = list(csv.DictReader(io.StringIO(as_csv(summary(row(name))))))
    assert read[0]["name"] == name
    assert (float(read[0]["accuracy"]), float(read[0]["sections.chat.high"])) == (0.8125, 0.875)
    assert (read[0]["best_rank"], read[0]["worst_rank"], read[0]["share_first"]) == ("1", "2", "0.625")


def test_a_name_that_a_spreadsheet_would_run_is_text():
    assert next(csv.DictReader(io.StringIO(as_csv(summary(row("=HYPERLINK(1)"))))))["name"] == "'=HYPERLINK(1)"


def test_runs_that_were_not_read_alike_are_told_apart():
    text = as_markdown(summary(row("a"), row("b", coverage=None), unlike_coverage=["a: 2 of 8 responses cut"]))
    assert "Unequal shares of responses read: a: 2 of 8 responses cut. Unscored pairs count as wrong; ranks" in text
    assert "| 1–2 | b | 62% | a |  |  | " in text
    read = list(csv.DictReader(io.StringIO(as_csv(summary(row("a"), row("b", coverage=None))))))
    assert [(one["share_cut"], one["share_unscored"]) for one in read] == [("0.25", "0.125"), ("", "")]


def test_a_number_that_one_model_lacks_is_an_empty_cell():
    lacking = row("m", numbers=[{"group": "headline", "name": "accuracy", **ESTIMATE}])
    assert next(csv.DictReader(io.StringIO(as_csv(summary(lacking)))))["sections.chat"] == ""


def test_markdown_keeps_its_table_whatever_the_name():
    partial = [{"name": "late", "why": "safety (no cases of it)"}]
    text = as_markdown(summary(row("a|b\n<x>"), partial=partial, differing={"dtype": {'"bfloat16"': ["a", "b"]}}))
    lines = text.splitlines()
    assert lines[2] == "| 1–2 | a\\|b &lt;x> | 62% | a | 25.0% | 12.5% | 81.2% [75.0–87.5%] | 81.2% [75.0–87.5%] |"
    assert "cases, 1,200 prompts; 95% intervals; ranked by accuracy (a mean)." in lines
    assert "Without a headline: late: safety (no cases of it)." in lines
    assert 'Differs with permission: dtype: "bfloat16" in a, b' in lines


def test_markdown_makes_no_link_no_mark_and_nothing_unseen_of_a_name():
    name = "[free](https://evil.example) **bold** `code` \x1b[2J \u202egpj \u0007"
    cell = as_markdown(summary(row(name))).splitlines()[2].split(" | ")[1]
    assert cell == r"\[free\](https&#58;//evil.example) \*\*bold\*\* \`code\`  \[2J  gpj  "


def test_names_of_every_script_stand_there_and_none_is_markup():
    page = as_page(summary(row("奖励模型"), row("نموذج المكافأة"), row("<script>alert(1)</script>"), row("a&b")))
    assert "奖励模型" in page
    assert "نموذج المكافأة" in page
    assert "<script>alert" not in page
    assert page.count("<script") == 5  # three of code, and two of data
    assert "a&amp;b" in page


def test_the_page_takes_nothing_from_elsewhere_and_forbids_it():
    page = as_page(summary(row("a"), row("b")), {"a": "../run%20a/report.html"})
    assert "default-src 'none'" in page
    assert not re.search(r"<[a-z]+[^>]* src\s*=", page)
    links = re.findall(r'href="([^"]*)"', page)
    assert "../run%20a/report.html" in links
    assert all(link.startswith("#") for link in set(links) - {"../run%20a/report.html"})


def test_the_policy_allows_exactly_the_scripts_of_the_page():
    page = as_page(summary(row("a"), row("b")))
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert re.findall(r"'sha256-([^']+)'", page) == [script_hash(script) for script in scripts]
    assert len(scripts) == 3


def test_the_page_wears_the_dress_of_the_report():
    page = as_page(summary(row("a"), row("b")))
    assert page_strings().table["made_offline"]["zh"] in page
    assert 'id="theme"' in page
    assert 'data-language="zh"' in page


def test_a_row_leads_to_all_numbers_of_its_model():
    lead = {"accuracy": ESTIMATE, "lead": {**ESTIMATE, "value": 0.125, "low": 0.0625, "high": 0.1875}}
    page = as_page(summary(row("a", baselines={"longer": lead}), row("b")))
    assert 'href="#model-1"' in page
    detail = page.split('id="model-1"')[1].split("</details>")[0]
    for shown in ("81.2%", "75.0–87.5%", "取较长回答", "+12.5", "float32", "2,048", "通过"):
        assert shown in detail, shown


def test_the_first_of_a_leaderboard_is_named_and_a_shared_first_place_too():
    assert leaderboard_sentences(summary(row("a", (1, 1)), row("b", (2, 2))))[0].key == "say_first"
    shared = leaderboard_sentences(summary(row("a", (1, 2)), row("b", (1, 2)), row("c", (3, 3))))[0]
    assert (shared.key, shared.values["leading"], shared.values["models"]) == ("say_first_shared", "2", "3")


def test_every_word_stands_there_in_both_languages():
    page = as_page(summary(row("a"), row("b")))
    assert page.count('class="t" lang="en"') == page.count('class="t" lang="zh"') > 10


def test_what_was_cut_or_unscored_stands_there_and_what_was_not_read_alike():
    page = as_page(summary(row("a"), row("b"), unlike_coverage=["a: 2 of 8 responses cut to fit the limit"]))
    assert ">25.0%</td>" in page
    assert ">12.5%</td>" in page
    assert "answers cut: 2 / 8 (25.0%); answers without a score: 1 / 8 (12.5%)" in re.sub("<[^>]*>", "", page)
    assert "Unequal shares" not in as_page(summary(row("a"), row("b")))


def test_what_is_listed_apart_is_named():
    page = as_page(
        summary(
            row("a"), row("b"), partial=[{"name": "late", "why": "safety"}], differing={"dtype": {'"bfloat16"': ["a"]}}
        )
    )
    assert "late" in page
    assert "safety" in page
    assert "bfloat16" in page
    assert "No headline and" not in as_page(summary(row("a"), row("b")))


def test_a_missing_number_is_an_empty_cell_that_sorts_last():
    assert '<td data-value=""></td>' in as_page(summary(row("a", numbers=[])))


def test_the_page_says_what_ranks():
    assert "Ranks are by the headline of the benchmark: </span>" in as_page(summary(row("a")))
    page = as_page(summary(row("a"), ranked_by="overall", about="the mean of <two> halves"))
    assert "<bdi>the mean of &lt;two&gt; halves</bdi>" in page
    assert '<b><span class="t" lang="en">overall</span><span class="t" lang="zh">总体</span></b>' in page
