import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from steelyard.evaluation.measures.rank_correlation import Ranked, blocks_by_size, first_choice, kendall

few = st.sampled_from([-1.0, 0.0, 0.5, 2.0])
prompts = st.lists(st.lists(st.tuples(st.integers(0, 3), few), min_size=0, max_size=7), min_size=1, max_size=8)


def flat(given):
    rows = [(index, tier, score) for index, own in enumerate(given) for tier, score in own]
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return Ranked(np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], float))


@given(prompts)
def test_tau_is_scipys_where_that_is_defined(given):
    found = kendall(flat(given), len(given))
    for own, tau, is_constant, has_order in zip(given, *found, strict=True):
        if len({tier for tier, _ in own}) < 2 or len({score for _, score in own}) < 2:
            assert np.isnan(tau)
        else:
            expected = kendalltau([-tier for tier, _ in own], [score for _, score in own], variant="b").statistic
            assert tau == pytest.approx(expected)
        assert has_order == (len({tier for tier, _ in own}) > 1)
        assert is_constant == (len(own) > 1 and len({score for _, score in own}) == 1)


def test_tau_by_hand():
    # tiers a | b c: of three pairs one is within a tier. a > b right, a < c wrong: tau = 0. Turned scores: the same.
    assert kendall(flat([[(0, 2.0), (1, 1.0), (1, 3.0)]]), 1).tau.tolist() == [0.0]
    assert kendall(flat([[(0, 3.0), (1, 2.0), (2, 1.0)]]), 1).tau.tolist() == [1.0]
    # a > b right, a = c tied: 1 / sqrt(2 told x 2 ordered), b - c within one tier but told apart
    assert kendall(flat([[(0, 2.0), (1, 1.0), (1, 2.0)]]), 1).tau.tolist() == [0.5]


def test_the_first_choice_by_hand():
    found = first_choice(
        flat(
            [
                [(0, 3.0), (0, 1.0), (1, 2.0)],  # the best is in the first tier
                [(0, 1.0), (1, 2.0)],  # it is not
                [(0, 2.0), (1, 2.0), (1, 2.0), (1, 0.0)],  # one of three that share the highest score
                [(0, 2.0), (0, 1.0)],  # one tier: nothing to choose
                [(0, 2.0)],
            ]
        ),
        5,
    )
    for own, expected in zip(
        found,
        [(1, 0, 0), (1, 0, 1 / 3), (1, 0, 1), (2 / 3, 1 / 2, 1 / 4)],
        strict=True,
    ):
        assert own[:3].tolist() == pytest.approx(list(expected))
        assert np.isnan(own[3:]).all()


@given(prompts)
def test_every_response_of_two_or_more_is_in_one_block(given):
    ranked = flat(given)
    seen = [row for block in blocks_by_size(ranked.prompt, len(given)) for row in block.rows.reshape(-1).tolist()]
    sizes = [len(own) for own in given]
    expected = [row for row, prompt in enumerate(ranked.prompt.tolist()) if sizes[prompt] > 1]
    assert sorted(seen) == expected
