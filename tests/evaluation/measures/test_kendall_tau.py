import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from evaluation_summaries import resampled_bench
from steelyard.core.types import Scores
from steelyard.evaluation.bench_pairs import Ranked
from steelyard.evaluation.columns import prompts_by_size
from steelyard.evaluation.measures.kendall_tau import estimate, kendall, rows
from strategies import case

few = st.sampled_from([-1.0, 0.0, 0.5, 2.0])
prompts = st.lists(st.lists(st.tuples(st.integers(0, 3), few), min_size=0, max_size=7), min_size=1, max_size=8)


def flat(given):
    rows = [(index, tier, score) for index, own in enumerate(given) for tier, score in own]
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return Ranked(np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], float))


@given(prompts)
def test_tau_is_scipys_where_that_is_defined(given):
    ranked = flat(given)
    found = (*kendall(ranked, len(given)), ranked.has_order(len(given)))
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


@given(prompts)
def test_every_response_of_two_or_more_is_in_one_block(given):
    ranked = flat(given)
    seen = [row for block in prompts_by_size(ranked.prompt, len(given)) for row in block.rows.reshape(-1).tolist()]
    sizes = [len(own) for own in given]
    expected = [row for row, prompt in enumerate(ranked.prompt.tolist()) if sizes[prompt] > 1]
    assert sorted(seen) == expected


RANKING = (("a",), ("b",), ("c",))


def estimated(*scores):
    cases = [case(f"p{index}", "abc", ranking=RANKING) for index in range(len(scores))]
    lines = [
        Scores(prompt=one.prompt.id, scores=dict(zip("abc", own, strict=True)))
        for one, own in zip(cases, scores, strict=True)
    ]
    return estimate(resampled_bench(cases, lines))


def test_constant_scores_are_counted_and_not_passed_over_in_silence():
    found = estimated((3, 2, 1), (1, 1, 1))
    assert (found.micro.value, found.constant_as_zero.micro.value, found.num_constant) == (1.0, 0.5, 1)
    plain, with_zero = rows(found)
    assert (plain.micro.value, with_zero.micro.value) == (1.0, 0.5)
    assert with_zero.title.endswith("(1)")
    assert len(rows(estimated((3, 2, 1)))) == 1
