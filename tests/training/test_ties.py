import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.types import Case
from steelyard.ranking.pairs import IndexedPair, pairs_of
from steelyard.training.examples import ties_of
from steelyard.training.losses import LOSSES as TABLE
from steelyard.training.losses import davidson_losses, rao_kupper_losses
from strategies import case, judgment

LOSSES = {"rao-kupper": rao_kupper_losses, "davidson": davidson_losses}


def chances(loss, difference, parameter):
    """The probabilities of better, worse and tied, by the losses."""
    ahead = torch.tensor([difference, -difference, difference], dtype=torch.float64)
    tied = torch.tensor([False, False, True])
    return (-LOSSES[loss](ahead, tied, torch.tensor([parameter], dtype=torch.float64))).exp().tolist()


@pytest.mark.parametrize("loss", LOSSES)
@given(st.floats(-6, 6), st.floats(-3, 2))
def test_better_worse_and_tied_are_all_there_is(loss, difference, parameter):
    found = chances(loss, difference, parameter)
    assert sum(found) == pytest.approx(1, abs=1e-12)
    assert all(0 <= chance <= 1 for chance in found)


def test_rao_and_kupper_by_their_formula():
    # theta = e^t = 2, strengths 3 and 1: 3 / (3 + 2), 1 / (1 + 6), and (theta^2 - 1) 3 / ((3 + 2)(1 + 6)).
    better, worse, tied = chances("rao-kupper", math.log(3), math.log(math.log(2)))
    assert (better, worse, tied) == pytest.approx((3 / 5, 1 / 7, 9 / 35))


def test_davidson_by_his_formula():
    # Strengths 4 and 1, v = 1/2: the square root of their product is 2, so all is over 4 + 1 + 1.
    assert chances("davidson", math.log(4), math.log(0.5)) == pytest.approx([4 / 6, 1 / 6, 1 / 6])


@pytest.mark.parametrize("loss", LOSSES)
def test_at_the_start_equal_scores_are_as_likely_tied_as_not(loss):
    assert chances(loss, 0.0, TABLE[loss].parameter.start) == pytest.approx([1 / 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize("loss", LOSSES)
@given(st.floats(-6, 6))
def test_without_ties_both_are_bradley_terry(loss, difference):
    assert chances(loss, difference, -30.0)[0] == pytest.approx(1 / (1 + math.exp(-difference)), abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_extreme_values_stay_finite_with_their_gradients(loss):
    ahead = torch.tensor([1e3, -1e3, 1e3, 0.0], requires_grad=True)
    parameter = torch.tensor([4.0], requires_grad=True)
    found = LOSSES[loss](ahead, torch.tensor([False, False, True, True]), parameter).sum()
    found.backward()
    assert all(torch.isfinite(value).all() for value in (found, ahead.grad, parameter.grad))


def judged(*judgments, ranking=None):
    made = case(id="p")
    texts = [response.id for response in made.responses]
    assert texts[:3] == ["a", "b", "c"]
    return Case(prompt=made.prompt, responses=made.responses, judgments=judgments, ranking=ranking)


def test_ties_are_pairs_judged_equal_and_never_otherwise():
    one = judged(
        judgment("a=b"),
        judgment("b=a"),
        judgment("a=c"),
        judgment("c>a"),
        judgment("b?c"),
    )
    assert ties_of(one, ()) == (IndexedPair(0, 1),)
    assert ties_of(one, (IndexedPair(1, 0),)) == ()


def test_ties_stand_in_one_tier_and_one_tier_is_no_tie():
    told = (judgment("a=b"), judgment("b=c"))
    one = judged(*told, ranking=(("a", "b"), ("c",)))
    assert ties_of(one, pairs_of(one)) == (IndexedPair(0, 1),)
    # Nobody compared the two of this tier, or somebody preferred one of them: they are not ordered, and not equal.
    alone = judged(judgment("a>c"), ranking=(("a", "b"), ("c",)))
    assert ties_of(alone, pairs_of(alone)) == ()
    cycle = judged(judgment("a>b"), judgment("a<b"), ranking=(("a", "b", "c"),))
    assert ties_of(cycle, pairs_of(cycle)) == ()
