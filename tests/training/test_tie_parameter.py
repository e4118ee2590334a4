import pytest
import torch

from steelyard.ranking.pairs import IndexedPair
from steelyard.training.checkpoints import restore, state_of, trained_weights
from steelyard.training.config import Config
from steelyard.training.gradient_accumulation import loss_parameter, parameter_groups, put_loss_parameter
from training_examples import answers, network, trained

# Three prompts with a better answer and two more that were judged equal.
EXAMPLES = tuple(
    answers((7, 8), (20 + index,), (30, index + 40), (60, 61), pairs=[(0, 1), (0, 2)])._replace(
        ties=(IndexedPair(1, 2),)
    )
    for index in range(3)
)


@pytest.mark.parametrize("loss", ["rao-kupper", "davidson"])
def test_ties_are_learned_with_the_weights_and_kept_in_checkpoints(loss):
    config = Config(loss=loss, epochs=40, learning_rate=3e-3, prompts_per_step=3, tie_learning_rate=0.05)
    model = network()
    put_loss_parameter(model, config)
    curve = trained(model, EXAMPLES, config).curve
    assert curve[0]["num_pairs"] == 9
    assert curve[-1]["pair_loss"] < 0.5 * curve[0]["pair_loss"]
    (value,) = loss_parameter(model, config).values()
    assert value != pytest.approx(dict(zip(("rao-kupper", "davidson"), (-0.366512, 0.0), strict=True))[loss], abs=0.1)
    assert "tie" in trained_weights(model)
    groups = parameter_groups(model, config)
    optimiser = torch.optim.AdamW(groups)
    state = state_of(model, optimiser, 1)
    kept = {name: weight.clone() for name, weight in state.weights.items()}
    model.tie.data.fill_(7.0)
    restore(state._replace(weights=kept), model, optimiser)
    assert model.tie.item() == pytest.approx(value)


def test_only_losses_of_ties_have_the_parameter_and_it_is_in_no_saved_file(tmp_path):
    model = network()
    put_loss_parameter(model, Config())
    assert model.tie is None
    assert loss_parameter(model, Config()) == {}
    assert len(parameter_groups(model, Config(learning_rate=5e-6))) == 1
    put_loss_parameter(model, Config(loss="davidson"))
    assert [group["peak"] for group in parameter_groups(model, Config(loss="davidson", learning_rate=5e-6))] == [
        5e-6,
        0.01,
    ]
    assert "tie" not in model.classifier.state_dict()
