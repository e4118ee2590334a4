from collections import Counter

import msgspec
import pytest
from hypothesis import given

from steelyard.core.errors import RecordError
from steelyard.core.types import Pair, Rating, Response
from steelyard.curation.merge import union
from strategies import case, cases, judgment


def joined(first, second):
    warnings = Counter()
    return union(first, second, warnings), +warnings


def test_responses_judgments_and_pairs_of_both_are_kept_once():
    rating = Rating(response="a", rater="r", kind="human", dimension="d", value=1.0, id="x")
    first = case(responses="abc", judgments=["a>b"], pairs=(Pair(better="a", worse="b"),), ratings=(rating,))
    second = case(
        responses="bcd", judgments=["a>b", "c>d"], pairs=(Pair(better="a", worse="b"), Pair(better="c", worse="d"))
    )
    second = msgspec.structs.replace(second, ratings=(rating,))
    both, warnings = joined(first, second)
    assert [response.id for response in both.responses] == ["a", "b", "c", "d"]
    assert both.judgments == (judgment("a>b"), judgment("c>d"))
    assert (len(both.pairs), len(both.ratings), warnings) == (2, 1, {})


def test_beside_curated_pairs_a_ranking_is_listed_too_and_counted():
    curated = case(responses="ab", pairs=(Pair(better="a", worse="b"),), ranking=(("a",), ("b",)))
    ranked = case(responses="abc", ranking=(("b",), ("a", "c")))
    for first, second in ((curated, ranked), (ranked, curated)):
        both, warnings = joined(first, second)
        assert {(pair.better, pair.worse) for pair in both.pairs} == {("a", "b"), ("b", "a"), ("b", "c")}
        assert warnings["pairs of a ranking, listed beside curated pairs"] == 2
        assert warnings["pairs listed both ways"] == 1


def test_curated_pairs_of_the_same_ranking_stay_alone():
    curated = case(responses="abc", pairs=(Pair(better="a", worse="b"),), ranking=(("a",), ("b", "c")))
    both, warnings = joined(case(responses="abc", ranking=(("a",), ("c", "b"))), curated)
    assert (both.pairs, warnings) == (curated.pairs, {})


def test_repeats_within_one_file_are_kept_as_often_as_they_stand():
    both, _ = joined(case(judgments=["a>b", "a>b"]), case(judgments=["a>b", "a>b", "a>b"]))
    assert both.judgments == (judgment("a>b"),) * 3


def test_evidence_with_an_id_is_one_by_its_id():
    both, _ = joined(
        case(judgments=[judgment("a>b", id="1")]), case(judgments=[judgment("b>a", id="1"), judgment("b>a", id="2")])
    )
    assert [one.id for one in both.judgments] == ["1", "2"]


@given(cases())
def test_a_case_with_itself_is_itself(one):
    assert joined(one, one) == (one, {})


def test_rankings_that_differ_leave_none():
    given_ranking = (("a", "b"), ("c",))
    assert joined(case(ranking=given_ranking), case())[0].ranking == given_ranking
    assert joined(case(ranking=given_ranking), case(ranking=(("b", "a"), ("c",))))[0].ranking == given_ranking
    assert joined(case(ranking=given_ranking), case(ranking=(("c",), ("a",)))) == (case(), {"rankings that differ": 1})


def test_two_texts_under_one_name_are_refused():
    with pytest.raises(RecordError, match="prompt 'p' has two different texts"):
        joined(case(text="x"), case(text="y"))
    other = msgspec.json.decode(msgspec.json.encode(case()).replace(b"answer b", b"answer z"), type=type(case()))
    with pytest.raises(RecordError, match="response 'b' of prompt 'p' has two different texts"):
        joined(case(), other)


def test_what_one_case_says_is_taken_over_and_what_two_say_differently_is_refused_or_counted():
    both, warnings = joined(case(source="x"), case(category=("m",), meta={"k": 1}))
    assert (both.prompt.source, both.prompt.category, both.meta, warnings) == ("x", ("m",), {"k": 1}, {})
    with pytest.raises(RecordError, match="two different values of category"):
        joined(case(category=("m",)), case(category=("n",)))
    first, second = (
        case(judgments=[judgment("a>b", id="1")], meta={"k": 1}),
        case(judgments=[judgment("b>a", id="1")], meta={"k": 2}),
    )
    both, warnings = joined(first, second)
    assert (both.judgments, both.meta) == (first.judgments, {"k": 1})
    assert warnings == {"judgments of one id that differ": 1, "meta values that differ": 1}


def test_judgments_of_two_people_with_one_id_are_two():
    first, second = (
        case(judgments=[judgment(short, judge, id="1")]) for short, judge in (("a>b", "ann"), ("b>a", "bo"))
    )
    both, warnings = joined(first, second)
    assert [(each.judge, each.id) for each in both.judgments] == [("ann", "1"), ("bo", "1~2")]
    assert warnings == {}
    assert joined(both, second) == joined(both, first) == (both, {})


def test_an_author_is_taken_over_and_two_are_counted():
    def by(name):
        return msgspec.structs.replace(case(), responses=(Response(id="a", text="t", author=name),))

    assert joined(by(None), by("m")) == (by("m"), {})
    assert joined(by("n"), by("m")) == (by("n"), {"authors that differ": 1})
