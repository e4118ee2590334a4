import math

import pytest
import torch
from torch import nn

import tiny
import tiny_families
from steelyard.core.errors import ModelError
from steelyard.plugins.models._heads import TURN_MARK, Gate, GatedHead, LinearHead, turn_reader


def linear(weights, bias=None):
    made = nn.Linear(len(weights[0]), len(weights), bias=bias is not None)
    made.weight.data = torch.tensor(weights)
    if bias is not None:
        made.bias.data = torch.tensor(bias)
    return made


def test_a_gate_by_hand():
    gate = Gate([linear([[1.0], [-1.0]]), linear([[1.0, 1.0], [0.0, 0.0]])], temperature=2.0, is_relu_between=True)
    gate.logit_scale.data = torch.tensor([3.0])
    # 4 -> (4, -4) -> ReLU (4, 0) -> (4, 0) -> softmax of (2, 0), times 3
    expected = 3 / (1 + math.exp(-2))
    assert gate(torch.tensor([[4.0]]))[0].tolist() == pytest.approx([expected, 3 - expected])


def test_a_head_by_hand():
    gate = Gate([linear([[0.0], [0.0]])], temperature=1.0, is_relu_between=False)  # one half for each objective
    head = GatedHead(1, gate, num_objectives=2, num_quantiles=2)
    head.regression_layer.weight.data = torch.tensor([[1.0], [3.0], [10.0], [20.0]])
    head.reward_transform_matrix.data = torch.tensor([[1.0, 0.0], [-1.0, 1.0]])
    # quantiles (2, 6), (20, 40) -> means 4, 30 -> transformed 4 - 30 and 30 -> halves
    assert head(torch.tensor([[[7.0], [2.0]]])).tolist() == pytest.approx([0.5 * -26 + 0.5 * 30])


def test_the_last_mark_and_the_last_token_are_read():
    tokenizer = tiny_families.llama3_tokenizer()
    read = turn_reader(tokenizer, where="m")
    mark = tokenizer(TURN_MARK).input_ids
    assert read([1, 2, *mark, 3, *mark, 4, 5]) == (3 + len(mark), 4 + 2 * len(mark))
    assert read([1, 2, 3]) is None
    with pytest.raises(ModelError, match="which the gate reads at"):
        turn_reader(tiny.tokenizer(), where="m")


def test_a_linear_reward_is_the_product_with_the_first_place():
    head = LinearHead(2)
    head.weight.data = torch.tensor([[2.0, -1.0]])
    read = torch.tensor([[[1.0, 1.0], [9.0, 9.0]], [[0.5, 3.0], [9.0, 9.0]]])
    assert head(read).tolist() == [1.0, -2.0]
