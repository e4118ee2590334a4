import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from resolved_cases import resolve_cases
from steelyard.core.checks import check_case
from steelyard.core.types import Judgment, Pair
from steelyard.ranking.conflicts import conflict_tables
from steelyard.ranking.judgment_table import Only, distinct_judgments, first_identical
from steelyard.ranking.resolution import ResolveCounts
from strategies import case, cases, judgment, with_repeats


def resolved(one, **choices):
    (found,), resolution = resolve_cases([one], **choices)
    return found.ranking, resolution.counts


def test_a_response_that_nobody_compared_is_left_out_and_counted():
    assert resolved(case(judgments=["b>a", "c?d"])) == (
        (("b",), ("a",)),
        ResolveCounts(unranked_responses=3, ordered_by_majority=1),
    )


def test_a_case_without_judgments_keeps_what_it_has():
    assert resolved(case(ranking=(("b",), ("a",)))) == ((("b",), ("a",)), ResolveCounts(unchanged=1))
    assert resolved(case()) == (None, ResolveCounts(without_evidence=1))


def test_a_case_of_which_nothing_is_admitted_keeps_what_it_has():
    human = case(judgments=["a>b"], ranking=(("b",), ("a",)))
    assert resolved(human, only=Only(kind=("llm",))) == ((("b",), ("a",)), ResolveCounts(unchanged=1))


def test_judgments_that_are_all_unparsed_give_no_ranking():
    assert resolved(case(judgments=["a?b"], ranking=(("b",), ("a",)))) == (None, ResolveCounts(unparsed=1))


def test_pairs_stay_and_are_noted():
    with_pairs = case(responses="ab", judgments=["a>b"], pairs=(Pair(better="b", worse="a"),))
    (found,), resolution = resolve_cases([with_pairs])
    assert found.pairs == with_pairs.pairs
    assert resolution.counts == ResolveCounts(pairs_kept=1, ordered_by_majority=1)


def test_pairs_on_which_a_vote_is_even_are_ties_and_counted():
    # a and b: one to one; b and c: one to one tie; a and c: three to one; c and d: two ties to one.
    votes = ["a>b", "b>a", "b>c", "b=c", "a>c", "c<a", "a>c", "c>a", "c=d", "d=c", "c>d"]
    one = case(responses="abcd", judgments=[judgment(said, judge=f"j{number}") for number, said in enumerate(votes)])
    ranking, noted = resolved(one, aggregate="majority")
    # b ties with a and with c, c with d: all are joined by ties, whatever a and c are.
    assert ranking == (("a", "b", "c", "d"),)
    assert noted.split_votes == 2
    assert resolved(one)[1].split_votes == 0


def test_ids_in_a_tier_stand_in_the_order_of_the_responses():
    assert resolved(case(responses="edcba", judgments=["a=b", "c>a", "d>b", "e>d"]))[0] == (
        ("e", "c"), ("d",), ("b", "a"),
    )  # fmt: skip


def test_a_majority_votes_before_the_graph():
    votes = [judgment(short, judge=str(index)) for index, short in enumerate(["a>b", "a>b", "b>a", "b>c"])]
    assert resolved(case(responses="abc", judgments=votes))[0] == (("a", "b"), ("c",))
    assert resolved(case(responses="abc", judgments=votes), aggregate="majority")[0] == (("a",), ("b",), ("c",))


@settings(deadline=None)
@given(st.lists(cases(), max_size=3), st.sampled_from(["none", "majority"]))
def test_nothing_but_the_ranking_changes_and_it_is_a_good_one(drawn, aggregate):
    found, _ = resolve_cases(drawn, aggregate=aggregate)
    assert [msgspec.structs.replace(one, ranking=None) for one in found] == drawn
    for one in found:
        check_case(one)


@settings(deadline=None)
@given(cases(min_judgments=1))
def test_a_ranking_made_into_judgments_gives_the_same_ranking(drawn):
    (once,), _ = resolve_cases([drawn])
    tiers = once.ranking or ()
    verdicts = [
        Judgment(left=left, right=right, verdict=verdict, judge="ranking", kind="model")
        for index, tier in enumerate(tiers)
        for left in tier
        for verdict, others in (("tie", tier), ("left", [name for lower in tiers[index + 1 :] for name in lower]))
        for right in others
        if left != right
    ]
    (twice,), _ = resolve_cases([msgspec.structs.replace(once, judgments=tuple(verdicts), ranking=None)])
    assert twice.ranking == (once.ranking if verdicts else None)


@settings(deadline=None)
@given(with_repeats(max_responses=5), st.sampled_from(["none", "majority"]))
def test_repeated_judgments_change_no_ranking_conflict_or_standing(drawn, aggregate):
    once, again = (resolve_cases([one], aggregate=aggregate)[1] for one in drawn)
    assert again.rankings == once.rankings
    assert again.counts == once.counts._replace(repeated=len(drawn[1].judgments) - len(drawn[0].judgments))
    assert msgspec.json.encode(conflict_tables(again.sums)) == msgspec.json.encode(conflict_tables(once.sums))
    kept = [resolution.graphs.full.is_kept.tolist() for resolution in (once, again)]
    assert kept[0] == kept[1]


def test_what_makes_two_judgments_identical():
    base = {"judge": "甲", "id": None, "task": "t", "batch": "b", "meta": {"说明": "好", "秒": 3}}
    first = judgment("a>b", **base)
    same = [judgment("b<a", **base), judgment("a>b", **(base | {"meta": {"秒": 3, "说明": "好"}}))]
    changes = [{"id": "1"}, {"task": "u"}, {"batch": "c"}, {"meta": None}, {"judge": "乙"}, {"kind": "llm"},
               {"shown": ("a", "b")}, {"shown": ("b", "a")}, {"reason": "短"}]  # fmt: skip
    others = [judgment("a>b", **(base | change)) for change in changes]
    others += [judgment(short, **base) for short in ("a<b", "a=b", "a?b", "a>c")]
    unknown = [judgment("a>b", judge="unknown")] * 3  # a file without names may hold three people
    judgments = [first, *others, *same, *unknown]
    num = len(judgments)
    assert first_identical(judgments) == [*range(num - 5), 0, 0, num - 3, num - 2, num - 1]
    assert distinct_judgments(judgments) == [first, *others, *unknown]


def test_of_a_repeated_judgment_that_is_not_admitted_nothing_is_counted():
    one = case(judgments=["a>b", judgment("b>a", kind="llm"), judgment("b>a", kind="llm")])
    assert resolved(one, only=Only(kind=("human",)))[1].repeated == 0
    assert resolved(one, only=Only(kind=("llm",)))[1].repeated == 1
