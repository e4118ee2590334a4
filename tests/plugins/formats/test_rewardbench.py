import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from strategies import case

ROW = {
    "id": 3,
    "prompt": "q",
    "chosen": "yes",
    "chosen_model": "m",
    "rejected": "no",
    "rejected_model": "n",
    "subset": "s",
}


def test_ids_repeat_across_subsets_and_not_within():
    cases, _ = read("rewardbench", ROW, {**ROW, "subset": "t"})
    assert [one.prompt.id for one in cases] == ["s/3", "t/3"]
    assert [row["id"] for row in write("rewardbench", *cases)[0]] == [3, 3]
    with pytest.raises(RecordError, match=r"f\.jsonl:2: id 's/3' is already used at"):
        read("rewardbench", ROW, ROW)


def test_whole_conversations_hold_the_prompt():
    # Tülu's and Capybara's preferences: models and a source as in RewardBench, but the prompt is inside both answers.
    first = [
        {"role": "user", "content": "q1"},
        {"role": "assistant", "content": "a1"},
        {"role": "user", "content": "q2"},
    ]
    sides = {side: [*first, {"role": "assistant", "content": ROW[side]}] for side in ("chosen", "rejected")}
    (one,), warnings = read("rewardbench", ROW | sides | {"prompt": "q2"})
    assert [turn.content for turn in one.prompt.messages] == ["q1", "a1", "q2"]
    assert [(response.text, response.author) for response in one.responses] == [("yes", "m"), ("no", "n")]
    assert warnings == {"titles beside whole conversations, left out": 1}


def test_parallel_items_share_their_id():
    rows = [
        {key: value for key, value in ROW.items() if key != "subset"} | {"source": "s", "language": name}
        for name in ("arb_Arab", "heb_Hebr")
    ]
    cases, _ = read("rewardbench", *rows)
    assert [one.key for one in cases] == [("s/3", "arb_Arab"), ("s/3", "heb_Hebr")]
    assert [one.prompt.subset for one in cases] == ["s", "s"]
    assert write("rewardbench", *cases)[0] == rows


def test_models_become_authors_and_the_sides_tiers():
    (one,), _ = read("rewardbench", ROW)
    assert [(response.id, response.author) for response in one.responses] == [("chosen", "m"), ("rejected", "n")]
    assert one.ranking == (("chosen",), ("rejected",))


def test_a_case_of_several_pairs_becomes_rows_with_ids_of_their_own():
    rows, dropped = write("rewardbench", case(responses="abc", ranking=(("a",), ("b",), ("c",))))
    assert [row["id"] for row in rows] == ["p-0", "p-1", "p-2"]
    assert dropped["more than two responses"] == 1


@pytest.mark.parametrize("change", [{"chosen_model": 3}, {"language": ["zh"]}, {"subset": None}])
def test_a_field_of_another_type_is_named(change):
    (key,) = change
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1: the row .*{key}"):
        read("rewardbench", {**ROW, **change})


@pytest.mark.parametrize("given", [0, "", "ref:1"])
def test_an_id_of_any_kind_comes_back(given):
    rows, _ = write("rewardbench", *read("rewardbench", {**ROW, "id": given})[0])
    assert rows == [{**ROW, "id": given}]


def test_rows_of_several_pairs_take_no_id_that_stands_already():
    several = case(responses="abc", ranking=(("a",), ("b",), ("c",)))
    rows, dropped = write("rewardbench", several, case(id="p-0", responses="ab", ranking=(("a",), ("b",))))
    assert [row["id"] for row in rows] == ["p-0", "p-1", "p-2", "p-0~2"]
    assert dropped["repeated ids of a subset"] == 1
    assert len(read("rewardbench", *rows)[0]) == 4


def test_a_language_that_is_null_comes_back_as_null():
    row = {**ROW, "language": None, "chosen_model": None}
    assert write("rewardbench", *read("rewardbench", row)[0])[0] == [row]


REWARDBENCH2_ROW = {
    "id": "tied:4",
    "prompt": "q",
    "chosen": ["a", "b"],
    "rejected": ["c"],
    "num_correct": 2,
    "num_rejected": 1,
    "total_completions": 3,
    "models": ["m", "n", None],
    "subset": "Ties",
}


def test_several_right_answers_are_one_tier():
    (one,), warnings = read("rewardbench2", REWARDBENCH2_ROW)
    assert one.prompt.id == "Ties/tied:4"
    assert one.ranking == (("chosen-1", "chosen-2"), ("rejected-1",))
    assert [response.author for response in one.responses] == ["m", "n", None]
    assert warnings == {}


def test_models_that_do_not_match_the_answers_name_no_authors():
    row = {**REWARDBENCH2_ROW, "models": ["unknown"]}
    (one,), _ = read("rewardbench2", row)
    assert [response.author for response in one.responses] == [None] * 3


def test_wrong_numbers_are_counted():
    row = {**REWARDBENCH2_ROW, "num_rejected": 3}
    _, warnings = read("rewardbench2", row)
    assert warnings == {"counts that differ from those of the answers": 1}


@pytest.mark.parametrize("change", [{"chosen": "a"}, {"rejected": []}, {"subset": 3}, {"prompt": None}])
def test_rewardbench2_a_field_of_another_type_is_named(change):
    (key,) = change
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2.*{key}"):
        read("rewardbench2", REWARDBENCH2_ROW, {**REWARDBENCH2_ROW, "id": "x", **change})


def test_an_id_that_stands_twice_in_a_subset_is_refused():
    with pytest.raises(RecordError, match=r"f\.jsonl:2: id 'Ties/tied:4' is already used at"):
        read("rewardbench2", REWARDBENCH2_ROW, REWARDBENCH2_ROW)
