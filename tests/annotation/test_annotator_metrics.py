"""Flags of people: who differs is named, and a team that works alike is left in peace."""

import numpy as np
import pytest

from steelyard.annotation.annotator_metrics import (
    FEWEST_ANSWERS,
    AgreementOverTime,
    always_valid_p,
    behaviour_flags,
    drifts,
)
from steelyard.annotation.answer_counts import SCORES, AnswerFacts, count_answer
from steelyard.annotation.answers import TaskAnswer

SHOWN = ("a", "b", "c")


def answer_of(random, *, ties=0.15, first=1 / 3, same_score=0.0):
    """An answer with a tie of the best two, the first one best, or one score for all, at these rates."""
    order = list(random.permutation(SHOWN))
    if random.random() < (first - 1 / 3) * 1.5:
        order.remove("a")
        order = ["a", *order]
    scores = dict.fromkeys(SHOWN, 4) if random.random() < same_score else {r: 5 - 2 * p for p, r in enumerate(order)}
    is_tied = random.random() < ties
    ranking = ((order[0], order[1]), (order[2],)) if is_tied else tuple((response,) for response in order)
    return TaskAnswer(scores=scores, ranking=ranking)


def sums_of(random, *, number=60, pace=40.0, **habits):
    """The sums of a person whose time grows with the square root of the length."""
    sums = dict.fromkeys(
        ("num_answers", "seconds", "sum_length", "sum_time", "sum_length_squared", "sum_time_squared",
         "sum_length_time", "num_best", "num_first_best", "first_chance", "first_variance", "num_pairs", "num_tied",
         *SCORES),
        0.0,
    )  # fmt: skip
    for _ in range(number):
        length = int(random.integers(200, 5000))
        seconds = pace * np.sqrt(length / 1000) * np.exp(random.normal(0, 0.5))
        facts = AnswerFacts(SHOWN, length, float(seconds), has_scores=True, is_gold=False, round=1)
        for name, amount in count_answer(answer_of(random, **habits), facts).items():
            sums[name] = sums.get(name, 0.0) + amount
    return sums


def team(seed, size=12):
    """People who differ in pace and ties as people do."""
    random = np.random.default_rng(seed)
    return {
        person: sums_of(random, pace=40 * np.exp(random.normal(0, 0.2)), ties=random.uniform(0.1, 0.2))
        for person in range(size)
    }


def raised(flags):
    return {(person, flag.question) for person, each in flags.items() for flag in each if flag.is_raised}


@pytest.mark.parametrize(
    ("habits", "question"),
    [
        ({"pace": 6.0}, "fast"),
        ({"ties": 0.95}, "ties"),
        ({"same_score": 1.0}, "one score"),
        ({"first": 0.9}, "first shown"),
    ],
)
def test_who_differs_is_named_with_the_evidence(habits, question):
    people = team(1)
    people[99] = sums_of(np.random.default_rng(2), **habits)
    flags = behaviour_flags(people)
    assert (99, question) in raised(flags)
    [flag] = [flag for flag in flags[99] if flag.question == question]
    assert flag.p < 0.05
    assert flag.value < 0.5 * flag.expected if question == "fast" else flag.value > 1.5 * flag.expected


def test_a_team_that_works_alike_is_rarely_marked():
    # 40 teams and 4 questions at 5 % each: 8 expected; more than 18 have a probability of 0.04 %.
    marks = sum(len({question for _, question in raised(behaviour_flags(team(seed, 8)))}) for seed in range(40))
    assert marks <= 18


def test_few_answers_and_few_people_say_nothing():
    random = np.random.default_rng(3)
    people = {person: sums_of(random) for person in range(4)}
    assert {flag.question for flags in behaviour_flags(people).values() for flag in flags} == {"first shown"}
    people[4] = sums_of(random, number=FEWEST_ANSWERS - 1, pace=1.0)
    assert 4 not in behaviour_flags(people)
    assert behaviour_flags({}) == {}


def test_a_change_of_accuracy_is_found_and_chance_is_not():
    random = np.random.default_rng(4)
    steady = {person: random.choice([1, 2 / 3, 1 / 3], 60, p=[0.7, 0.2, 0.1]).tolist() for person in range(20)}
    careless = random.choice([1, 2 / 3, 1 / 3, 0], 40, p=[0.1, 0.2, 0.4, 0.3]).tolist()
    over_time = {person: AgreementOverTime(shares) for person, shares in steady.items()}
    # The look is at 96 of the 100 answers (20 * 2 ** (9 / 4)); 300 earlier ones are in no series.
    made = drifts(
        {
            **over_time,
            99: AgreementOverTime([*steady[0], *careless]),
            98: AgreementOverTime([*steady[0], *careless], 300),
        }
    )
    assert made[99].is_real
    assert abs(made[99].place - 60) <= 6
    assert abs(made[98].place - 360) <= 6
    assert made[99].before.n + made[99].after.n == 96
    assert made[99].before.value > made[99].after.value
    assert sum(drift.is_real for person, drift in made.items() if person < 98) <= 1
    assert drifts({1: AgreementOverTime([1.0] * 5)}) == {}


def test_a_daily_look_marks_hardly_anybody_whose_accuracy_never_changes():
    # 100 people, 60 days with five gold answers each. A test of 5 % repeated every day marked a third of them.
    right = np.random.default_rng(5).random((100, 300)) < 0.8
    marked = {
        person
        for person, answers in enumerate(right.astype(float).tolist())
        for number in range(5, 301, 5)
        if any(drift.is_real for drift in drifts({person: AgreementOverTime(answers[:number])}).values())
    }
    # At most five are expected; more than 11 have a probability below 1 %.
    assert len(marked) <= 11


def test_an_always_valid_p_is_that_of_hand():
    # Two hits of two by a chance of 1/2: the integral of p ** 2 from 1/2 to 1 is 7/24; over 1/2 * 1/4 it is 7/3.
    assert always_valid_p(2, 2, 0.5) == pytest.approx(3 / 7)
    assert always_valid_p(0, 2, 0.5) == 1.0
    assert always_valid_p(900, 1000, 1 / 3) < 1e-100


def test_a_p_value_that_is_read_daily_rarely_falls_below_its_level():
    hits = (np.random.default_rng(6).random((200, 600)) < 1 / 3).cumsum(axis=1)
    ever = [min(always_valid_p(int(row[n - 1]), n, 1 / 3) for n in range(20, 601, 20)) < 0.05 for row in hits]
    # At most ten are expected; more than 18 have a probability below 1 %.
    assert sum(ever) <= 18
