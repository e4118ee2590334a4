import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from strategies import case

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
    (one,), noted = read("helpsteer3", ROW)
    assert [(j.verdict, j.batch, j.reason, j.meta) for j in one.judgments] == [
        ("left", "overall", None, {"strength": -1}),
        ("right", "individual", "r", {"strength": 2, "feedback1": "f"}),
        ("tie", "individual", "s", {"strength": 0}),
    ]
    assert (one.prompt.language, one.prompt.category, one.ranking) == ("ko", ("multilingual",), None)
    assert not noted


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
    assert write("helpsteer3", one)[0] == [row]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"overall_preference": 7}, r" at overall_preference: 7 is no preference"),
        ({"individual_preference": [{"score": None}]}, r" at individual_preference\[0\]: None is no preference"),
        ({"individual_preference": [{"score": 1, "reasoning": 3}]}, r" at individual_preference\[0\]: a reason that"),
        ({"individual_preference": "x"}, ": the row has str under 'individual_preference'"),
        ({"context": "안녕"}, " at context: a context that is no list"),
        ({"response2": None}, ": the row lacks 'response2'"),
    ],
)
def test_a_broken_row_is_named(change, found):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2{found}"):
        read("helpsteer3", ROW, {**ROW, **change})


def test_a_verdict_from_elsewhere_is_the_weakest_of_its_side():
    for short, number in (("a>b", -1), ("b>a", 1), ("a=b", 0)):
        (row,), _ = write("helpsteer3", case(responses="ab", judgments=[short]))
        assert row["overall_preference"] == number


def test_other_shapes_are_counted():
    for one in (case(responses="ab"), case(responses="abc", judgments=["a>b"])):
        assert write("helpsteer3", one) == ([], {"cases of another shape": 1})
