import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.core.plugins import build
from strategies import case

ROW = {"prompt": "問", "chosen": "好", "rejected": "不好"}


def test_the_chosen_text_is_the_better_one():
    (one,), noted = read("kyara", ROW)
    better, worse = one.responses
    assert (better.text, worse.text, one.ranking) == ("好", "不好", ((better.id,), (worse.id,)))
    assert [(turn.role, turn.content) for turn in one.prompt.messages] == [("user", "問")]
    assert not noted


def test_equal_rows_and_equal_answers_are_counted():
    _, noted = read("kyara", ROW, ROW)
    assert noted == {"repeated rows": 1}
    (one,), noted = read("kyara", {**ROW, "rejected": "好"})
    assert noted == {"repeated responses": 1}
    assert len({response.id for response in one.responses}) == 2


@pytest.mark.parametrize("change", [{"prompt": None}, {"chosen": ["好"]}, {"rejected": 3}])
def test_a_field_of_another_type_is_named_with_its_line(change):
    (key,) = change
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2: the row .*{key}"):
        read("kyara", ROW, {**ROW, **change})


def test_a_row_a_pair_and_ties_are_counted():
    rows, lost = write("kyara", case(responses="abc", ranking=(("a",), ("b", "c"))))
    assert [(row["chosen"], row["rejected"]) for row in rows] == [("answer a", "answer b"), ("answer a", "answer c")]
    assert (lost["ties"], lost["more than two responses"]) == (1, 1)


def test_rows_like_trls_are_not_recognised():
    assert not build("formats", "kyara").recognises(ROW)
