"""The states of an item: every way from the import to the end, and the gate's figure."""

from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.annotation.agreement import DoubleAnswer, count_agreement, disputed_points, gate_counts
from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.gold import is_gold_place
from steelyard.annotation.pipeline import (
    TRANSITIONS,
    ItemEvent,
    ItemState,
    ItemStep,
    PipelineRules,
    TransitionRefused,
    advance,
)
from steelyard.annotation.review import draw_for_review
from steelyard.annotation.task_kinds import kind_named
from steelyard.core.errors import ConfigError

ABC = ("a", "b", "c")

TRIPLE = kind_named("triple")


def walk(*events):
    step = ItemStep("annotating", 1)
    for event in events:
        step = advance(step.state, event, round=step.round)
    return step


@pytest.mark.parametrize(
    ("events", "end"),
    [
        (("agreed", "accepted", "accepted", "accepted"), ItemStep("finished", 1)),
        (("agreed", "not drawn", "not drawn", "accepted"), ItemStep("finished", 1)),
        (("disagreed", "settled", "accepted"), ItemStep("operations review", 1)),
        (("disagreed", "unresolved", "unresolved", "unresolved", "settled"), ItemStep("delivery review", 1)),
        (("agreed", "accepted", "accepted", "accepted", "rejected"), ItemStep("annotating", 2)),
        (("agreed", "rejected", "agreed", "not drawn", "rejected"), ItemStep("annotating", 3)),
        (("disagreed", "dropped"), ItemStep("dropped", 1)),
        (("disagreed", "replanned", "agreed"), ItemStep("delivery review", 1)),
        (("disagreed", "unresolved", "replanned", "disagreed"), ItemStep("aligning", 1)),
    ],
)
def test_ways_of_an_item(events, end):
    assert walk(*events) == end


@pytest.mark.parametrize(
    ("state", "event"),
    [
        ("annotating", "accepted"),
        ("aligning", "agreed"),
        ("with developers", "unresolved"),
        ("finished", "not drawn"),
        ("finished", "accepted"),
        ("finished", "dropped"),
        ("dropped", "agreed"),
    ],
)
def test_what_cannot_happen_is_refused(state, event):
    with pytest.raises(TransitionRefused):
        advance(state, event)


def test_every_state_can_be_reached_and_left_but_the_last():
    states = set(get_args(ItemState))
    assert {state for state, _ in TRANSITIONS} == states - {"dropped"}
    assert set(TRANSITIONS.values()) == states
    assert {event for _, event in TRANSITIONS} == set(get_args(ItemEvent))


@pytest.mark.parametrize(
    "settings",
    [
        {"least_agreement": 1.1},
        {"delivery_share": -0.1},
        {"num_annotators": 0},
        {"gold_share": 0.6},
        {"lock_minutes": 0},
    ],
)
def test_rules_outside_their_ranges_are_refused(settings):
    with pytest.raises(ConfigError):
        PipelineRules(**settings)


def answer(*tiers, **fields):
    return TaskAnswer(ranking=tuple(tuple(tier) for tier in tiers), **fields)


@pytest.mark.parametrize(
    ("first", "second", "counts"),
    [
        (answer("a", "b", "c"), answer("a", "b", "c"), (3, 3)),
        (answer("a", "b", "c"), answer("b", "a", "c"), (2, 3)),
        (answer("a", "b", "c"), answer("c", "b", "a"), (0, 3)),
        # A tie is a third value: equal to a tie alone.
        (answer("ab", "c"), answer("a", "b", "c"), (2, 3)),
        (answer("abc"), answer("abc"), (3, 3)),
        # Who discards what the other ranks disagrees on both of its pairs; what both discard does not count.
        (answer("a", "b", discarded={"c": "garbled"}), answer("a", "b", "c"), (1, 3)),
        (answer("a", "b", discarded={"c": "garbled"}), answer("b", "a", discarded={"c": "empty"}), (0, 1)),
        (TaskAnswer(cannot_judge="no"), answer("a", "b", "c"), (0, 0)),
    ],
)
def test_agreement_of_two_people(first, second, counts):
    assert tuple(count_agreement(ABC, (first, second), TRIPLE)) == counts
    assert tuple(count_agreement(ABC, (second, first), TRIPLE)) == counts


def test_disputed_points_are_those_that_differ():
    answers = (answer("a", "b", "c"), answer("b", "a", "c"))
    assert disputed_points(ABC, answers, TRIPLE) == (("order", "a", "b"),)


def test_gate_units_add_up():
    same, turned = answer("a", "b", "c"), answer("c", "b", "a")
    doubles = [
        DoubleAnswer(1, "x", (7, 8), ABC, (same, same), "triple"),
        DoubleAnswer(2, "x", (8, 7), ABC, (same, turned), "triple"),
        DoubleAnswer(3, "y", (7, 9), ABC, (same, same), "triple"),
    ]
    assert {key: tuple(counts) for key, counts in gate_counts(doubles, "item").items()} == {
        1: (3, 3),
        2: (0, 3),
        3: (3, 3),
    }
    assert {key: tuple(counts) for key, counts in gate_counts(doubles, "batch").items()} == {"x": (3, 6), "y": (3, 3)}
    of_people = gate_counts(doubles, "pair of people")
    assert {key: tuple(counts) for key, counts in of_people.items()} == {(7, 8): (3, 6), (7, 9): (3, 3)}


@given(st.integers(0, 200), st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]), st.integers(0, 5))
def test_the_share_of_a_batch_is_exact(number, share, seed):
    items = [f"item {place}" for place in range(number)]
    drawn = draw_for_review(items, "delivery", share=share, batch="b", seed=seed)
    assert share * number <= len(drawn) < share * number + 1
    assert drawn <= set(items)
    assert drawn == draw_for_review(items[::-1], "delivery", share=share, batch="b", seed=seed)


def test_layers_draw_independently():
    items = [f"item {place}" for place in range(10_000)]
    first, second = (
        draw_for_review(items, layer, share=0.3, batch="b", seed=0) for layer in ("delivery", "operations")
    )
    # Hypergeometric: 900 are expected in both, with a standard deviation of 21.
    assert abs(len(first & second) - 900) < 5 * 21


@pytest.mark.parametrize("share", [0.05, 0.1, 0.13, 0.3, 0.5])
def test_gold_comes_at_a_guaranteed_rate_at_random_places(share):
    places = {
        person: [number for number in range(1000) if is_gold_place(number, share=share, person=person, seed=1)]
        for person in range(8)
    }
    for found in places.values():
        assert abs(len(found) - 1000 * share) <= 1
        # One in every block: two of them are less than two blocks apart.
        assert max(b - a for a, b in pairwise(found)) < 2 / share + 1
    assert len({tuple(found) for found in places.values()}) == 8
    assert not any(is_gold_place(number, share=0.0, person=1, seed=1) for number in range(100))
