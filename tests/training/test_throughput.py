import pytest
import torch

from steelyard.training import throughput
from steelyard.training.batching import Slot
from steelyard.training.throughput import (
    ModelShape,
    Pace,
    Peak,
    decoder_shape,
    num_attended,
    peak_of,
    reached_part,
    training_flops,
)
from steelyard.training.trained_network import choose_trainable
from training_examples import answers, network

ROWS = ((1, 2, 3, 4), (1, 2, 5))  # two tokens shared, then two and one of their own


def test_attended_tokens_are_counted_one_by_one():
    # The prompt: 1 + 2. The first answer: 3 + 4. The second: 3.
    assert num_attended(ROWS) == 3 + 7 + 3


def test_six_a_weight_and_token_where_all_is_trained():
    assert training_flops(ROWS, ModelShape(100, 100, 100, 0)) == 6 * 100 * 5


def test_frozen_layers_cost_their_forward_pass_alone():
    assert training_flops(ROWS, ModelShape(100, 25, 25, 0)) == 5 * (200 + 50 + 50)
    # Adapters: the gradient goes through every weight and trains few.
    assert training_flops(ROWS, ModelShape(100, 100, 1, 0)) == 5 * (200 + 200 + 2)


def test_attention_costs_twice_as_much_backwards():
    assert training_flops(ROWS, ModelShape(8, 8, 8, 16)) - 6 * 8 * 5 == 13 * 16 * 4 * 3
    assert training_flops(ROWS, ModelShape(8, 0, 0, 16)) - 2 * 8 * 5 == pytest.approx(13 * 16 * 4)


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
    assert "MFU" not in pace.note()  # a measured peak varies with the load: shares above 1 were shown
    assert "left" not in pace.note()  # the bar tells it, once
    assert "MFU 0%" in Pace(EXAMPLES, shape, Peak(1e9, is_measured=False), num_steps=1).note()


def test_a_processor_is_measured_by_its_fastest_product_and_says_so(monkeypatch):
    assert peak_of(torch.device("cpu"), "float32").flops > 0
    # The second of all products takes a quarter of a second, each other one a second.
    seconds = [1.0, 0.25, *[1.0] * (throughput._NUM_PRODUCTS - 2)]
    clock = iter([time for start, length in enumerate(seconds) for time in (10.0 * start, 10.0 * start + length)])
    monkeypatch.setattr(throughput, "_now", lambda device: next(clock))
    size = throughput._MATRIX_SIZE.get("cpu", 1024)
    assert peak_of(torch.device("cpu"), "float32") == Peak(2 * size**3 / 0.25, is_measured=True)
    assert next(clock, None) is None


def test_measuring_draws_nothing_from_the_training():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    peak_of(torch.device("cpu"), "bfloat16")
    assert torch.equal(before, torch.get_rng_state())
