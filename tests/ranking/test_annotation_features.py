from itertools import chain

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.core.types import Response
from steelyard.ranking.annotation_features import TraitCollector
from steelyard.ranking.judgment_table import Only, judgment_table
from steelyard.statistics.groups import prompt_names
from strategies import case, cases, judgment, prompt


def test_what_is_seen_as_cases_pass():
    first = case(
        id="一",
        responses="abc",
        judgments=[
            judgment("a>b", shown=("c", "b", "a")),
            judgment("b>c"),
            judgment("a>c", judge="m", kind="llm", shown=("c", "b")),  # a was not among what was shown
        ],
    )
    second = case(id="二", responses="ab", judgments=[judgment("a<b", shown=("a", "b"))])
    collector = TraitCollector()
    traits = collector.traits(judgment_table([first, second], visit=collector.add))
    assert traits.num_shown.tolist() == [3, 0, 0, 2]
    assert (traits.left_place[[0, 3]].tolist(), traits.right_place[[0, 3]].tolist()) == ([2, 0], [1, 1])
    assert traits.names == (prompt_names(first), prompt_names(second))
    assert traits.length.tolist() == [len("answer a")] * 5
    assert (traits.author.tolist(), traits.authors) == ([-1] * 5, ())


def test_only_admitted_judgments_are_seen():
    one = case(responses="ab", judgments=[judgment("a>b", shown=("a", "b")), judgment("a>b", judge="m", kind="llm")])
    only = Only(kind=("llm",))
    collector = TraitCollector()
    evidence = judgment_table([one], only, collector.add)
    assert collector.traits(evidence).num_shown.tolist() == [0]
    assert len(evidence.judge) == 1


def test_authors_are_numbered_by_name():
    one = case(responses="ab")
    authored = tuple(
        Response(id=response.id, text="", author=author)
        for response, author in zip(one.responses, ("乙", None), strict=True)
    )
    two = type(one)(prompt=prompt("q"), responses=(*authored, Response(id="x", text="", author="甲")))
    collector = TraitCollector()
    traits = collector.traits(judgment_table([one, two], visit=collector.add))
    assert traits.authors == tuple(sorted(("甲", "乙")))
    assert traits.author.tolist() == [-1, -1, traits.authors.index("乙"), -1, traits.authors.index("甲")]


@settings(deadline=None, max_examples=60)
@given(st.lists(cases(max_responses=5, max_judgments=8, repeats=False), max_size=4), st.data())
def test_places_are_those_that_looking_each_judgment_up_gives(given_cases, data):
    shown_cases = []
    for one in given_cases:
        orders = st.none() | st.lists(st.sampled_from([own.id for own in one.responses]), max_size=6).map(tuple)
        changed = tuple(msgspec.structs.replace(own, shown=data.draw(orders)) for own in one.judgments)
        shown_cases.append(msgspec.structs.replace(one, judgments=changed))
    expected = []
    for own in chain.from_iterable(one.judgments for one in shown_cases):
        if own.shown and own.left in own.shown and own.right in own.shown:
            expected.append((own.shown.index(own.left), own.shown.index(own.right), len(own.shown)))
        else:
            expected.append((0, 0, 0))
    collector = TraitCollector()
    traits = collector.traits(judgment_table(shown_cases, visit=collector.add))
    found = (traits.left_place.tolist(), traits.right_place.tolist(), traits.num_shown.tolist())
    assert list(zip(*found, strict=True)) == expected
