import tracemalloc
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label
from steelyard.statistics.label_error import (
    TOO_FEW,
    AnsweredPairs,
    label_errors,
    person_error,
    wrong_if_independent,
    wrong_if_tossed,
)


def estimated(rows, *, is_right=None, num_resamples=300):
    """``rows``: category, answers for the label, answers against it, and whether there is a label, a prompt each."""
    labels = [Label(f"p{at}", Cell(category)) for at, (category, *_) in enumerate(rows)]
    blocks = draw_blocks(labels, num_resamples=num_resamples, seed=0)
    _, agreeing, contrary, is_labelled = (np.array(column) for column in zip(*rows, strict=True))
    right = np.ones(len(rows), bool) if is_right is None else np.array(is_right)
    return label_errors(blocks, AnsweredPairs(np.arange(len(rows)), agreeing, contrary, is_labelled, right))


def mixture(hard, easy_error):
    """Pairs of two difficulties: a share with an error of one half, and the others with the same error."""
    return ((hard, 0.5), (1 - hard, easy_error))


def chances(parts, num_people):
    """How often k of the people are wrong, by k."""
    return np.array(
        [
            sum(share * comb(num_people, k) * error**k * (1 - error) ** (num_people - k) for share, error in parts)
            for k in range(num_people + 1)
        ]
    )


def expected(model, parts, num_people, is_labelled):
    """The label error of votes by the model, and the true one. Nobody sees which answers are wrong."""
    disagreement = np.array(sum(share * 2 * error * (1 - error) for share, error in parts))
    wrong_answers = chances(parts, num_people)
    estimate = truth = total = 0.0
    for k, mass in enumerate(wrong_answers):
        agreeing, contrary = max(k, num_people - k), min(k, num_people - k)
        if is_labelled(agreeing, contrary):
            estimate += mass * float(model(np.array(agreeing), np.array(contrary), disagreement))
            truth += mass * (2 * k > num_people)
            total += mass
    return estimate / total, truth / total


MAJORITY, UNANIMITY = lambda agreeing, contrary: agreeing > contrary, lambda agreeing, contrary: contrary == 0


def test_one_persons_error_follows_from_how_often_two_disagree():
    # 2 x 0.1 x 0.9 = 0.18, and 2 x 0.2 x 0.8 = 0.32; from one half on people guess.
    np.testing.assert_allclose(person_error(np.array([0.0, 0.18, 0.32, 0.5, 0.7])), [0, 0.1, 0.2, 0.5, 0.5])


def test_the_probability_of_a_wrong_label_by_hand():
    # e = 0.1: two against none is wrong with 0.01 / (0.01 + 0.81), 2 : 1 and one answer with 0.1, 1 : 1 with 0.5.
    agreeing, contrary = np.array([2, 2, 1, 1, 0]), np.array([0, 1, 0, 1, 1])
    disagreement = np.array(0.18)
    np.testing.assert_allclose(
        wrong_if_independent(agreeing, contrary, disagreement), [0.01 / 0.82, 0.1, 0.1, 0.5, 0.9]
    )
    # 36% of the pairs are tosses: half of them unanimous among two people, 18 of 82, of which half are wrong.
    np.testing.assert_allclose(wrong_if_tossed(agreeing, contrary, disagreement), [9 / 82, 0.5, 0.18, 0.5, 0.82])


@pytest.mark.parametrize("is_labelled", [MAJORITY, UNANIMITY])
@pytest.mark.parametrize("num_people", [2, 3])
@given(hard=st.floats(0, 0.9), easy_error=st.floats(0, 0.45))
@settings(deadline=None, max_examples=40)
def test_the_true_label_error_lies_between_the_two_models(is_labelled, num_people, hard, easy_error):
    parts = mixture(hard, easy_error)
    least, truth = expected(wrong_if_independent, parts, num_people, is_labelled)
    most, _ = expected(wrong_if_tossed, parts, num_people, is_labelled)
    assert least - 1e-9 <= truth <= most + 1e-9


@pytest.mark.parametrize("num_people", [1, 2, 3, 4, 7])
@given(error=st.floats(0.01, 0.49))
@settings(deadline=None, max_examples=30)
def test_with_pairs_alike_the_vote_is_wrong_as_often_as_binomial_errors_say(num_people, error):
    estimate, truth = expected(wrong_if_independent, ((1.0, error),), num_people, MAJORITY)
    assert estimate == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("num_people", [2, 3, 5])
@given(hard=st.floats(0.01, 0.95))
@settings(deadline=None, max_examples=30)
def test_with_tosses_alone_the_other_end_is_exact(num_people, hard):
    estimate, truth = expected(wrong_if_tossed, mixture(hard, 0.0), num_people, MAJORITY)
    assert estimate == pytest.approx(truth, rel=1e-6)


def test_a_bench_by_hand():
    # One of two people made the labels: they disagree on 36 of 200 pairs, so that e is 0.1, and so is the label error.
    rows = [("c", 1, 1, True)] * 36 + [("c", 2, 0, True)] * 164
    found = estimated(rows, is_right=[True] * 150 + [False] * 50)
    assert found.person.micro.value == pytest.approx(0.1, abs=0.002)
    assert found.label.micro.value == pytest.approx(0.1, abs=0.002)
    assert found.perfect.micro.value == pytest.approx(1 - found.label.micro.value)
    assert found.perfect.micro.low == pytest.approx(1 - found.label.micro.high)
    assert found.model.micro.value == 0.75
    assert found.distance.micro.value == pytest.approx(0.15, abs=0.002)
    assert found.most.micro.value == pytest.approx(0.18, abs=0.002)


def test_pairs_that_lost_their_label_to_a_disagreement_count_for_it():
    rows = [("c", 1, 1, False)] * 36 + [("c", 2, 0, True)] * 164
    found = estimated(rows)
    assert found.person.micro.value == pytest.approx(0.1, abs=0.002)
    assert found.label.micro.value == pytest.approx(0.01 / 0.82, abs=0.001)
    without = estimated([row for row in rows if row[3]])
    assert without.person.micro.value == 0.0


def test_without_any_disagreement_the_interval_still_has_a_width():
    found = estimated([("c", 2, 0, True)] * 100)
    assert (found.label.micro.value, found.label.micro.low) == (0.0, 0.0)
    assert 0.005 < found.label.micro.high < 0.03


def test_a_category_with_few_answers_has_no_value_and_shares_the_others():
    rows = [("big", 1, 1, True)] * 20 + [("big", 2, 0, True)] * 80
    rows += [("small", 1, 0, True)] * 30 + [("small", 2, 0, True)] * 5
    found = estimated(rows)
    by_name = dict(zip(found.groups, found.label.estimates, strict=True))
    assert by_name["big"].value is not None
    assert (by_name["small"].value, by_name["small"].why) == (None, TOO_FEW)
    assert found.label.macro.value is not None
    assert dict(zip(found.groups, found.distance.estimates, strict=True))["small"].why == TOO_FEW


@pytest.mark.parametrize("rows", [[("c", 2, 0, True)] * 19, [("c", 1, 0, True)] * 50, [("c", 2, 0, False)] * 50])
def test_too_few_answers_or_no_label_give_nothing(rows):
    assert estimated(rows) is None


def test_people_who_guess_make_half_of_the_labels_wrong():
    found = estimated([("c", 1, 1, True)] * 60 + [("c", 2, 0, True)] * 40)
    assert found.label.micro.high == pytest.approx(0.5, abs=0.01)
    assert 0.4 < found.label.micro.value <= 0.5


def test_hundreds_of_answers_to_a_pair_take_little_memory():
    # 300 people, each wrong on three of ten pairs: two disagree on 42%, and a vote is practically never wrong.
    rng = np.random.default_rng(3)
    wrong = rng.binomial(300, 0.3, 1500).tolist()
    rows = [(f"c{at % 10}", 300 - number, number, True) for at, number in enumerate(wrong)]
    tracemalloc.start()
    found = estimated(rows, num_resamples=100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.person.micro.value == pytest.approx(0.3, abs=0.005)
    assert found.label.micro.value < 1e-9
    assert peak < 100e6


def sampled(rng, *, size, error, num_people, rule):
    """Answers to pairs with planted errors, and labels by a rule."""
    is_wrong = rng.random((size, num_people)) < error
    num_wrong = is_wrong.sum(axis=1)
    if rule == "first":
        is_flipped, is_labelled = is_wrong[:, 0], np.ones(size, bool)
    else:
        is_flipped, is_labelled = 2 * num_wrong > num_people, 2 * num_wrong != num_people
    agreeing = np.where(is_flipped, num_wrong, num_people - num_wrong)
    return [
        ("c", one, num_people - one, has_label) for one, has_label in zip(agreeing.tolist(), is_labelled, strict=True)
    ]


@pytest.mark.parametrize(
    ("num_people", "rule", "truth"), [(2, "first", 0.1), (2, "vote", 0.01 / 0.82), (3, "vote", 3 * 0.01 * 0.9 + 0.001)]
)
def test_the_interval_covers_a_planted_error_of_a_tenth(num_people, rule, truth):
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(80):
        found = estimated(
            sampled(rng, size=200, error=0.1, num_people=num_people, rule=rule), num_resamples=100
        ).label.micro
        held += found.low <= truth <= found.high
    # 95% of 80 are 76; fewer than 70 have a probability below 1 in 100.
    assert held >= 70
