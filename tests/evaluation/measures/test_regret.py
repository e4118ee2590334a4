from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.evaluation.measures.regret import budgets_up_to, regret

few = st.sampled_from([-1.0, 0.0, 0.5])
prompts = st.lists(
    st.lists(st.tuples(few, st.sampled_from([0.0, 1.0, 2.5])), min_size=0, max_size=6), min_size=1, max_size=4
)


def plain(own, budget):
    """Every choice of responses one by one: the mean loss of the highest score, of any, minus the least."""
    model, chance = [], []
    for drawn in combinations(own, budget):
        highest = max(score for score, _ in drawn)
        tied = [loss for score, loss in drawn if score == highest]
        least = min(loss for _, loss in drawn)
        model.append(sum(tied) / len(tied) - least)
        chance.append(sum(loss for _, loss in drawn) / budget - least)
    return sum(model) / len(model), sum(chance) / len(chance)


@given(prompts)
def test_it_is_the_mean_over_all_choices(given):
    rows = [(index, score, loss) for index, own in enumerate(given) for score, loss in own]
    prompt, score, loss = (np.array([row[place] for row in rows]) for place in range(3))
    found = regret(prompt.astype(np.int64), score.astype(float), loss.astype(float), (2, 3, 6), len(given))
    for index, own in enumerate(given):
        for place, budget in enumerate((2, 3, 6)):
            if len(own) < max(2, budget):
                assert np.isnan(found.model[index, place])
                assert np.isnan(found.chance[index, place])
            else:
                expected = plain(own, budget)
                assert found.model[index, place] == pytest.approx(expected[0])
                assert found.chance[index, place] == pytest.approx(expected[1])


def test_by_hand():
    # Scores take c first, which is in tier 2: of all three the loss is 2; of two: (c - a) 2, (c - b) 1, (a - b) 0 = 1
    found = regret(np.zeros(3, np.int64), np.array([2.0, 1.0, 3.0]), np.array([0.0, 1.0, 2.0]), (2, 3), 1)
    assert found.model[0].tolist() == [pytest.approx(1.0), pytest.approx(2.0)]
    assert found.chance[0].tolist() == [pytest.approx((0.5 + 1 + 0.5) / 3), pytest.approx(1.0)]


def test_the_curve_has_each_small_n_then_powers_of_two_and_the_largest():
    assert budgets_up_to(5) == (2, 3, 4, 5)
    assert budgets_up_to(40) == (2, 3, 4, 5, 6, 7, 8, 16, 32, 40)
    assert budgets_up_to(1) == ()
