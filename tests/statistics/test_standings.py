import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics.aggregation import by_category, mean_accuracy
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of
from steelyard.statistics.pair_counts import CORRECT, PAIRS
from steelyard.statistics.significance import HeadlineBootstrap, compare, letter_groups, rank_shares, standings


def table(right):
    right = np.asarray(right, dtype=np.int64)
    ones = np.ones_like(right)
    return np.stack([ones, right, ones, right], axis=1)


def layout(number):
    return layout_of([Label(f"p{index}", Cell("code" if index % 2 else "chat")) for index in range(number)])


def accuracy(number):
    return mean_accuracy(resample(Items(layout(number), table([0] * number), 0), seed=0)).formula


def test_shares_of_ranks_by_hand():
    drawn = np.array([[0.9, 0.8, 0.1], [0.7, 0.8, 0.1], [0.5, 0.5, 0.6], [0.3, 0.3, 0.3]])
    # First model: first in row 1, second in row 2, ranks 2 and 3 halved in row 3, a third of each in row 4.
    assert rank_shares(drawn)[0] == pytest.approx([(1 + 1 / 3) / 4, (1 + 1 / 2 + 1 / 3) / 4, (1 / 2 + 1 / 3) / 4])
    assert rank_shares(drawn)[2] == pytest.approx([(1 + 1 / 3) / 4, (1 / 3) / 4, (2 + 1 / 3) / 4])


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=6))
def test_every_model_stands_somewhere_and_every_rank_is_taken(drawn):
    found = rank_shares(np.array(drawn, dtype=float))
    assert found.sum(axis=0) == pytest.approx(np.ones(4))
    assert found.sum(axis=1) == pytest.approx(np.ones(4))


def test_letters_by_hand():
    accuracy = np.array([0.5, 0.9, 0.7, 0.8])
    differs = np.zeros((4, 4), dtype=bool)
    differs[1, 0] = differs[1, 2] = differs[3, 0] = True  # 0.9 beats 0.5 and 0.7; 0.8 beats 0.5
    assert letter_groups(accuracy, differs) == ("c", "a", "bc", "ab")
    assert letter_groups(accuracy, np.zeros((4, 4), dtype=bool)) == ("a", "a", "a", "a")
    assert letter_groups(np.array([0.5]), np.zeros((1, 1), dtype=bool)) == ("a",)


def test_many_models_have_many_letters():
    number = 28
    accuracy = np.arange(number, 0, -1.0)
    letters = letter_groups(accuracy, np.triu(np.ones((number, number), dtype=bool), 1))
    assert letters[:2] == ("a", "b")
    assert letters[26:] == ("(27)", "(28)")


def test_far_models_are_told_apart_and_near_ones_are_not():
    rng = np.random.default_rng(0)
    tables = [table(rng.random(400) < share) for share in (0.5, 0.9, 0.89)]
    found = standings(HeadlineBootstrap(layout(400), accuracy(400), 2000, 0), tables)
    assert found.ranks == ((3, 3), (1, 2), (1, 2))
    assert found.groups == ("b", "a", "a")
    assert found.rank_shares[0] == pytest.approx([0, 0, 1])
    assert found.p_corrected[0, 1] < 0.01
    assert found.p_corrected[1, 2] > 0.05
    for one, own in enumerate(tables):  # the mean over the two categories
        expected = np.mean([own[0::2, 1].mean(), own[1::2, 1].mean()])
        assert found.value[one] == pytest.approx(expected)


def test_equal_models_share_their_ranks_and_parts_change_nothing(monkeypatch):
    from steelyard.statistics import significance as module

    tables = [table([1, 0, 1, 1]), table([1, 0, 1, 1])]
    whole = standings(HeadlineBootstrap(layout(4), accuracy(4), 50, 1), tables)
    assert whole.rank_shares == pytest.approx(np.full((2, 2), 0.5))
    monkeypatch.setattr(module, "_NUMBERS_AT_A_TIME", 60)
    parts = standings(HeadlineBootstrap(layout(4), accuracy(4), 50, 1), tables)
    assert parts.rank_shares == pytest.approx(whole.rank_shares)
    assert parts.ranks == whole.ranks == ((1, 2), (1, 2))


def test_any_formula_of_the_columns_ranks_and_each_model_is_asked_for_its_own():
    # The third model is worst by accuracy and best by the last column, which alone this formula sums.
    rng = np.random.default_rng(0)
    tables = [
        np.concatenate([table(rng.random(200) < share), rng.random((200, 1)) < 1 - share], axis=1).astype(np.int64)
        for share in (0.9, 0.5, 0.1)
    ]

    def formula(sums):
        return sums[..., 4].sum(axis=-1) / sums[..., 0].sum(axis=-1)

    found = standings(HeadlineBootstrap(layout(200), formula, 400, 0), tables)
    assert found.ranks == ((3, 3), (2, 2), (1, 1))
    assert found.value == pytest.approx([own[:, 4].mean() for own in tables])


def test_a_headline_drawn_for_many_is_that_of_each_alone():
    rng = np.random.default_rng(1)
    tables = [table(rng.random(60) < share) for share in (0.3, 0.8)]
    beside = HeadlineBootstrap(layout(60), accuracy(60), 4000, 0).draw(tables)
    for place, own in enumerate(tables):
        parts = [own[start::2, 1].astype(np.float64) for start in (0, 1)]
        drawn = [np.mean([rng.choice(part, len(part)).mean() for part in parts]) for _ in range(4000)]
        assert beside.resampled[:, place].std() == pytest.approx(np.std(drawn), rel=0.06)
        assert np.quantile(beside.resampled[:, place], 0.025) == pytest.approx(np.quantile(drawn, 0.025), abs=0.02)


def unequal_tables(number):
    """Two models on prompts of two to eight responses."""
    rng = np.random.default_rng(2)
    responses = rng.integers(2, 9, number)
    pairs = responses * (responses - 1) // 2
    right = [rng.binomial(pairs, rng.beta(3, 1, number)) for _ in range(2)]
    ones = np.ones_like(pairs)
    return [np.stack([pairs, own, ones, own == pairs], axis=1) for own in right]


def test_prompts_of_many_pairs_count_as_fewer_prompts():
    tables = unequal_tables(20)
    found = HeadlineBootstrap(layout(20), accuracy(20), 100, 0).draw(tables).evidence
    totals = resample(Items(layout(20), tables[0], 0), seed=0)
    expected = totals.evidence(by_category(totals.cells).members, denominator=PAIRS, numerator=CORRECT)
    assert found._replace(events=None) == pytest.approx(expected._replace(events=None))
    assert found.events == pytest.approx(expected.events)
    assert found.units < 16


def test_a_difference_of_a_ranking_has_the_interval_of_a_comparison():
    tables = unequal_tables(20)
    ranked = HeadlineBootstrap(layout(20), accuracy(20), 20_000, 0).draw(tables).minus(0, 1, 20)
    compared = compare(layout(20), *tables, num_resamples=20_000, seed=1)
    assert (ranked.estimate.low, ranked.estimate.high) == pytest.approx(
        (compared.accuracy.low, compared.accuracy.high), abs=0.005
    )
