import json

import msgspec
import numpy as np
import pytest

from evaluated_cases import select_pairs
from steelyard.core.errors import RecordError
from steelyard.core.types import Pair, Response, Scores
from steelyard.evaluation.columns import bench_columns
from steelyard.evaluation.items import Item, add_units, item_rows, read_items
from steelyard.statistics.groups import prompt_names
from strategies import case

LINE = '{"prompt":"p","category":"数学","num_pairs":2,"num_correct":1,"num_tied":1,"exact_match":false,"scores":{}}\n'


def rows(cases, scores, rule="strict"):
    lines = [Scores(prompt=one.prompt.id, scores=own) for one, own in zip(cases, scores, strict=True)]
    return list(item_rows(cases, lines, bench_columns(cases, None, rule), bench="cases", rule=rule))


def test_a_row_tells_everything_of_its_case():
    one = case("p", "ab", category=("c", "d"), subset="s", language="zh", ranking=(("b",), ("a",)))
    (row,) = rows([one], [{"a": 1.0, "b": 2.0}])
    assert {
        "prompt": "p",
        "language": "zh",
        "category": "c",
        "subset": "s",
        "bench": "cases",
        "num_pairs": 1,
        "num_correct": 1,
        "num_tied": 0,
        "num_unscored": 0,
        "exact_match": True,
        "kendall_tau": 1.0,
        "top_1": 1.0,
        "regret": 0.0,
        "num_matched": 1,
        "num_matched_correct": 1,
        "scores": {"a": 1.0, "b": 2.0},
        "ranking": (("b",), ("a",)),
        "lengths": [8, 8],  # "answer a" and "answer b"
    }.items() <= row.items()
    assert "pairs" not in row


def test_pairs_stand_in_the_row_where_they_are_not_all_pairs_across_tiers():
    ranking = (("a",), ("b",), ("c",))
    listed = case("p", "abc", ranking=ranking, pairs=(Pair(better="c", worse="a"),))
    judged = case("q", "abc", ["a>b", "b>c", "a?c"], ranking=ranking)
    scores = [Scores(prompt=name, scores={"a": 1.0, "b": 2.0, "c": 3.0}) for name in "pq"]

    def pairs(choice, *cases):
        columns = bench_columns(cases, choice, "strict")
        return [row.get("pairs") for row in item_rows(cases, scores, columns, bench="cases", rule="strict")]

    assert pairs(None, listed, judged) == [[("c", "a")], None]
    assert pairs("tiers", listed, judged) == [[("a", "b"), ("a", "c"), ("b", "c")], None]
    assert [sorted(each) for each in pairs("judged", judged, judged)] == [[("a", "b"), ("b", "c")]] * 2


def test_exact_match_is_null_where_it_is_not_counted_and_false_where_a_score_is_missing():
    ranking = (("a",), ("b",), ("c",))
    cases = [case(name, "abc", ranking=ranking) for name in "pqr"] + [case("s", "abc")]
    scores = [
        {"a": 3.0, "b": None, "c": 1.0},
        {"a": 1.0, "b": None, "c": 3.0},
        {"a": 3.0, "b": 2.0, "c": 2.0},
        {"a": 3.0, "b": 2.0, "c": 1.0},
    ]
    assert [row["exact_match"] for row in rows(cases, scores)] == [False, False, False, None]
    assert [row["exact_match"] for row in rows(cases, scores, "cheems")] == [False, False, True, None]
    assert [row["num_unscored"] for row in rows(cases, scores)] == [2, 2, 0, 0]


def test_what_the_scores_make_of_the_ranking():
    cases = [case("p", "abc", ranking=(("a",), ("b",), ("c",))), case("q", "ab", ranking=(("a", "b"),))]
    found, nothing = rows(cases, [{"a": 1.0, "b": 3.0, "c": 2.0}, {"a": 1.0, "b": 2.0}])
    # of three pairs b > c alone is right; b is taken, one tier below the best; all texts are of one length
    assert found["kendall_tau"] == pytest.approx(-1 / 3)
    assert (found["top_1"], found["regret"], found["num_matched"], found["num_matched_correct"]) == (0.0, 1.0, 3, 1)
    assert nothing["kendall_tau"] is nothing["top_1"] is nothing["regret"] is None


def test_what_the_benchs_headline_needs_stands_in_the_row():
    cases = [case(name, "ab", text="one text", ranking=(("a",), ("b",))) for name in "pq"]
    lines = [Scores(prompt=one.prompt.id, scores={"a": 1.0, "b": 0.0}) for one in cases]
    columns = bench_columns(cases, None, "strict", prompt_names)
    own = np.array([[1, 2], [3, 4]])
    one, other = item_rows(cases, lines, columns, bench="b", rule="strict", bench_columns=(own, 10 * own))
    assert (one["own"], other["own"]) == ([1, 2], [3, 4])
    assert "own_if_right" not in one
    empty = np.zeros((2, 0), np.int64)
    assert "own" not in next(item_rows(cases, lines, columns, bench="b", rule="strict", bench_columns=(empty, empty)))


def test_pairs_without_a_score_stand_in_the_row_with_what_it_would_be_if_they_were_right():
    cases = [case("p", "abc", ranking=(("a",), ("b",), ("c",)))]
    lines = [Scores(prompt="p", scores={"a": 1.0, "b": 0.0, "c": None}, unscored={"c": "too long"})]
    columns = bench_columns(cases, None, "strict")
    (row,) = item_rows(
        cases, lines, columns, bench="b", rule="strict", bench_columns=(np.array([[1]]), np.array([[9]]))
    )
    assert sorted(row["unscored"]) == [("a", "c"), ("b", "c")]
    assert (row["exact_match"], row["exact_if_right"], row["own"], row["own_if_right"]) == (False, True, [1], [9])


def test_prompts_that_are_resampled_under_another_name_say_so(tmp_path):
    cases = [case(name, "ab", text="one text", ranking=(("a",), ("b",))) for name in "pq"]
    for resample_ids, units in ((prompt_names, [None, "p"]), (lambda one: (one.prompt.id,), [None, None])):
        (tmp_path / "items.jsonl").write_text('{"prompt":"p"}\n{"prompt":"q"}\n')
        add_units(tmp_path / "items.jsonl", select_pairs(cases, None, "strict", resample_ids))
        rows = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
        assert [row["prompt"] for row in rows] == ["p", "q"]
        assert [row.get("unit") for row in rows] == units


def test_like_lengths_are_those_of_the_ratio_asked_for():
    responses = (Response(id="a", text="四个字长"), Response(id="b", text="三个字"))
    one = msgspec.structs.replace(case("p", "ab", ranking=(("a",), ("b",))), responses=responses)
    columns = bench_columns([one], None, "strict")
    line = [Scores(prompt="p", scores={"a": 1.0, "b": 0.0})]
    for ratio, number in ((1.3, 0), (1.4, 1)):
        (row,) = item_rows([one], line, columns, bench="cases", rule="strict", matched_ratio=ratio)
        assert (row["num_matched"], row["num_matched_correct"]) == (number, number)


def test_items_are_read_whatever_else_they_say(tmp_path):
    (tmp_path / "items.jsonl").write_text(LINE, encoding="utf-8")
    wanted = Item(prompt="p", category="数学", num_pairs=2, num_correct=1, num_tied=1, exact_match=False)
    assert list(read_items(tmp_path)) == [wanted]


def test_what_a_prompt_is_drawn_with_and_the_benchs_own_columns_are_read(tmp_path):
    line = LINE.replace('"scores":{}', '"unit":"q","own":[1,0,2]')
    (tmp_path / "items.jsonl").write_text(LINE + line, encoding="utf-8")
    found = [(one.unit, one.bench_columns) for one in read_items(tmp_path)]
    assert found == [(None, ()), ("q", (1, 0, 2))]


def test_what_is_no_item_is_named_with_its_line(tmp_path):
    (tmp_path / "items.jsonl").write_text(LINE + '{"prompt":"q"}\n', encoding="utf-8")
    with pytest.raises(RecordError, match=r"items\.jsonl:2: the line is not an item of an evaluation"):
        list(read_items(tmp_path))
