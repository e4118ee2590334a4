from collections import Counter

import pytest
from msgspec.structs import replace

from steelyard.core.types import Pair, Rating
from steelyard.methods.curation.parts import only_kind
from strategies import case, judgment

PEOPLE = judgment("a>b", judge="ann", kind="human")
MODEL = judgment("b>a", judge="gpt", kind="llm")
RATED = Rating(response="a", rater="gpt", kind="llm", dimension="x", value=1.0)
RANKED = case(responses="abc", ranking=(("a",), ("b", "c")))


def test_either_part_keeps_its_evidence_and_the_responses():
    mixed = replace(RANKED, ranking=None, judgments=(PEOPLE, MODEL), ratings=(RATED,))
    noted = Counter()
    assert only_kind(mixed, "human", noted) == replace(mixed, judgments=(PEOPLE,), ratings=())
    assert +noted == {"judgments of other kinds, left out": 1, "ratings of other kinds, left out": 1}
    assert only_kind(mixed, "llm", Counter()) == replace(mixed, judgments=(MODEL,))
    noted = Counter()
    assert only_kind(mixed, "model", noted) == replace(mixed, judgments=(), ratings=())
    assert noted["cases without evidence of the kind"] == 1


def test_a_ranking_stays_where_all_evidence_is_of_the_kind():
    agreed = replace(RANKED, judgments=(PEOPLE,), pairs=(Pair(better="a", worse="b"),))
    noted = Counter()
    assert only_kind(agreed, "human", noted) == agreed
    assert +noted == {}


@pytest.mark.parametrize("judgments", [(), (MODEL,), (PEOPLE, MODEL)])
def test_a_ranking_on_other_or_unsaid_evidence_is_left_out(judgments):
    noted = Counter()
    kept = only_kind(replace(RANKED, judgments=judgments, pairs=(Pair(better="a", worse="b"),)), "human", noted)
    assert (kept.ranking, kept.pairs) == (None, None)
    assert noted["rankings on other or unsaid evidence, left out"] == 1
    assert noted["listed pairs on other or unsaid evidence, left out"] == 1
