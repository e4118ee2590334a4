from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from steelyard.plugins.formats._rankings import Ranked, Voice, judgments_of, rankings_of, without_people, without_tasks
from strategies import case, judgment

ANN = Voice("ann", "human", "quality")


@st.composite
def tiers(draw):
    names = draw(st.permutations("abcdef"))
    count = draw(st.integers(2, 6))
    left, made = list(names[:count]), []
    while left:
        size = draw(st.integers(1, len(left)))
        made.append(tuple(left[:size]))
        left = left[size:]
    return tuple(made)


def test_a_ranking_judges_every_pair():
    said = list(judgments_of(Ranked(ANN, (("b",), ("d", "a"), ("c",)))))
    assert [(one.left, one.verdict, one.right) for one in said] == [
        ("b", "left", "d"),
        ("b", "left", "a"),
        ("b", "left", "c"),
        ("d", "tie", "a"),
        ("d", "left", "c"),
        ("a", "left", "c"),
    ]
    assert {(one.judge, one.kind, one.task) for one in said} == {ANN}


@given(tiers())
def test_judgments_of_a_ranking_are_that_ranking(made):
    said = list(judgments_of(Ranked(ANN, made)))
    number = sum(map(len, made))
    assert len(said) == len(list(combinations(range(number), 2)))
    assert rankings_of(said, Counter()) == [Ranked(ANN, made)]


def test_what_no_ranking_says_is_one_ranking_a_judgment():
    circle = [judgment(short) for short in ("a>b", "b>c", "c>a")]
    assert [one.tiers for one in rankings_of(circle, Counter())] == [
        (("a",), ("b",)),
        (("b",), ("c",)),
        (("c",), ("a",)),
    ]
    twice = [judgment("a>b"), judgment("a=b"), judgment("b>c")]
    assert [one.tiers for one in rankings_of(twice, Counter())] == [(("a",), ("b",)), (("a", "b"),), (("b",), ("c",))]
    # Equal, equal, and yet one better: ties that do not add up.
    uneven = [judgment("a=b"), judgment("b=c"), judgment("a>c")]
    assert len(rankings_of(uneven, Counter())) == 3


def test_no_verdict_is_no_ranking():
    lost = Counter()
    assert rankings_of([judgment("a?b")], lost) == []
    assert lost == {"judgments without a verdict": 1}


def test_what_the_formats_say_is_not_counted_as_lost():
    one = case(judgments=[judgment("a>b", judge="ann", task="t"), judgment("a>b", judge="gpt", kind="llm")])
    assert [said.task for said in without_tasks(one).judgments] == [None, None]
    assert [said.judge for said in without_people(one).judgments] == ["unknown", "gpt"]
