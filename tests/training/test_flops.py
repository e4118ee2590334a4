import pytest

from steelyard.training.throughput import ModelShape, num_attended, training_flops

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
