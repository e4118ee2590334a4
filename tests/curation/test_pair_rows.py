"""Rows of one prompt as one case: what becomes of their answers, pairs, margins and meta, and back again."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from steelyard.core.checks import check_case
from steelyard.core.errors import RecordError
from steelyard.core.types import Case, Message, Pair, Prompt, Rating, Response
from steelyard.curation.merge import join_rows, num_rows_apart, only_kind, prompt_key, split_rows
from steelyard.ranking.pairs import pairs_of
from strategies import case, judgment


def row(number, better, worse, *, text="问题", meta=None, margin=None, ratings=(), case_meta=None):
    """A row whose answers' ids are their texts, as a format reads it."""
    values = zip((better, worse), ratings, strict=False)
    return Case(
        prompt=Prompt(id=f"p{number}", messages=(Message(role="user", content=text),), meta=meta),
        responses=(Response(id=better, text=better), Response(id=worse, text=worse)),
        ratings=tuple(
            Rating(response=name, rater="r", kind="llm", dimension="score", value=one) for name, one in values
        ),
        ranking=((better,), (worse,)),
        pairs=None if margin is None else (Pair(better=better, worse=worse, margin=margin),),
        meta=case_meta or {},
    )


def joined(*rows):
    warnings = Counter()
    return check_case(join_rows(rows, warnings)), +warnings


def without_id(one):
    return replace(one, prompt=replace(one.prompt, id=""))


def ends(one):
    return [(one.responses[pair.better].id, one.responses[pair.worse].id) for pair in pairs_of(one)]


def test_a_whole_order_needs_no_list():
    both, warnings = joined(row(1, "a", "b"), row(2, "b", "c"), row(3, "a", "c"))
    assert (both.prompt.id, [one.id for one in both.responses]) == ("p1", ["a", "b", "c"])
    assert (both.ranking, both.pairs, both.meta, warnings) == ((("a",), ("b",), ("c",)), None, {}, {})


def test_a_chain_is_ranked_through_and_trains_on_its_rows_alone():
    both, _ = joined(row(1, "a", "b"), row(2, "b", "c"))
    assert both.ranking == (("a",), ("b",), ("c",))
    assert ends(both) == [("a", "b"), ("b", "c")]
    assert {pair[:2] for pair in pairs_of(both, "tiers")} == {(0, 1), (0, 2), (1, 2)}


def test_a_row_given_twice_counts_twice_and_contradictions_are_counted():
    both, warnings = joined(row(1, "a", "b"), row(2, "a", "b"), row(3, "b", "a"))
    assert both.ranking == (("a", "b"),)
    assert ends(both) == [("a", "b"), ("a", "b"), ("b", "a")]
    assert warnings == {"rows in a cycle with others of their prompt": 3}


def test_equal_answers_by_different_authors_stay_two():
    one, other = row(1, "a", "b"), row(2, "a", "c")
    signed = replace(other, responses=(replace(other.responses[0], author="m"), other.responses[1]))
    both, _ = joined(one, signed)
    assert [(answer.id, answer.author) for answer in both.responses] == [
        ("a", None), ("b", None), ("a~2", "m"), ("c", None),
    ]  # fmt: skip


def test_what_rows_say_apart_stays_with_each():
    rows = [
        row(1, "a", "b", meta={"set": "x", "turn": 1}, margin=0.5, ratings=(3.0, 1.0)),
        row(2, "b", "c", meta={"set": "x", "turn": 2}, ratings=(2.0, 0.0), case_meta={"as_read": {"format": "trl"}}),
    ]
    both, _ = joined(*rows)
    assert both.prompt.meta == {"set": "x"}
    assert both.pairs == (Pair(better="a", worse="b", margin=0.5), Pair(better="b", worse="c"))
    assert [(rating.response, rating.value) for rating in both.ratings] == [
        ("a", 3.0),
        ("b", 1.0),
        ("b", 2.0),
        ("c", 0.0),
    ]
    assert list(map(without_id, split_rows(both))) == list(map(without_id, rows))


texts = st.sampled_from("abcde")
some_rows = st.lists(
    st.builds(
        lambda number, pair, meta, margin, ratings, case_meta: row(
            number, *pair, meta=meta, margin=margin, ratings=ratings, case_meta=case_meta
        ),
        st.integers(0, 9),
        st.lists(texts, min_size=2, max_size=2, unique=True),
        st.none() | st.dictionaries(st.sampled_from("xyz"), st.none() | st.integers(0, 2), min_size=1),
        st.none() | st.sampled_from([0.0, 1.5]),
        st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=2) | st.just([]),
        st.none() | st.just({"as_read": {"format": "trl", "null": ["margin"]}}),
    ),
    min_size=2,
    max_size=8,
)


@settings(deadline=None, max_examples=60)
@given(some_rows)
def test_the_rows_come_back_and_no_pair_is_added_or_lost(rows):
    both, _ = joined(*rows)
    assert Counter(ends(both)) == Counter(one.ranking[0] + one.ranking[1] for one in rows)
    back = [without_id(one) for one in split_rows(both)]
    expected = [without_id(one) for one in rows]
    if "rows" in both.meta:
        assert back == expected
    else:  # every row is what the case says of its pair: the writers of pair formats make the rows of it
        assert back == [without_id(both)]
        assert all(
            (one.prompt.meta, one.meta, one.pairs and 1) == (both.prompt.meta, both.meta, None) for one in expected
        ) or (all(one.pairs for one in rows))


def test_only_rows_whose_pair_is_left_come_back_and_other_pairs_follow():
    both, _ = joined(row(1, "a", "b", meta={"n": 1}), row(2, "b", "c", meta={"n": 2}))
    curated = replace(both, pairs=(Pair(better="b", worse="c"), Pair(better="a", worse="c", weight=0.5)))
    first, rest = split_rows(curated)
    assert (ends(first), first.prompt.meta, first.pairs) == ([("b", "c")], {"n": 2}, None)
    assert rest.pairs == (Pair(better="a", worse="c", weight=0.5),)
    assert list(split_rows(replace(curated, pairs=()))) == [replace(curated, pairs=(), meta={})]


@pytest.mark.parametrize("rows", [3, [1], [{"better": "a"}], [{"better": "a", "worse": "b", "meta": 1}]])
def test_a_meta_of_that_name_from_elsewhere_is_left_alone(rows):
    one = replace(row(1, "a", "b"), meta={"rows": rows})
    assert list(split_rows(one)) == [one]


def test_a_broken_record_of_rows_is_refused():
    broken = replace(row(1, "a", "b"), meta={"rows": [{"better": "a", "worse": "b", "ratings": [1]}]})
    with pytest.raises(RecordError, match=r"meta\.rows of prompt 'p1' has invalid ratings"):
        list(split_rows(broken))


def test_only_pair_rows_with_a_prompt_are_joined():
    one = row(1, "a", "b")
    assert prompt_key(one) == prompt_key(row(2, "c", "d", meta={"x": 1}))
    assert prompt_key(one) != prompt_key(replace(one, prompt=replace(one.prompt, language="zh")))
    apart = [
        row(1, "a", "b", text=" \n"),
        replace(one, responses=(*one.responses, Response(id="c", text="c"))),
        replace(one, responses=(one.responses[0], replace(one.responses[0], id="b"))),
        replace(one, ranking=(("a", "b"),)),
        replace(one, pairs=(Pair(better="b", worse="a"),)),
    ]
    assert [prompt_key(case) for case in apart] == [None] * len(apart)
    assert num_rows_apart([one, row(2, "b", "c"), row(3, "a", "b", text="another"), *apart]) == (2, 1)


PEOPLE = judgment("a>b", judge="ann", kind="human")
MODEL = judgment("b>a", judge="gpt", kind="llm")
RATED = Rating(response="a", rater="gpt", kind="llm", dimension="x", value=1.0)
RANKED = case(responses="abc", ranking=(("a",), ("b", "c")))


def test_either_part_keeps_its_evidence_and_the_responses():
    mixed = replace(RANKED, ranking=None, judgments=(PEOPLE, MODEL), ratings=(RATED,))
    warnings = Counter()
    assert only_kind(mixed, "human", warnings) == replace(mixed, judgments=(PEOPLE,), ratings=())
    assert +warnings == {"judgments of other kinds, left out": 1, "ratings of other kinds, left out": 1}
    assert only_kind(mixed, "llm", Counter()) == replace(mixed, judgments=(MODEL,))
    warnings = Counter()
    assert only_kind(mixed, "model", warnings) == replace(mixed, judgments=(), ratings=())
    assert warnings["cases without evidence of the kind"] == 1


def test_a_ranking_stays_where_all_evidence_is_of_the_kind():
    agreed = replace(RANKED, judgments=(PEOPLE,), pairs=(Pair(better="a", worse="b"),))
    warnings = Counter()
    assert only_kind(agreed, "human", warnings) == agreed
    assert +warnings == {}


@pytest.mark.parametrize("judgments", [(), (MODEL,), (PEOPLE, MODEL)])
def test_a_ranking_on_other_or_unsaid_evidence_is_left_out(judgments):
    warnings = Counter()
    kept = only_kind(replace(RANKED, judgments=judgments, pairs=(Pair(better="a", worse="b"),)), "human", warnings)
    assert (kept.ranking, kept.pairs) == (None, None)
    assert warnings["rankings on other or unsaid evidence, left out"] == 1
    assert warnings["listed pairs on other or unsaid evidence, left out"] == 1
