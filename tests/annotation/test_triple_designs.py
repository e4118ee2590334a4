"""Designs of triples: what is covered, in how many tasks, and what becomes of a design whose responses leave it."""

from collections import Counter
from itertools import combinations
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each_value import each
from steelyard.annotation.triple_designs import choose_triples, covering_triples, replan
from steelyard.core.comparison import circular_triples
from steelyard.core.errors import ConfigError
from strategies import case

LETTERS = "abcdefghijklmnopqrstuvwxyz1234"


def fewest_triples(number):
    """Schönheim's bound on the number of triples that cover every pair."""
    return -(-number * -(-(number - 1) // 2) // 3)


def shown_how_often(groups, number):
    counts = Counter(dict.fromkeys(range(number), 0))
    counts.update(place for group in groups for place in group)
    return sorted(counts.values())


@each("number", range(3, 41))
def test_triples_cover_every_pair_in_the_fewest_triples(number):
    triples = covering_triples(number)
    covered = {frozenset(pair) for triple in triples for pair in combinations(triple, 2)}
    assert all(len(set(triple)) == 3 for triple in triples)
    assert len(covered) == number * (number - 1) // 2
    assert len(triples) == fewest_triples(number)
    counts = shown_how_often(triples, number)
    assert counts[-1] - counts[0] <= 1


@pytest.mark.parametrize(("number", "fewest"), [(3, 1), (4, 3), (5, 4), (6, 6), (7, 7), (9, 12), (10, 17), (13, 26)])
def test_the_bound_is_the_published_one(number, fewest):
    # Covering numbers C(v, 3, 2) of the La Jolla repository.
    assert fewest_triples(number) == fewest


def test_up_to_five_responses_the_triples_are_those_of_cheems():
    for number in (3, 4, 5):
        assert choose_triples(case(responses=LETTERS[:number]), "covering", seed=0) == circular_triples(number)


def test_six_responses_have_every_pair_and_circular_triples_do_not():
    one = case(responses="abcdef")

    def pairs(design):
        return {frozenset(two) for triple in choose_triples(one, design, seed=0) for two in combinations(triple, 2)}

    assert len(pairs("covering")) == 15
    assert len(pairs("circular")) == 12
    assert choose_triples(one, "covering", seed=0) != choose_triples(one, "covering", seed=1)


def test_two_responses_have_no_triple():
    with pytest.raises(ConfigError, match="2 responses"):
        covering_triples(2)


def pairs_of(tasks):
    return {frozenset(pair) for task in tasks for pair in combinations(task, 2)}


def design_of(number, seed=0):
    return [
        [LETTERS[place] for place in triple]
        for triple in choose_triples(case(responses=LETTERS[:number]), "covering", seed=seed)
    ]


def test_one_of_five_leaves_two_tasks_and_one_more_is_enough():
    plan = replan(design_of(5), {"e"})
    assert plan.staying == (0, 1)
    assert plan.retiring == (2, 3, 4)
    assert plan.added == (("a", "b", "d"),)
    assert plan.remaining == ("a", "b", "c", "d")


def test_two_that_remain_are_one_task_and_one_is_none():
    assert replan(design_of(5), {"a", "b", "c"}).added == (("d", "e"),)
    assert replan(design_of(5), {"a", "b", "c"}).retiring == (0, 1, 2, 3, 4)
    alone = replan(design_of(4), {"a", "b", "c"})
    assert alone.added == ()
    assert alone.remaining == ("d",)


def test_nothing_discarded_changes_nothing():
    plan = replan(design_of(7), ())
    assert plan.staying == tuple(range(7))
    assert plan.retiring == plan.added == ()


@given(st.data())
def test_every_remaining_pair_is_compared_and_whole_tasks_stay(data):
    design = design_of(data.draw(st.integers(3, 12)), seed=data.draw(st.integers(0, 9)))
    everybody = sorted({response for task in design for response in task})
    discarded = data.draw(st.sets(st.sampled_from(everybody)))
    plan = replan(design, discarded)
    assert sorted(plan.staying + plan.retiring) == list(range(len(design)))
    assert all(not discarded & set(design[place]) for place in plan.staying)
    assert all(discarded & set(design[place]) for place in plan.retiring)
    assert set(plan.remaining) == set(everybody) - discarded
    tasks = [tuple(design[place]) for place in plan.staying] + list(plan.added)
    assert pairs_of(tasks) == pairs_of([plan.remaining])
    assert all(len(set(task)) == len(task) == min(3, len(plan.remaining)) for task in plan.added)
    # Each new task compares something that none before it does.
    for number in range(len(plan.added)):
        before = len(plan.staying) + number
        assert pairs_of(tasks[before : before + 1]) - pairs_of(tasks[:before])
    # Never more tasks than the design had.
    assert len(plan.added) <= len(plan.retiring)


def test_the_triples_of_many_responses_are_planned_at_once():
    """To search for them took 2 s for 200 responses, and minutes for 600, while an import holds the database."""
    begun = process_time()
    triples = covering_triples(600)
    assert process_time() - begun < 3
    assert len(triples) == fewest_triples(600)
    assert len(pairs_of(triples)) == 600 * 599 // 2


def test_a_discard_among_many_responses_is_planned_at_once():
    """It is planned while an answer is stored, and everybody waits: to look at all triples for each task took 5 s."""
    design = [tuple(f"r{place}" for place in triple) for triple in covering_triples(300)]
    begun = process_time()
    plan = replan(design, {"r7"})
    assert process_time() - begun < 10
    assert pairs_of([*(design[place] for place in plan.staying), *plan.added]) == pairs_of([plan.remaining])
