import msgspec
import pytest

from steelyard.core.checks import checked_scores
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Scores
from steelyard.evaluation.coverage import CoverageCounter, coverage_lines, has_equal_shares, unequal_coverage
from strategies import case

# Greek: 2 of 3 cut; Chinese: 1 of 4 cut and 1 unscored; without a language: all whole.
LINES = [
    Scores(prompt="p", language="el", scores={"a": 1.0, "b": 2.0, "c": 3.0}, cut=("a", "b")),
    Scores(prompt="q", language="zh", scores={"a": 1.0, "b": None}, unscored={"b": "too long"}),
    Scores(prompt="r", language="zh", scores={"a": 1.0, "b": 2.0}, cut=("b",)),
    Scores(prompt="s", scores={"a": 1.0}),
]


def report_of(lines):
    counter = CoverageCounter()
    for line in lines:
        counter.add(line)
    return counter.report()


def test_what_was_cut_and_unscored_is_counted_by_language():
    assert msgspec.to_builtins(report_of(LINES)) == {
        "num_responses": 8,
        "num_cut": 3,
        "num_unscored": 1,
        "by_language": {
            "el": {"num_responses": 3, "num_cut": 2, "num_unscored": 0},
            "unknown": {"num_responses": 1, "num_cut": 0, "num_unscored": 0},
            "zh": {"num_responses": 4, "num_cut": 1, "num_unscored": 1},
        },
    }
    counter = CoverageCounter()
    for line in LINES:
        counter.add(line)
    assert counter.notes() == {
        "cut responses": 3, "cut responses, el": 2, "cut responses, zh": 1,
        "unscored responses": 1, "unscored responses, zh": 1,
    }  # fmt: skip


def test_it_is_told_with_the_most_affected_language_first_and_only_where_there_is_something_to_tell():
    assert list(coverage_lines(report_of(LINES))) == [
        "3 of 8 responses cut to fit the limit (37.5%: el 66.7%, zh 25.0%)",
        "1 of 8 responses without a score (12.5%: zh 25.0%)",
    ]
    assert list(coverage_lines(report_of(LINES[3:]))) == []
    assert list(coverage_lines(report_of(LINES[:1]))) == ["2 of 3 responses cut to fit the limit (66.7%)"]


def test_models_that_read_unlike_shares_are_told_apart_and_equal_ones_are_not():
    whole, cut = report_of(LINES[3:]), report_of(LINES[:1])
    assert unequal_coverage({"a": whole, "b": whole, "judge": None}) == []
    assert unequal_coverage({"a": whole, "b": cut, "judge": None}) == [
        "a: all responses read whole",
        "b: 2 of 3 responses cut to fit the limit (66.7%)",
    ]


def test_equal_totals_of_other_languages_are_not_read_alike():
    greek, chinese = CoverageCounter(), CoverageCounter()
    for counter, cut in ((greek, "el"), (chinese, "zh")):
        for language in ("el", "zh"):
            counter.count(language, 10, 5 if language == cut else 0, 0)
    assert greek.report().num_cut == chinese.report().num_cut
    told = unequal_coverage({"a": greek.report(), "b": chinese.report()})
    assert told == [
        "a: 5 of 20 responses cut to fit the limit (25.0%: el 50.0%)",
        "b: 5 of 20 responses cut to fit the limit (25.0%: zh 50.0%)",
    ]
    assert not has_equal_shares(greek.report(), ["el", "zh"])
    assert has_equal_shares(greek.report(), ["zh"])


def test_a_response_that_was_cut_has_a_score():
    asked = case("p", "ab")
    line = Scores(prompt="p", scores={"a": 1.0, "b": 2.0}, cut=("b",))
    assert checked_scores(asked, line, by="the model").cut == ("b",)
    for wrong in (("c",), ("a", "b")):
        given = Scores(prompt="p", scores={"a": None, "b": 2.0}, unscored={"a": "too long"}, cut=wrong)
        with pytest.raises(EvidenceError, match="which it did not score"):
            checked_scores(asked, given, by="the model")
