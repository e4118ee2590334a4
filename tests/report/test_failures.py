from math import sqrt

import pytest

from evaluation_summaries import scored_item
from report_runs import evaluate_run, made_cases
from steelyard.evaluation.tables import language_word, word
from steelyard.report.failures import error_map, failure_section, failure_sentences, find_failures, group_name
from steelyard.report.items import JoinedItems, pack
from steelyard.report.sources import read_sources
from steelyard.views.page import page_of, read_data
from strategies import case

RANKING = (("a",), ("b",))


def two(prompt, margin, *, lengths=(10, 10), **fields):
    """An item of one pair with this margin."""
    scores = {"a": None if margin is None else margin, "b": 0.0}
    return scored_item(prompt, num_pairs=1, scores=scores, ranking=RANKING, lengths=lengths, **fields)


def joined(*models):
    return JoinedItems({"evaluate": [case(name, "ab", ranking=RANKING) for name in "pqrs"]}, models)


def test_the_record_has_each_models_errors_with_ids_margin_and_lengths():
    items = joined(
        [two("p", 1.0), two("q", -2.0, lengths=(5, 50)), two("r", -4.0), two("s", None)], [two("q", 3.0), two("r", 0.0)]
    )
    failures = find_failures(items, ["one", "two"])
    section = failure_section(failures, items, ["evidence"])
    scale = sqrt((1 + 4 + 16) / 3)
    assert section is not None
    assert section.record["errors"] == [
        [[2, "a", "b", -4.0, 10, 10, round(4 / scale, 3)], [1, "a", "b", -2.0, 5, 50, round(2 / scale, 3)]],
        [[2, "a", "b", 0.0, 10, 10, 0.0]],
    ]
    (compared,) = section.record["compared"]
    gap = round(2 / scale + 3 / sqrt(4.5), 3)  # q: -2 and 3 on the scales of the two models
    assert compared == {"models": [0, 1], "largest": [[1, "a", "b", -2.0, 5, 50, False, gap]]}
    # Of two shared pairs the second model alone has one right, and none has the other.
    assert section.disagreements is not None
    assert section.disagreements.table.rows[0][:6] == ("one – two", "0", "0", "1", "1", "−50.0")
    assert section.disagreements.models == ((0, 1),)
    # The unscored pair is named in the first model's map.
    assert [sentence.key for sentence in section.maps[0].about] == ["say_groups", "say_unscored_pairs"]


def test_marks_for_the_table_and_the_prompts_that_are_packed_first():
    items = joined([two("p", 1.0), two("q", -2.0), two("r", -4.0), two("s", 1.0)], [two("q", 3.0)])
    failures = find_failures(items, ["one", "two"])
    marks = failures.marks(len(items))
    assert marks.leading == (2, 1)
    assert marks.differing == {1: [(1, 0)]}
    lines = pack(items, budget=2**20, marks=marks).lines
    places = [line.rsplit(b",[", 1)[1] for line in lines]
    assert places == [b"0,2]]", b"0,1]]", b"0,0]]", b"0,3]]"]


def crowd(category, num_wrong, lengths=(10, 10)):
    return [
        two(f"{category}-{at}", -1.0 if at < num_wrong else 1.0, category=category, lengths=lengths)
        for at in range(100)
    ]


def test_the_head_names_the_worst_group_only_if_one_stands_out():
    items = JoinedItems({}, [[*crowd("math", 70), *crowd("code", 20)], [*crowd("math", 30), *crowd("code", 25)]])
    concentrated, even = find_failures(items, ["one", "two"]).models
    (sentence,) = failure_sentences(concentrated)
    assert sentence.key == "say_fails"
    assert {name: sentence.values[name] for name in ("model", "group", "rate", "n", "overall", "tested", "above")} == {
        "model": "one",
        "group": "math",
        "rate": "70.0%",
        "n": "100",
        "overall": "45.0%",
        "tested": "2",
        "above": "1",
    }
    (sentence,) = failure_sentences(even)
    assert (sentence.key, sentence.values["overall"], sentence.values["tested"]) == ("say_no_group", "27.5%", "2")
    few = JoinedItems({}, [[two("p", -1.0), two("q", 1.0, category="d")]])
    assert [sentence.key for sentence in failure_sentences(find_failures(few, ["m"]).models[0])] == [
        "say_no_group_tested"
    ]
    flawless = JoinedItems({}, [[two("p", 1.0)]])
    assert failure_sentences(find_failures(flawless, ["m"]).models[0]) == ()


def test_the_map_has_a_row_of_all_pairs_and_one_of_each_category_with_its_cells():
    items = JoinedItems({}, [[*crowd("math", 70, (10, 90)), *crowd("code", 20, (90, 10))]])
    (model,) = find_failures(items, ["m"]).models
    found = error_map("m", 0, model.groups)
    assert found.columns == (word("all_lengths"), word("group_shorter"), word("group_longer"))
    assert [row.title for row in found.rows] == [word("all"), "math", "code"]
    shares = [
        [None if cell is None else (cell.rate, cell.n, cell.stands_out) for cell in row.cells] for row in found.rows
    ]
    assert shares == [
        [("45.0%", "200", 0), ("70.0%", "100", 1), ("20.0%", "100", -1)],
        [("70.0%", "100", 1), ("70.0%", "100", 1), None],
        [("20.0%", "100", -1), None, ("20.0%", "100", -1)],
    ]
    whole, shorter = found.rows[1].cells[:2]
    assert (whole.category, whole.length, whole.language) == ("math", None, None)
    assert (shorter.category, shorter.length, shorter.language) == ("math", "shorter", None)
    assert found.groups.rows[0][0].startswith(("math", word("group_shorter")))


def test_many_categories_are_cut_to_the_worst_rows_and_the_page_says_so():
    items = JoinedItems({}, [[two(f"{at}", -1.0 if at < 30 else 1.0, category=f"c{at:02}") for at in range(60)]])
    (model,) = find_failures(items, ["m"]).models
    found = error_map("m", 0, model.groups)
    assert len(found.rows) == 25
    assert {row.cells[0].rate for row in found.rows[1:]} == {"100.0%"}
    assert found.about[1].key == "say_rows_shown"
    assert (found.about[1].values["shown"], found.about[1].values["all"]) == ("24", "60")


def test_with_several_languages_a_row_is_a_category_in_a_language():
    chinese = [two(f"p{at}", -1.0, category="数学", language="zh") for at in range(12)]
    hebrew = [two(f"q{at}", 1.0, category="x", language="he") for at in range(12)]
    (model,) = find_failures(JoinedItems({}, [[*chinese, *hebrew]]), ["m"]).models
    titles = {row.title for row in error_map("m", 0, model.groups).rows}
    assert titles == {
        word("all"),
        f"数学{word('comma', ', ')}{language_word('zh')}",
        f"x{word('comma', ', ')}{language_word('he')}",
    }
    assert group_name(model.groups.groups[0]) in titles | {language_word("zh"), "数学"}


def test_where_no_category_in_a_language_can_be_tested_rows_are_categories_and_languages():
    items = JoinedItems(
        {}, [[two("p", -1.0, category="数学", language="zh"), two("q", 1.0, category="x", language="he")]]
    )
    (model,) = find_failures(items, ["m"]).models
    titles = [row.title for row in error_map("m", 0, model.groups).rows]
    assert titles == [word("all"), "数学", "x", language_word("zh"), language_word("he")]


def test_a_page_of_a_run_begins_with_its_failures_and_one_without_scores_has_none(tmp_path):
    run = evaluate_run(tmp_path / "e", made_cases(12))
    made = page_of(read_data(read_sources([run])), title=None, language="en", budget=2**20, version="1")
    assert made.failures is not None
    assert made.sentences[1].key in ("say_no_group", "say_no_group_tested", "say_fails")
    assert len(made.failures.record["errors"][0]) <= 12
    assert failure_section(find_failures(joined(), []), joined(), []) is None


@pytest.mark.parametrize("budget", [2**20, 0])
def test_the_budget_holds_for_the_leading_items_too(budget):
    items = joined([two(name, -1.0) for name in "pqrs"])
    marks = find_failures(items, ["m"]).marks(4)
    assert pack(items, budget=budget, marks=marks).num_whole == (4 if budget else 0)
