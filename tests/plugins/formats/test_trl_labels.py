from collections import Counter

import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.core.plugins import build
from steelyard.core.types import Rating
from strategies import case

ROW = {"prompt": "哪个大？", "completions": ["第一步。", "第二步\n还是。", "🙂"], "labels": [True, True, False]}


def test_the_steps_are_one_answer_and_each_label_a_rating_of_its_place():
    (one,), _ = read("trl_stepwise", ROW)
    (response,) = one.responses
    assert response.text == "第一步。\n第二步\n还是。\n🙂"
    assert [rating.value for rating in one.ratings] == [1.0, 1.0, 0.0]
    assert [rating.spans[0][:2] for rating in one.ratings] == [(0, 4), (5, 12), (13, 14)]
    assert [response.text[slice(*rating.spans[0][:2])] for rating in one.ratings] == ROW["completions"]


@pytest.mark.parametrize(
    "change",
    [
        {"labels": [True, True]},
        {"labels": [1, 1, 0]},
        {"labels": []},
        {"completions": [], "labels": []},
        {"completions": ["a", 2, "c"]},
        {"completions": "a"},
        {"prompt": [{"role": "user", "content": "q"}]},
    ],
)
def test_a_row_of_another_form_is_refused_with_its_line(change):
    with pytest.raises(RecordError, match=r"^f\.jsonl:2"):
        read("trl_stepwise", ROW, ROW | change)


TRL_UNPAIRED_ROW = {"prompt": "问", "completion": "答 🙂", "label": True}


@pytest.mark.parametrize(("label", "value"), [(True, 1.0), (False, 0.0)])
def test_the_label_is_a_rating_and_nothing_is_ranked(label, value):
    (one,), _ = read("trl_unpaired", TRL_UNPAIRED_ROW | {"label": label})
    (rating,) = one.ratings
    assert (rating.dimension, rating.value, rating.range) == ("label", value, (0, 1))
    assert rating.response == one.responses[0].id
    assert (one.ranking, one.judgments, one.pairs) == (None, (), None)


@pytest.mark.parametrize("label", [1, 0, "true", None])
def test_a_label_that_is_no_truth_is_refused(label):
    with pytest.raises(RecordError, match=r"^f\.jsonl:2 at label: a label that is neither true nor false"):
        read("trl_unpaired", TRL_UNPAIRED_ROW, TRL_UNPAIRED_ROW | {"label": label})


def test_each_labelled_answer_becomes_a_row():
    ratings = tuple(
        Rating(response=name, rater="unknown", kind="human", dimension="label", value=value, range=(0, 1))
        for name, value in (("a", 1.0), ("b", 0.0), ("c", 0.5))
    )
    labelled = case(text="q", responses="abcd", ranking=(("a",), ("b",)), ratings=ratings)
    rows, dropped = write("trl_unpaired", labelled)
    prompt = [{"role": "user", "content": "q"}]
    assert rows == [
        {"prompt": prompt, "completion": [{"role": "assistant", "content": "answer a"}], "label": True},
        {"prompt": prompt, "completion": [{"role": "assistant", "content": "answer b"}], "label": False},
    ]
    assert list(build("formats", "trl_unpaired", {"texts": True}).write([labelled], Counter())) == [
        {"prompt": "q", "completion": "answer a", "label": True},
        {"prompt": "q", "completion": "answer b", "label": False},
    ]
    assert dropped["answers without a label of 0 or 1"] == 2
    assert dropped["cases cut into a row for each answer"] == 1
    assert (dropped["rankings"], dropped["more than two responses"]) == (1, 1)


def test_a_prompt_of_several_turns_makes_all_turns():
    given = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
    row = {"prompt": given, "completion": "a", "label": True}
    written = row | {"completion": [{"role": "assistant", "content": "a"}]}
    assert write("trl_unpaired", *read("trl_unpaired", row)[0])[0] == [written]


def test_prompt_and_completion_without_a_label_are_not_claimed():
    matches = build("formats", "trl_unpaired").matches
    assert matches(TRL_UNPAIRED_ROW)
    assert not matches({"prompt": "q", "completion": "a"})
    assert not matches(TRL_UNPAIRED_ROW | {"label": 1})
