import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.core.plugins import build
from strategies import case

ROW = {"prompt": "問", "chosen": "好", "reject": "不好"}


def test_the_chosen_text_is_the_better_one():
    (one,), noted = read("huozi", ROW)
    better, worse = one.responses
    assert (better.text, worse.text, one.ranking) == ("好", "不好", ((better.id,), (worse.id,)))
    assert [(turn.role, turn.content) for turn in one.prompt.messages] == [("user", "問")]
    assert not noted


def test_equal_rows_and_equal_answers_are_counted():
    _, noted = read("huozi", ROW, ROW)
    assert noted == {"repeated rows": 1}
    (one,), noted = read("huozi", {**ROW, "reject": "好"})
    assert noted == {"repeated responses": 1}
    assert len({response.id for response in one.responses}) == 2


@pytest.mark.parametrize("change", [{"prompt": None}, {"chosen": ["好"]}, {"reject": 3}])
def test_a_field_of_another_type_is_named_with_its_line(change):
    (key,) = change
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2: the row .*{key}"):
        read("huozi", ROW, {**ROW, **change})


def test_a_row_a_pair_and_ties_are_counted():
    rows, lost = write("huozi", case(responses="abc", ranking=(("a",), ("b", "c"))))
    assert [(row["chosen"], row["reject"]) for row in rows] == [("answer a", "answer b"), ("answer a", "answer c")]
    assert (lost["ties"], lost["more than two responses"]) == (1, 1)


def test_rmbs_rows_of_objects_are_not_taken_for_it():
    assert build("formats", "huozi").recognises(ROW)
    assert not build("formats", "huozi").recognises(ROW | {"reject": {"answer": "x"}})
    assert not build("formats", "huozi").recognises({"prompt": "p", "chosen": "c", "rejected": "r"})
