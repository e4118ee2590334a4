import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.methods.annotation.derived import judgments_from_ratings
from strategies import case, judgment

FIVE = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")


def rated(response, *values, prompt="问", **fields):
    return {"prompt": prompt, "response": response, **dict(zip(FIVE, values, strict=True)), **fields}


PREFERRED = {
    "split": "train",
    "prompt": "问",
    "response_1": "甲",
    "response_2": "乙",
    "preference_strength": 2,
    "preference_statement": "@Response 2 is better.",
    "all_preferences_unprocessed": [{"strength": -1, "justification": "Shorter."}],
}


def test_consecutive_rows_of_one_prompt_are_one_case():
    cases, noted = read(
        "helpsteer2", rated("a", 4, 4, 4, 2, 1), rated("b", 1, 0, 3, 2, 2), rated("c", 1, 1, 1, 1, 1, prompt="再")
    )
    assert [[response.text for response in one.responses] for one in cases] == [["a", "b"], ["c"]]
    assert {(r.rater, r.kind, r.range) for r in cases[0].ratings} == {("unknown", "human", (0, 4))}
    assert [r.value for r in cases[0].ratings] == [4, 4, 4, 2, 1, 1, 0, 3, 2, 2]
    assert cases[0].judgments == ()
    assert not noted


def test_more_complexity_or_words_are_not_better():
    (one,), _ = read("helpsteer2", rated("a", 4, 4, 4, 0, 0), rated("b", 1, 4, 3, 4, 4))
    assert [(j.verdict, j.meta["dimension"]) for j in judgments_from_ratings(one)] == [
        ("left", "helpfulness"), ("left", "coherence"),
    ]  # fmt: skip


def test_a_number_outside_the_scale_is_counted_and_a_list_refused():
    _, noted = read("helpsteer2", rated("a", 5, 4, 4, 4, 4))
    assert noted == {"ratings outside their scale (helpfulness)": 1}
    with pytest.raises(RecordError, match=r"^f\.jsonl:2 at coherence: a score that is no number"):
        read("helpsteer2", rated("a", 1, 1, 1, 1, 1), rated("b", 1, 1, [3, 4], 1, 1))


@pytest.mark.parametrize(("strength", "verdict"), [(-3, "left"), (-1, "left"), (0, "tie"), (1, "right"), (3, "right")])
def test_a_strength_is_a_verdict(strength, verdict):
    (one,), _ = read("helpsteer2", {**PREFERRED, "preference_strength": strength})
    overall, individual = one.judgments
    assert (overall.verdict, overall.batch, overall.meta) == (verdict, "overall", {"strength": strength})
    assert (individual.verdict, individual.batch, individual.reason) == ("left", "individual", "Shorter.")
    assert (overall.left, overall.right, overall.kind) == ("response_1", "response_2", "human")


@pytest.mark.parametrize("strength", [4, -4, 1.5, True, "1"])
def test_a_strength_outside_the_scale_is_named(strength):
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at preference_strength: .* is no preference"):
        read("helpsteer2", {**PREFERRED, "preference_strength": strength})
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at all_preferences_unprocessed\[1\]: a preference without"):
        read("helpsteer2", {**PREFERRED, "all_preferences_unprocessed": [{"strength": 0}, {}]})


def test_rated_and_compared_rows_may_follow_each_other():
    rows = [rated("a", 1, 1, 1, 1, 1), PREFERRED, PREFERRED | {"split": "x"}, rated("a", 1, 1, 1, 1, 1)]
    cases, _ = read("helpsteer2", *rows)
    assert [len(one.judgments) for one in cases] == [0, 2, 2, 0]
    assert write("helpsteer2", *cases)[0] == rows


def test_a_plain_judgment_is_the_overall_preference():
    (row,), lost = write("helpsteer2", case(responses="ab", judgments=["b>a", "a>b"]))
    assert row == {
        "prompt": "What is it?",
        "response_1": "answer a",
        "response_2": "answer b",
        "preference_strength": 1,
    }
    assert lost["judgments beyond those of a row"] == 1
    assert write("helpsteer2", case(responses="ab", judgments=[judgment("a?b")])) == ([], {"cases of another shape": 1})
