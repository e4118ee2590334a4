import csv
import io

import pytest

from steelyard.report.leaderboard import as_csv, as_markdown, rank_of, shown

ESTIMATE = {"value": 0.8125, "low": 0.75, "high": 0.875, "n": 32}


def row(name, ranks=(1, 2), **changes):
    numbers = [{"group": "headline", "name": "accuracy", **ESTIMATE}, {"group": "sections", "name": "chat", **ESTIMATE}]
    made = {"name": name, "kind": "classifier", "best_rank": ranks[0], "worst_rank": ranks[1], "group": "a",
            "rank_shares": [0.625, 0.375], "self_test": "passed", "numbers": numbers,
            "coverage": {"num_responses": 8, "num_cut": 2, "num_unscored": 1, "by_language": {}}}  # fmt: skip
    return made | changes


def summary(*rows, **changes):
    columns = [{"group": "headline", "name": "accuracy"}, {"group": "sections", "name": "chat"}]
    made = {"bench": "cases", "num_prompts": 1200, "ranked_by": "accuracy", "about": "a mean", "correction": "Holm",
            "columns": columns, "rows": list(rows), "partial": [], "missing": {}, "differing": {},
            "unlike_coverage": []}  # fmt: skip
    return made | changes


def test_a_rank_is_a_number_or_a_range():
    assert rank_of(row("m", (2, 2))) == "2"
    assert rank_of(row("m", (1, 3))) == "1–3"


def test_an_estimate_is_shown_with_its_interval_where_it_has_one():
    assert shown(ESTIMATE) == "0.812 [0.750, 0.875]"
    assert shown(ESTIMATE | {"low": None}) == "0.812"
    assert shown(ESTIMATE | {"value": None}) == shown(None) == ""


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
    assert "Not read alike: a: 2 of 8 responses cut. Unscored pairs count as wrong; ranks" in text
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
    assert lines[2] == "| 1–2 | a\\|b &lt;x> | 62% | a | 25.0% | 12.5% | 0.812 [0.750, 0.875] | 0.812 [0.750, 0.875] |"
    assert "cases, 1,200 prompts; 95 % intervals; ranked by accuracy (a mean)." in lines
    assert "Without a headline: late: safety (no cases of it)." in lines
    assert 'Differs by leave: dtype: "bfloat16" in a, b' in lines


def test_markdown_makes_no_link_no_mark_and_nothing_unseen_of_a_name():
    name = "[free](https://evil.example) **bold** `code` \x1b[2J \u202egpj \u0007"
    cell = as_markdown(summary(row(name))).splitlines()[2].split(" | ")[1]
    assert cell == r"\[free\](https&#58;//evil.example) \*\*bold\*\* \`code\`  \[2J  gpj  "
