from collections import Counter

import msgspec
import pytest

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import Message, Response
from steelyard.plugins.formats._languages import language_code
from steelyard.plugins.formats._row_format import (
    PromptIds,
    as_read,
    form_of,
    group_id,
    groups_of,
    in_form,
    split_meta,
    with_meta,
)
from steelyard.plugins.formats._turns import answer_turns, count_other_keys, response_of, turns_of
from strategies import case

ROW = Row(Place("f", 2), {"t": "x", "n": 3, "l": [1]})


def test_fields_are_read_or_what_is_wrong_is_said():
    assert (ROW.text("t"), ROW.text("z", default="d"), ROW.items("l")) == ("x", "d", [1])
    with pytest.raises(RecordError, match=r"f:2: the row lacks 'z'\n  allowed: z: a text"):
        ROW.text("z")
    with pytest.raises(RecordError, match="f:2: the row has int under 'n'"):
        ROW.items("n")


def test_turns_are_texts_or_turns():
    assert turns_of("x", ROW.place, "k", role="user") == (Message(role="user", content="x"),)
    with pytest.raises(RecordError, match="f:2 at k: turn 1 of 'k' has no text"):
        turns_of([{"role": "user"}], ROW.place, "k", role="user")
    for broken in (3, [], ["x"]):
        with pytest.raises(RecordError, match="f:2 at k: 'k' is neither a text nor turns"):
            turns_of(broken, ROW.place, "k", role="user")


def test_a_response_of_one_assistant_turn_is_text():
    one, user = Message(role="assistant", content="x"), Message(role="user", content="x")
    assert response_of("a", [one]) == Response(id="a", text="x")
    assert response_of("a", [user]).messages == (user,)
    assert answer_turns(Response(id="a", text="x")) == (one,)


def test_ids_are_unique_in_a_language():
    ids = PromptIds(Counter())
    assert [ids.take(ROW, "x", language=name) for name in ("zh", "en")] == ["x", "x"]
    with pytest.raises(RecordError, match="f:2: id 'x' is already used at f:2"):
        ids.take(ROW, "x", language="en")


def test_a_number_is_finite_and_no_truth_value():
    found = [is_number(value) for value in (1, 0.5, True, "1", None, float("inf"))]
    assert found == [True, True, False, False, False, False]
    assert (ROW.optional_text("t"), ROW.optional_text("z")) == ("x", None)


def test_the_form_of_a_row_is_for_its_own_format():
    one = case(meta=as_read("trl", turns=["chosen"], implicit=False))
    assert form_of(one, "trl") == {"format": "trl", "turns": ["chosen"]}
    assert (form_of(one, "cheems"), as_read("trl", implicit=False)) == ({}, {})


def test_meta_never_replaces_what_the_format_says():
    one = case()
    one = msgspec.structs.replace(one, prompt=msgspec.structs.replace(one.prompt, meta={"a": 0, "b": 0, "c": 0}))
    dropped = Counter()
    assert with_meta({"a": 1}, one, ("b",), dropped) == {"a": 1, "c": 0}
    assert dropped == {"prompt meta under keys of the format": 2}


def test_only_keys_that_say_something_are_counted():
    warnings = Counter()
    count_other_keys([{"role": "user", "content": "q", "name": "Ann", "weight": None}, "x"], warnings)
    count_other_keys({"role": "user", "loss": 0, "name": "Ann"}, warnings)
    count_other_keys("a text", warnings)
    assert warnings == {"other keys of turns, left out": 3}


def test_null_stands_again_only_where_nothing_was_said_since():
    row = Row(Place("f", 1), {"a": None, "b": None, "c": 1})
    form = {"null": row.nulls(("a", "b", "c", "d"))}
    assert form == {"null": ["a", "b"]}
    assert in_form({"a": "", "b": "said", "c": 1}, form) == {"a": None, "b": "said", "c": 1}
    assert in_form({"a": ""}, {}) == {"a": ""}
    assert in_form({"a": 0}, form) == {"a": 0, "b": None}


def test_an_absent_key_stays_absent_without_a_value_or_where_the_writer_makes_one():
    form = {"absent": ["a", "b", "c", "id"], "null": ["n"]}
    row = {"a": "", "b": "said", "c": 0, "id": "made", "n": "made"}
    assert in_form(row, form, ("id", "n")) == {"b": "said", "c": 0, "n": None}


@pytest.mark.parametrize(
    ("name", "code"),
    [("Chinese", "zh"), ("chinese", "zh"), ("zh", "zh"), ("heb_Hebr", "heb_Hebr"), ("zh-TW", "zh-TW"),
     ("unknown", None), ("python", None), ("", None)],
)  # fmt: skip
def test_names_in_any_case_and_codes(name, code):
    assert language_code(name) == code


def rows(*values):
    return [Row(Place("f", number), value) for number, value in enumerate(values, 1)]


def test_runs_of_one_key_and_no_more():
    found = groups_of(rows({"k": 1}, {"k": 1}, {"k": 2}, {"k": 1}), lambda row: row.value["k"])
    assert [[row.place.line for row in group] for group in found] == [[1, 2], [3], [4]]
    assert list(groups_of([], lambda row: row.value["k"])) == []


def test_rows_are_taken_as_they_come():
    seen = []

    def source():
        for row in rows({"k": 1}, {"k": 2}, {"k": 3}):
            seen.append(row.place.line)
            yield row

    next(groups_of(source(), lambda row: row.value["k"]))
    assert seen == [1, 2]


def test_what_all_rows_say_is_the_prompts():
    shared, own = split_meta(rows({"k": 1, "a": 1, "b": None}, {"k": 2, "a": 1}, {"k": 3, "a": 1, "c": 4}), ["k"])
    assert (shared, own) == ({"a": 1}, [{"b": None}, None, {"c": 4}])
    assert split_meta(rows({"k": 1}), ["k"]) == (None, [None])


def test_equal_groups_get_ids_of_their_own():
    warnings = Counter()
    ids = PromptIds(warnings)
    first, second = group_id(rows({"k": 1}), ids), group_id(rows({"k": 1}), ids)
    assert second == f"{first}~2"
    assert warnings["repeated rows"] == 1
