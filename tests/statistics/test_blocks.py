import numpy as np
import pytest

from steelyard.statistics.bootstrap import MOST_BLOCKS, Items, Terms, add_up, draw_blocks, one_group, resample
from steelyard.statistics.groups import Cell, Label


def labels_of(number, category=lambda index: "code"):
    return [Label(f"p{index:05}", Cell(category(index))) for index in range(number)]


def total(blocks, values):
    rows = np.arange(len(values))
    return add_up(blocks, Terms(rows, one_group(len(values)), [np.asarray(values, float)]), 1)


def test_sums_by_hand():
    blocks = draw_blocks(labels_of(4), num_resamples=20, seed=0)
    terms = Terms(np.array([0, 0, 1, 3]), np.array([0, 1, 1, -1]), [np.array([1.0, 2.0, 4.0, 8.0]), np.ones(4)])
    sums = add_up(blocks, terms, 2)
    assert sums.point.tolist() == [[1.0, 1.0], [6.0, 2.0]]
    times = blocks.weights[:, blocks.block]  # how often each prompt was drawn
    assert np.array_equal(sums.resampled[:, 0, 0], times[:, 0])
    assert np.array_equal(sums.resampled[:, 1, 0], 2 * times[:, 0] + 4 * times[:, 1])


def test_every_resample_keeps_the_size_of_each_category():
    blocks = draw_blocks(labels_of(30, lambda index: "code" if index < 10 else "chat"), num_resamples=50, seed=1)
    is_code = np.arange(30) < 10
    assert np.allclose(blocks.weights[:, blocks.block[is_code]].sum(axis=1), 10)
    assert np.allclose(blocks.weights[:, blocks.block[~is_code]].sum(axis=1), 20)


def test_parallel_items_are_drawn_together():
    labels = [Label(f"p{index // 2}", Cell("code", None, "zh" if index % 2 else "he")) for index in range(10)]
    blocks = draw_blocks(labels, num_resamples=5, seed=0)
    assert (blocks.block[::2] == blocks.block[1::2]).all()
    assert (blocks.unit[::2] == blocks.unit[1::2]).all()
    assert blocks.num_blocks == 5


def test_the_order_of_prompts_does_not_matter():
    labels, values = labels_of(3000, lambda index: "code" if index % 3 else "chat"), np.arange(3000)
    order = np.random.default_rng(0).permutation(3000)
    one = total(draw_blocks(labels, num_resamples=30, seed=4), values)
    other = total(draw_blocks([labels[index] for index in order], num_resamples=30, seed=4), values[order])
    assert np.allclose(one.resampled, other.resampled)
    assert not np.allclose(one.resampled, total(draw_blocks(labels, num_resamples=30, seed=5), values).resampled)


@pytest.mark.parametrize("number", [400, 6 * MOST_BLOCKS])
def test_the_spread_is_that_of_the_bootstrap_over_prompts(number):
    values = np.random.default_rng(3).integers(0, 3, number)
    labels = labels_of(number)
    blocks = draw_blocks(labels, num_resamples=2000, seed=0)
    assert blocks.num_blocks <= MOST_BLOCKS
    own = total(blocks, values).resampled[:, 0, 0]
    other = resample(Items(blocks.layout, values[:, None], 2000), seed=0).resampled[:, 0, 0]
    assert own.mean() == pytest.approx(values.sum(), rel=0.01)
    assert own.std() == pytest.approx(other.std(), rel=0.08)
