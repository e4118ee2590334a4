import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.ranking.annotation_features import LENGTH_EDGES, NUM_LENGTH, POSITION_PAIRS, TraitCollector
from steelyard.ranking.judge_quality import (
    AUTHOR_WIDTH,
    GRAPH_WIDTH,
    RATER,
    RATER_WIDTH,
    JudgeQualityCounts,
    judge_quality_counts,
)
from steelyard.ranking.judgment_table import judgment_table
from steelyard.ranking.resolution import resolve_table
from steelyard.statistics.unit_bootstrap import Tally
from strategies import case, cases, judgment, with_repeats

WIDTHS = JudgeQualityCounts(RATER_WIDTH, GRAPH_WIDTH, 9, AUTHOR_WIDTH)


def summed(given_cases, *, batch=100, aggregate="none"):
    """The four tables as dictionaries from group to sums, of the cases in batches."""
    counters = [Tally(width) for width in WIDTHS]
    for start in range(0, len(given_cases), batch):
        collector = TraitCollector()
        evidence = judgment_table(given_cases[start : start + batch], visit=collector.add)
        graphs = resolve_table(evidence, aggregate).graphs
        for tally, entries in zip(
            counters, judge_quality_counts(evidence, graphs, collector.traits(evidence), aggregate), strict=True
        ):
            tally.add(entries)
    tables = [tally.draw(seed=0, num_resamples=1) for tally in counters]
    return JudgeQualityCounts(
        *({group: table.point([group])[0].tolist() for group in table.groups} for table in tables)
    )


def texts(one, **lengths):
    changed = tuple(
        msgspec.structs.replace(response, text="杆" * lengths.get(response.id, 3), author=response.id)
        for response in one.responses
    )
    return msgspec.structs.replace(one, responses=changed)


def hand_made():
    """Ann: a > b (a shown second), b > c, c > a: a circle. Bob: a > b, a and c equal. The model: b > a, and a none."""
    judgments = [
        judgment("a>b", judge="ann", shown=("b", "a")),
        judgment("b>c", judge="ann", shown=("b", "a", "c")),
        judgment("c>a", judge="ann"),
        judgment("b<a", judge="bob"),
        judgment("a=c", judge="bob"),
        judgment("b>a", judge="m", kind="llm"),
        judgment("b?c", judge="m", kind="llm"),
    ]
    return texts(case(responses="abc", judgments=judgments, category=("数学",), language="zh"), a=10, b=5, c=10)


def test_raters_by_hand():
    raters = summed([hand_made()]).raters
    assert set(raters) == {("judge", "ann", "human"), ("judge", "bob", "human"), ("judge", "m", "llm")}
    ann = raters["judge", "ann", "human"]
    assert ann[RATER["conflict"]] == [0, 0, 0, 3]
    assert ann[RATER["ranking"]] == [0, 3, 0]  # everything is in one circle
    # The others: a > b, b > a, a = c. All one circle again.
    assert ann[RATER["others"]] == [0, 3, 0]
    length = ann[RATER["length"]]
    # a > b: the longer (10 to 5: one half). b > c: the shorter. c > a: equal.
    assert (length[2 * 4 + 1], length[2 * 4], length[-1], sum(length)) == (1, 1, 1, 3)
    position = ann[RATER["position"]]
    of_two, of_three = POSITION_PAIRS.index((2, 0, 1)), POSITION_PAIRS.index((3, 0, 2))
    assert (position[2 * of_two], position[2 * of_three + 1], sum(position)) == (1, 1, 2)

    bob = raters["judge", "bob", "human"]
    assert bob[RATER["conflict"]] == [0, 1, 1, 0]  # a and c are one tier, b is under it
    model = raters["judge", "m", "llm"]
    assert model[RATER["conflict"]] == [1, 0, 1, 0]


def test_graphs_by_hand():
    graphs = summed([hand_made()]).graphs
    assert graphs == {
        ("kind", "human"): [0, 1, 0, 4],
        ("kind", "llm"): [1, 0, 1, 0],
        ("place", "数学", "zh"): [1, 1, 0, 5],
    }


def test_agreement_by_hand():
    found = summed([hand_made()]).agreement
    # On (a, b) ann and bob say a, the model b; on (a, c) ann says c and bob that they are equal.
    assert found["judges", "ann", "bob"] == [1, 0, 0, 0, 0, 1, 0, 0, 0]
    assert found["judges", "ann", "m"] == found["judges", "bob", "m"] == [0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert found["kinds", "human", "llm"] == [0, 1, 0, 0, 0, 0, 0, 0, 0]
    # (a, b): three labels, two alike: pairs aa 2, ab 2, ba 2, each half. (a, c): c and a tie.
    assert found[("alpha",)] == [1, 1, 0, 1, 0, 1, 0, 1, 0]
    assert found["alpha", "human"] == [2, 0, 0, 0, 0, 1, 0, 1, 0]
    assert ("alpha", "llm") not in found


def test_authors_by_hand():
    found = summed([hand_made()]).authors
    assert found == {
        ("authors", "a", "b"): [2, 1, 0],
        ("authors", "a", "c"): [0, 1, 1],
        ("authors", "b", "c"): [1, 0, 0],
    }


def test_answers_of_one_author_or_none_say_nothing_of_authors():
    one = case(responses="abc", judgments=["a>b", "a>c", "b>c"])
    authors = ("x", "x", None)
    changed = tuple(
        msgspec.structs.replace(response, author=author)
        for response, author in zip(one.responses, authors, strict=True)
    )
    assert summed([msgspec.structs.replace(one, responses=changed)]).authors == {}


@settings(deadline=None, max_examples=40)
@given(st.lists(cases(max_responses=6, max_judgments=15), min_size=1, max_size=7), st.integers(1, 4))
def test_batches_add_up_to_the_whole(given_cases, batch):
    named = [
        msgspec.structs.replace(one, prompt=msgspec.structs.replace(one.prompt, id=f"p{index}"))
        for index, one in enumerate(given_cases)
    ]
    whole, parts = summed(named), summed(named, batch=batch)
    for one, other in zip(whole, parts, strict=True):
        assert set(one) == set(other)
        for group, sums in one.items():
            assert np.allclose(sums, other[group])


@settings(deadline=None, max_examples=40)
@given(cases(max_responses=6, max_judgments=15), st.randoms(use_true_random=False))
def test_neither_the_order_of_judgments_nor_who_stands_left_matters(one, random):
    turned = []
    for own in one.judgments:
        verdict = {"left": "right", "right": "left"}.get(own.verdict, own.verdict)
        mirrored = msgspec.structs.replace(own, left=own.right, right=own.left, verdict=verdict)
        turned.append(mirrored if random.random() < 0.5 else own)
    random.shuffle(turned)
    other = msgspec.structs.replace(one, judgments=tuple(turned))
    assert summed([one]) == summed([other])


def length_column(one, other):
    """By hand: twice the bin of the relative difference, plus one where the longer is preferred; equal is the last."""
    if one == other:
        return NUM_LENGTH - 1
    difference = abs(one - other) / max(one, other)
    return 2 * sum(difference > edge for edge in LENGTH_EDGES) + (one > other)


@settings(deadline=None, max_examples=60)
@given(st.lists(cases(max_responses=5, max_judgments=12, repeats=False), min_size=1, max_size=4), st.data())
def test_lengths_and_places_are_what_one_judgment_after_another_adds(given_cases, data):
    changed_cases = []
    for index, one in enumerate(given_cases):
        lengths = {own.id: data.draw(st.integers(1, 30)) for own in one.responses}
        orders = st.none() | st.permutations(list(lengths)).map(tuple)
        judgments = tuple(msgspec.structs.replace(own, shown=data.draw(orders)) for own in one.judgments)
        renamed = msgspec.structs.replace(one.prompt, id=f"p{index}")
        changed_cases.append(msgspec.structs.replace(texts(one, **lengths), judgments=judgments, prompt=renamed))
    expected = {}
    for one in changed_cases:
        length = {own.id: len(own.text) for own in one.responses}
        for own in one.judgments:
            sums = expected.setdefault(("judge", own.judge, own.kind), [0] * RATER_WIDTH)
            if own.verdict in ("tie", "none"):
                continue
            better, worse = (own.left, own.right) if own.verdict == "left" else (own.right, own.left)
            sums[RATER["length"].start + length_column(length[better], length[worse])] += 1
            if own.shown:
                places = own.shown.index(better), own.shown.index(worse)
                known = (len(own.shown), min(places), max(places))
                pair = POSITION_PAIRS.index(known) if known in POSITION_PAIRS else len(POSITION_PAIRS)
                sums[RATER["position"].start + 2 * pair + (places[0] < places[1])] += 1
    found = summed(changed_cases).raters
    assert {group: sums[RATER["length"].start :] for group, sums in found.items()} == {
        group: sums[RATER["length"].start :] for group, sums in expected.items()
    }


@settings(deadline=None, max_examples=60)
@given(with_repeats(max_responses=5, max_judgments=15), st.sampled_from(["none", "majority"]))
def test_repeated_judgments_change_no_figure_of_a_judge(drawn, aggregate):
    once, again = (summed([one], aggregate=aggregate) for one in drawn)
    assert again == once
