import re

from steelyard.report.leaderboard_page import as_page

ESTIMATE = {"value": 0.8, "low": 0.75, "high": 0.85, "n": 40}


def summary(*names, **changes):
    rows = [
        {"name": name, "kind": "classifier", "best_rank": 1, "worst_rank": 2, "rank_shares": [0.5, 0.5], "group": "a",
         "self_test": "passed", "protocol": {"dtype": "float32", "max_length": 2048},
         "coverage": {"num_responses": 8, "num_cut": 2, "num_unscored": 1, "by_language": {}},
         "numbers": [{"group": "headline", "name": "accuracy", **ESTIMATE}]}
        for name in names
    ]  # fmt: skip
    columns = [{"group": "headline", "name": "accuracy"}, {"group": "by_language", "name": "zh"}]
    made = {"bench": "cases", "bench_sha256": ["ab" * 32], "num_prompts": 40, "ranked_by": "accuracy",
            "about": "a mean", "columns": columns, "rows": rows, "partial": [], "missing": {},
            "differing": {}, "unlike_coverage": []}  # fmt: skip
    return made | changes


def test_names_of_every_script_stand_there_and_none_is_markup():
    page = as_page(summary("奖励模型", "نموذج المكافأة", "<script>alert(1)</script>", "a&b"))
    assert "奖励模型" in page
    assert "نموذج المكافأة" in page
    assert "<script>alert" not in page
    assert page.count("<script") == 1
    assert "a&amp;b" in page


def test_the_page_takes_nothing_from_elsewhere_and_forbids_it():
    page = as_page(summary("a", "b"))
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)\s*=", page)


def test_every_word_stands_there_in_both_languages():
    page = as_page(summary("a", "b"))
    assert page.count('class="t" lang="en"') == page.count('class="t" lang="zh"') > 10


def test_what_was_cut_or_unscored_stands_there_and_what_was_not_read_alike():
    page = as_page(summary("a", "b", unlike_coverage=["a: 2 of 8 responses cut to fit the limit"]))
    assert ">25.0%</td>" in page
    assert ">12.5%</td>" in page
    assert "a: 2 of 8 responses cut" in page
    assert "Not read alike" not in as_page(summary("a", "b"))


def test_what_is_listed_apart_is_named():
    page = as_page(
        summary("a", "b", partial=[{"name": "late", "why": "safety"}], differing={"dtype": {'"bfloat16"': ["a"]}})
    )
    assert "late" in page
    assert "safety" in page
    assert "bfloat16" in page
    assert "Without a headline" not in as_page(summary("a", "b"))


def test_a_missing_number_is_an_empty_cell_that_sorts_last():
    assert '<td data-value=""></td>' in as_page(summary("a"))


def test_the_page_says_what_ranks():
    assert "Ranks are by the headline of the bench:</span>" in as_page(summary("a"))
    page = as_page(summary("a", ranked_by="overall", about="the mean of <two> halves"))
    assert '(<bdi lang="en">the mean of &lt;two&gt; halves</bdi>)' in page
    assert '<b><span class="t" lang="en">overall</span><span class="t" lang="zh">总体</span></b>' in page
