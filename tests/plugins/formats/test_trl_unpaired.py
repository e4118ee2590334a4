import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.core.plugins import build
from steelyard.core.types import Rating
from strategies import case

ROW = {"prompt": "问", "completion": "答 🙂", "label": True}


@pytest.mark.parametrize(("label", "value"), [(True, 1.0), (False, 0.0)])
def test_the_label_is_a_rating_and_nothing_is_ranked(label, value):
    (one,), _ = read("trl_unpaired", ROW | {"label": label})
    (rating,) = one.ratings
    assert (rating.dimension, rating.value, rating.range) == ("label", value, (0, 1))
    assert rating.response == one.responses[0].id
    assert (one.ranking, one.judgments, one.pairs) == (None, (), None)


@pytest.mark.parametrize("label", [1, 0, "true", None])
def test_a_label_that_is_no_truth_is_refused(label):
    with pytest.raises(RecordError, match=r"^f\.jsonl:2 at label: a label that is no truth"):
        read("trl_unpaired", ROW, ROW | {"label": label})


def test_each_labelled_answer_becomes_a_row():
    ratings = tuple(
        Rating(response=name, rater="unknown", kind="human", dimension="label", value=value, range=(0, 1))
        for name, value in (("a", 1.0), ("b", 0.0), ("c", 0.5))
    )
    rows, lost = write("trl_unpaired", case(text="q", responses="abcd", ranking=(("a",), ("b",)), ratings=ratings))
    assert rows == [
        {"prompt": "q", "completion": "answer a", "label": True},
        {"prompt": "q", "completion": "answer b", "label": False},
    ]
    assert lost["answers without a label of 0 or 1"] == 2
    assert lost["cases cut into a row for each answer"] == 1
    assert (lost["rankings"], lost["more than two responses"]) == (1, 1)


def test_a_prompt_of_several_turns_makes_all_turns():
    given = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
    row = {"prompt": given, "completion": "a", "label": True}
    assert write("trl_unpaired", *read("trl_unpaired", row)[0])[0] == [row]


def test_prompt_and_completion_without_a_label_are_not_claimed():
    recognises = build("formats", "trl_unpaired").recognises
    assert recognises(ROW)
    assert not recognises({"prompt": "q", "completion": "a"})
    assert not recognises(ROW | {"label": 1})
