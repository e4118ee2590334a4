import importlib.util

import pytest
import torch

import training_examples
from steelyard.core.errors import MissingPartError
from steelyard.training.config import Config
from steelyard.training.gradient_accumulation import make_optimiser, set_rates

HAS_TORCHAO = importlib.util.find_spec("torchao") is not None


def test_a_first_step_moves_each_weight_by_the_rate_against_its_gradient():
    network = training_examples.network()
    optimiser = make_optimiser(network, Config(learning_rate=0.5))
    set_rates(optimiser, 0.1)
    before = network.head.weight.detach().clone()
    network.head.weight.sum().backward()
    optimiser.step()
    # Adam's first step is rate x gradient / (|gradient| + 1e-8), and the gradient of a sum is 1.
    assert torch.allclose(before - network.head.weight.detach(), torch.full_like(before, 0.05), atol=1e-6)


def test_a_rate_that_is_a_tensor_stays_one():
    network = training_examples.network()
    optimiser = make_optimiser(network, Config(learning_rate=0.5))
    rate = torch.tensor(0.0)
    optimiser.param_groups[0]["lr"] = rate
    set_rates(optimiser, 0.1)
    assert optimiser.param_groups[0]["lr"] is rate
    assert rate.item() == pytest.approx(0.05)


@pytest.mark.skipif(HAS_TORCHAO, reason="torchao is installed")
def test_eight_bits_without_their_package_name_it_and_its_group():
    with pytest.raises(MissingPartError, match=r"torchao[\s\S]*steelyard\[eight-bit\]"):
        make_optimiser(training_examples.network(), Config(learning_rate=0.5, optimiser="adamw-8bit"))


@pytest.mark.field  # it is compiled at its first step
@pytest.mark.filterwarnings("ignore")  # torchao's own
@pytest.mark.skipif(not HAS_TORCHAO, reason="torchao is not installed")
def test_eight_bits_move_weights_as_float32_does_but_for_rounding():
    moved = []
    for name in ("adamw", "adamw-8bit"):
        network = training_examples.network()
        optimiser = make_optimiser(network, Config(learning_rate=0.5, optimiser=name))
        set_rates(optimiser, 0.1)
        network.head.weight.sum().backward()
        optimiser.step()
        moved.append(network.head.weight.detach().clone())
    assert torch.allclose(*moved, atol=1e-3)
