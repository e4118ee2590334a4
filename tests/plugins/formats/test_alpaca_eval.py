import pytest

from format_rows import read
from steelyard.core.errors import RecordError

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
def test_a_preference_is_a_verdict(preference, verdict):
    row = {**ROW, "preference": preference}
    (one,), _ = read("alpaca_eval", row)
    (said,) = one.judgments
    assert (said.verdict, said.judge, said.kind) == (verdict, "judge", "llm")


@pytest.mark.parametrize("index", [0, "ann"])
def test_the_crowd_has_indices(index):
    row = {key: value for key, value in ROW.items() if key != "annotator"} | {"annotator_index": index}
    (one,), _ = read("alpaca_eval", row)
    assert (one.judgments[0].judge, one.judgments[0].kind) == (str(index), "human")


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
