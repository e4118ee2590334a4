import pytest

from format_rows import read
from steelyard.annotation.derived_judgments import judgments_from_ratings
from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.plugins.formats.helpsteer import (
    PreferenceKeys,
    preferences_in,
)

NAMES = PreferenceKeys("overall", "why", "each", "score", "because")


def preferences(**value):
    return preferences_in(Row(Place("f", 4), value), NAMES, ("a", "b"))


def test_nothing_is_no_judgment():
    assert preferences() == preferences(overall=None, each=None) == ()


@pytest.mark.parametrize("item", [3, {}, {"score": 9}, {"score": "1"}, {"score": 1, "because": 2}])
def test_a_broken_preference_is_named(item):
    with pytest.raises(RecordError, match=r"^f:4 at each\[1\]: "):
        preferences(each=[{"score": 1}, item])


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
    cases, warnings = read(
        "helpsteer2", rated("a", 4, 4, 4, 2, 1), rated("b", 1, 0, 3, 2, 2), rated("c", 1, 1, 1, 1, 1, prompt="再")
    )
    assert [[response.text for response in one.responses] for one in cases] == [["a", "b"], ["c"]]
    assert {(r.rater, r.kind, r.range) for r in cases[0].ratings} == {("unknown", "human", (0, 4))}
    assert [r.value for r in cases[0].ratings] == [4, 4, 4, 2, 1, 1, 0, 3, 2, 2]
    assert cases[0].judgments == ()
    assert not warnings


def test_more_complexity_or_words_are_not_better():
    (one,), _ = read("helpsteer2", rated("a", 4, 4, 4, 0, 0), rated("b", 1, 4, 3, 4, 4))
    assert [(j.verdict, j.meta["dimension"]) for j in judgments_from_ratings(one)] == [
        ("left", "helpfulness"), ("left", "coherence"),
    ]  # fmt: skip


def test_a_number_outside_the_scale_is_counted_and_a_list_refused():
    _, warnings = read("helpsteer2", rated("a", 5, 4, 4, 4, 4))
    assert warnings == {"ratings outside their scale (helpfulness)": 1}
    with pytest.raises(RecordError, match=r"^f\.jsonl:2 at coherence: .* is not a number"):
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
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at preference_strength: .* is not a preference"):
        read("helpsteer2", {**PREFERRED, "preference_strength": strength})
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at all_preferences_unprocessed\[1\]: a preference without"):
        read("helpsteer2", {**PREFERRED, "all_preferences_unprocessed": [{"strength": 0}, {}]})


def test_rated_and_compared_rows_may_follow_each_other():
    rows = [rated("a", 1, 1, 1, 1, 1), PREFERRED, PREFERRED | {"split": "x"}, rated("a", 1, 1, 1, 1, 1)]
    cases, _ = read("helpsteer2", *rows)
    assert [len(one.judgments) for one in cases] == [0, 2, 2, 0]


ROW = {
    "domain": "multilingual",
    "language": "korean",
    "context": [{"role": "user", "content": "안녕"}],
    "response1": "甲",
    "response2": "乙",
    "overall_preference": -1,
    "individual_preference": [{"score": 2, "reasoning": "r", "feedback1": "f"}, {"score": 0, "reasoning": "s"}],
}


def test_overall_and_individual_preferences_are_judgments_of_two_batches():
    (one,), warnings = read("helpsteer3", ROW)
    assert [(j.verdict, j.batch, j.reason, j.meta) for j in one.judgments] == [
        ("left", "overall", None, {"strength": -1}),
        ("right", "individual", "r", {"strength": 2, "feedback1": "f"}),
        ("tie", "individual", "s", {"strength": 0}),
    ]
    assert (one.prompt.language, one.prompt.category, one.ranking) == ("ko", ("multilingual",), None)
    assert not warnings


@pytest.mark.parametrize(
    ("domain", "language", "code", "category"),
    [
        ("code", "python", None, ("code", "python")),
        ("code", "go", None, ("code", "go")),
        ("general", "english", "en", ("general",)),
        ("stem", None, None, ("stem",)),
        (None, "klingon", None, ("klingon",)),
    ],
)
def test_a_programming_language_is_no_language(domain, language, code, category):
    row = {**ROW, "domain": domain, "language": language}
    (one,), _ = read("helpsteer3", row)
    assert (one.prompt.language, one.prompt.category) == (code, category)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"overall_preference": 7}, r" at overall_preference: 7 is not a preference"),
        ({"individual_preference": [{"score": None}]}, r" at individual_preference\[0\]: None is not a preference"),
        ({"individual_preference": [{"score": 1, "reasoning": 3}]}, r" at individual_preference\[0\]: a reason that"),
        ({"individual_preference": "x"}, ": the row has str under 'individual_preference'"),
        ({"context": "안녕"}, " at context: a context that is not a list"),
        ({"response2": None}, ": the row lacks 'response2'"),
    ],
)
def test_a_broken_row_is_named(change, found):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2{found}"):
        read("helpsteer3", ROW, {**ROW, **change})
