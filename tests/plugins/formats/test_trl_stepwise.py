import msgspec
import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from strategies import case

ROW = {"prompt": "哪个大？", "completions": ["第一步。", "第二步\n还是。", "🙂"], "labels": [True, True, False]}


def test_the_steps_are_one_answer_and_each_label_a_rating_of_its_place():
    (one,), _ = read("trl_stepwise", ROW)
    (response,) = one.responses
    assert response.text == "第一步。\n第二步\n还是。\n🙂"
    assert [rating.value for rating in one.ratings] == [1.0, 1.0, 0.0]
    assert [rating.spans[0][:2] for rating in one.ratings] == [(0, 4), (5, 12), (13, 14)]
    assert [response.text[slice(*rating.spans[0][:2])] for rating in one.ratings] == ROW["completions"]
    assert write("trl_stepwise", one)[0] == [ROW]


@pytest.mark.parametrize("steps", [[""], ["", ""], ["a", "", "b\n"], ["\n"]])
def test_empty_steps_and_line_breaks_come_back(steps):
    row = {"prompt": "q", "completions": steps, "labels": [True] * len(steps)}
    assert write("trl_stepwise", *read("trl_stepwise", row)[0])[0] == [row]


def test_an_answer_whose_steps_are_not_all_rated_is_counted_and_not_written():
    (one,), _ = read("trl_stepwise", ROW)
    rows, lost = write("trl_stepwise", msgspec.structs.replace(one, ratings=one.ratings[1:]))
    assert (rows, lost["answers without a label for each step"], lost["ratings"]) == ([], 1, 2)


def test_a_conversation_is_another_shape():
    (one,), _ = read("trl_stepwise", ROW)
    talk = case(text="q", responses="ab", ranking=(("a",), ("b",))).prompt.messages * 2
    rows, lost = write(
        "trl_stepwise", msgspec.structs.replace(one, prompt=msgspec.structs.replace(one.prompt, messages=talk))
    )
    assert (rows, lost["cases of another shape"], lost["earlier turns"]) == ([], 1, 1)


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
