import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from strategies import case

ROW = {
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
    (one,), noted = read("rewardbench2", ROW)
    assert one.prompt.id == "Ties/tied:4"
    assert one.ranking == (("chosen-1", "chosen-2"), ("rejected-1",))
    assert [response.author for response in one.responses] == ["m", "n", None]
    assert noted == {}
    assert write("rewardbench2", one)[0] == [ROW]


def test_models_that_do_not_match_the_answers_name_no_authors_and_come_back():
    row = {**ROW, "models": ["unknown"]}
    (one,), _ = read("rewardbench2", row)
    assert [response.author for response in one.responses] == [None] * 3
    assert write("rewardbench2", one)[0] == [row]


def test_wrong_numbers_are_counted_and_come_back():
    row = {**ROW, "num_rejected": 3}
    cases, noted = read("rewardbench2", row)
    assert noted == {"numbers that are not those of the answers": 1}
    assert write("rewardbench2", *cases)[0] == [row]


def test_a_fresh_case_has_every_key():
    rows, lost = write("rewardbench2", case(responses="abc", ranking=(("c",), ("a", "b")), subset="s"))
    assert rows == [
        {
            "id": "p",
            "prompt": "What is it?",
            "chosen": ["answer c"],
            "rejected": ["answer a", "answer b"],
            "num_correct": 1,
            "num_rejected": 2,
            "total_completions": 3,
            "models": [],
            "subset": "s",
        }
    ]
    assert "cases of another shape" not in lost


def test_three_tiers_are_another_shape():
    assert write("rewardbench2", case(responses="abc", ranking=(("a",), ("b",), ("c",)))) == (
        [],
        {"prompt ids": 1, "response ids": 3, "cases of another shape": 1},
    )


@pytest.mark.parametrize("change", [{"chosen": "a"}, {"rejected": []}, {"subset": 3}, {"prompt": None}])
def test_a_field_of_another_type_is_named(change):
    (key,) = change
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2.*{key}"):
        read("rewardbench2", ROW, {**ROW, "id": "x", **change})


def test_an_id_that_stands_twice_in_a_subset_is_refused():
    with pytest.raises(RecordError, match=r"f\.jsonl:2: id 'Ties/tied:4' stands at"):
        read("rewardbench2", ROW, ROW)
