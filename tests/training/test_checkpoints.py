import pytest
import torch

from steelyard.core.errors import FileError
from steelyard.io.atomic import atomic_write
from steelyard.training import checkpoints
from steelyard.training.checkpoints import (
    CHECKPOINT_FILE,
    BestWeights,
    Checkpoint,
    best_in_memory,
    load_checkpoint,
    put_weights,
    read_stored,
    remove_checkpoint,
    restore,
    save_checkpoint,
    state_of,
    trained_weights,
    write_stored,
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
    remove_checkpoint(tmp_path)
    assert load_checkpoint(tmp_path) is None


def test_only_trained_weights_are_kept_and_put_back():
    model = network()
    for weight in model.backbone.parameters():
        weight.requires_grad_(False)
    own = trained_weights(model)
    assert set(own) == {"classifier.score.weight"}
    put_weights({"classifier.score.weight": torch.zeros_like(model.head.weight)}, model)
    assert model.head.weight.abs().sum() == 0


TENSORS = {
    "float32": torch.tensor([[1.5, -2.0], [0.25, 3.0]]),
    "bfloat16": torch.tensor([1.5, -0.0, 3.0], dtype=torch.bfloat16),
    "float64": torch.tensor([1e-300, 2.0], dtype=torch.float64),
    "whole numbers": torch.tensor([[3], [-4]]),
    "turned": torch.arange(6.0).reshape(2, 3).T,
}


def test_what_is_written_is_read_bit_for_bit_one_tensor_at_a_time(tmp_path):
    content = {"step": 3, "groups": [{"betas": (0.9, 0.99), "rate": torch.tensor(0.5)}], "none": None, "in": TENSORS}
    with atomic_write(tmp_path / "file") as file:
        write_stored(content, file)
    found = read_stored(tmp_path / "file")
    assert (found["step"], found["none"], found["groups"][0]["betas"]) == (3, None, (0.9, 0.99))
    assert found["groups"][0]["rate"].item() == 0.5
    for name in reversed(TENSORS):
        stored, expected = found["in"][name], TENSORS[name]
        assert (stored.shape, stored.dtype) == (expected.shape, expected.dtype)
        assert torch.equal(stored.read(), expected), name


def test_a_process_that_writes_nothing_gathers_as_often_as_the_one_that_writes(tmp_path, monkeypatch):
    gathered = []
    monkeypatch.setattr(checkpoints, "whole", lambda tensor: gathered.append(tuple(tensor.shape)) or tensor)
    content = {"a": torch.zeros(2), "b": [torch.ones(3, 1), 7]}
    write_stored(content, None)
    assert gathered == [(2,), (3, 1)]
    with atomic_write(tmp_path / "file") as file:
        write_stored(content, file)
    assert gathered == 2 * [(2,), (3, 1)]


@pytest.mark.parametrize("content", [b"", b"cut off", b"long enough to have an end, but another one"])
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match="does not end as one"):
        read_stored(tmp_path / "file")


def test_a_file_that_has_lost_its_tensors_is_refused(tmp_path):
    with atomic_write(tmp_path / "file") as file:
        write_stored({"a": torch.zeros(2)}, file)
    found = read_stored(tmp_path / "file")["a"]
    (tmp_path / "file").write_bytes(b"1234567")
    with pytest.raises(ValueError, match="ends within a tensor"):
        found.read()
