from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation_summaries import resampled_bench
from steelyard.core.types import Scores
from steelyard.evaluation.bench_pairs import Ranked
from steelyard.evaluation.measures.top_2 import estimate, first_two
from strategies import case

few = st.sampled_from([-1.0, 0.0, 0.5, 2.0])
prompts = st.lists(st.lists(st.tuples(st.integers(0, 2), few), max_size=5), min_size=1, max_size=5)


def flat(responses):
    rows = [(index, tier, score) for index, own in enumerate(responses) for tier, score in own]
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return Ranked(np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], float))


def share_of_orders(responses, score_of):
    """The share of all orders, sorted by score, in which one of the first two responses is in the best tier."""
    best = min(tier for tier, _ in responses)
    orders = [sorted(order, key=lambda own: -score_of(own)) for order in permutations(responses)]
    return sum(any(tier == best for tier, _ in order[:2]) for order in orders) / len(orders)


@given(prompts)
def test_it_is_the_share_of_all_orders(responses):
    found = first_two(flat(responses), len(responses))
    for own, model, chance in zip(responses, *found, strict=True):
        if len(own) < 3 or len({tier for tier, _ in own}) < 2:
            assert np.isnan(model)
            assert np.isnan(chance)
        else:
            assert model == pytest.approx(share_of_orders(own, lambda response: response[1]))
            assert chance == pytest.approx(share_of_orders(own, lambda response: 0.0))


def test_by_hand():
    # a is best: second in p, last in q; r has two responses, s one tier. At random 2 of 3 pairs hold a.
    ranking = (("a",), ("b",), ("c",))
    cases = [
        case("p", "abc", ranking=ranking), case("q", "abc", ranking=ranking),
        case("r", "ab", ranking=(("a",), ("b",))), case("s", "abc", ranking=(("a", "b", "c"),)),
    ]  # fmt: skip
    scores = [(2.0, 3.0, 1.0), (1.0, 2.0, 3.0), (1.0, 0.0), (3.0, 2.0, 1.0)]
    made = [
        Scores(prompt=one.prompt.id, scores=dict(zip("abc", own, strict=False)))
        for one, own in zip(cases, scores, strict=True)
    ]
    found = estimate(resampled_bench(cases, made))
    assert (found.model.micro.value, found.model.micro.n) == (0.5, 2)
    assert found.chance.micro.value == pytest.approx(2 / 3)
    assert estimate(resampled_bench(cases[2:3], made[2:3])) is None
