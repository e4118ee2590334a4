import pytest

from steelyard.training.batching import Slot
from steelyard.training.preparation import choose_trainable
from steelyard.training.throughput import Pace, Peak, decoder_shape, reached_part, training_flops
from training_examples import answers, network

EXAMPLES = (answers((7, 8), (20, 21), (40,), pairs=[(0, 1)]),)
SLOTS = (Slot(0, 0), Slot(0, 1))

# hidden 32, middle 48, 4 heads of 8, 2 of them for keys and values: weights and biases of one layer and its two norms.
LAYER = (32 * 32 + 32) + 2 * (32 * 16 + 16) + 32 * 32 + 3 * 32 * 48 + 2 * 32


def test_the_decoder_shape_a_decoder_by_hand():
    made = network()
    assert decoder_shape(made) == (2 * LAYER + 32, 2 * LAYER + 32, 2 * LAYER + 32, 2 * 4 * 8)
    list(choose_trainable(made, 1))
    assert decoder_shape(made)[:3] == (2 * LAYER + 32, LAYER + 32, LAYER + 32)
    assert reached_part(decoder_shape(made)) == (
        LAYER + 32,
        LAYER + 32,
        LAYER + 32,
        64 * (LAYER + 32) // (2 * LAYER + 32),
    )
    list(choose_trainable(made, 0))
    assert reached_part(decoder_shape(made)) == (0, 0, 0, 0)
    assert decoder_shape(made)[:3] == (2 * LAYER + 32, 0, 0)


def test_the_figures_agree_with_each_other():
    shape = decoder_shape(network())
    pace = Pace(EXAMPLES, shape, Peak(1e9, is_measured=True), num_steps=10)
    pace.skip(2)
    for seconds in (0.5, 1.5):
        pace.add(SLOTS, num_pairs=1, num_tokens=5, seconds=seconds)
    told = pace.figures()
    assert told["tokens_per_second"] == pytest.approx(5 * told["pairs_per_second"])
    seconds = 2.0
    assert told["pairs_per_second"] == pytest.approx(2 / seconds)
    assert told["mfu"] == pytest.approx(2 * training_flops(EXAMPLES[0].rows, shape) / seconds / 1e9)
    assert told["seconds_left"] == pytest.approx(6 * seconds / 2)
    assert "of the measured peak" in pace.note()
    assert "left" not in pace.note()  # the bar tells it, once
    assert "measured" not in Pace(EXAMPLES, shape, Peak(1e9, is_measured=False), num_steps=1).note()
