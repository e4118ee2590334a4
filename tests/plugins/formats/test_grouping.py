from collections import Counter

from steelyard.core.errors import Place
from steelyard.core.protocols import Row
from steelyard.plugins.formats._rows import PromptIds, group_id, groups_of, split_meta, with_metas
from strategies import case


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


def test_the_formats_own_names_stay_its_own():
    one, dropped = case(), Counter()
    row = with_metas({"k": 1}, one, {"k": 2, "m": 3, "o": 4}, ["k", "m"], dropped)
    assert row == {"k": 1, "o": 4}
    assert dropped == {"response meta under keys of the format": 2}


def test_equal_groups_get_ids_of_their_own():
    warnings = Counter()
    ids = PromptIds(warnings)
    first, second = group_id(rows({"k": 1}), ids), group_id(rows({"k": 1}), ids)
    assert second == f"{first}~2"
    assert warnings["repeated rows"] == 1
