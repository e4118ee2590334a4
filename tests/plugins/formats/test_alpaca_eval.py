import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from strategies import case, judgment

ROW = {
    "instruction": "q",
    "output_1": "a",
    "generator_1": "m",
    "output_2": "b",
    "generator_2": "n",
    "dataset": "d",
    "annotator": "judge",
    "preference": 1,
}


@pytest.mark.parametrize(
    ("preference", "verdict"),
    [(1, "left"), (2, "right"), (1.5, "tie"), (1.49, "left"), (1.9, "right"), (None, "none"), (2.0, "right")],
)
def test_a_preference_is_a_verdict_and_comes_back_as_it_was(preference, verdict):
    row = {**ROW, "preference": preference}
    (one,), _ = read("alpaca_eval", row)
    (said,) = one.judgments
    assert (said.verdict, said.judge, said.kind) == (verdict, "judge", "llm")
    assert write("alpaca_eval", one)[0] == [row]


@pytest.mark.parametrize("index", [0, "ann"])
def test_the_crowd_has_indices(index):
    row = {key: value for key, value in ROW.items() if key != "annotator"} | {"annotator_index": index}
    (one,), _ = read("alpaca_eval", row)
    assert (one.judgments[0].judge, one.judgments[0].kind) == (str(index), "human")
    assert write("alpaca_eval", one)[0] == [row]


def test_a_case_is_a_row_a_judgment_or_a_row_a_response():
    judged = case(responses="abc", judgments=["a>b", judgment("b=c", judge="gpt", kind="llm")])
    rows, dropped = write("alpaca_eval", judged)
    assert [(row["output_1"], row["preference"], row.get("annotator")) for row in rows] == [
        ("answer a", 1, None),
        ("answer b", 1.5, "gpt"),
    ]
    rows, _ = write("alpaca_eval", case(responses="abc"))
    assert [row["output"] for row in rows] == ["answer a", "answer b", "answer c"]
    _, dropped = write("alpaca_eval", case(responses="abc", judgments=["a>b"]))
    assert dropped["responses in no judgment"] == 1


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"preference": 3}, "preference 3"),
        ({"preference": "1"}, "preference '1'"),
        ({"preference": True}, "preference True"),
        ({"output_2": None}, "output_2"),
        ({"generator_1": 3}, "generator_1"),
        ({"annotator_index": [1]}, "annotator_index"),
    ],
)
def test_what_is_wrong_is_named(change, found):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1.*{found}"):
        read("alpaca_eval", {**ROW, **change})
