import pytest
import torch

from steelyard.core.errors import FileError
from steelyard.training.checkpoints import (
    CHECKPOINT_FILE,
    BestWeights,
    Checkpoint,
    best_in_memory,
    forget_checkpoint,
    load_checkpoint,
    put_weights,
    restore,
    save_checkpoint,
    state_of,
    trained_weights,
)
from training_examples import network


def a_step(model, optimiser):
    sum(weight.square().sum() for weight in model.parameters()).backward()
    optimiser.step()
    optimiser.zero_grad()


def test_what_is_restored_goes_on_as_if_it_had_never_stopped(tmp_path):
    model, other = network(0), network(1)
    optimisers = [torch.optim.AdamW(one.parameters(), lr=1e-2) for one in (model, other)]
    a_step(model, optimisers[0])
    line = {"step": 1, "loss": 0.5, "held_out": {"accuracy": 1.0}}
    best = BestWeights(1, 0.75, {"classifier.score.weight": torch.ones(1, 32)})
    save_checkpoint(tmp_path, Checkpoint(state_of(model, optimisers[0], 1), [line], best))
    a_step(model, optimisers[0])
    found = load_checkpoint(tmp_path)
    assert (found.state.step, found.lines) == (1, [line])
    assert (found.best.step, found.best.value) == (1, 0.75)
    assert found.best.weights["classifier.score.weight"].read().tolist() == [[1] * 32]
    in_memory = best_in_memory(found.best, other).weights["classifier.score.weight"]
    assert in_memory.tolist() == [[1] * 32]
    restore(found.state, other, optimisers[1])
    a_step(other, optimisers[1])
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), other.parameters(), strict=True))


def test_no_checkpoint_and_a_broken_one(tmp_path):
    assert load_checkpoint(tmp_path) is None
    (tmp_path / CHECKPOINT_FILE).write_bytes(b"cut off")
    with pytest.raises(FileError, match=r"checkpoint\.pt: not a checkpoint of this version"):
        load_checkpoint(tmp_path)
    forget_checkpoint(tmp_path)
    assert load_checkpoint(tmp_path) is None


def test_only_trained_weights_are_kept_and_put_back():
    model = network()
    for weight in model.backbone.parameters():
        weight.requires_grad_(False)
    own = trained_weights(model)
    assert set(own) == {"classifier.score.weight"}
    put_weights({"classifier.score.weight": torch.zeros_like(model.head.weight)}, model)
    assert model.head.weight.abs().sum() == 0
