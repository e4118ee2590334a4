import pytest
import torch

from steelyard.io.atomic import atomic_write
from steelyard.training import checkpoints
from steelyard.training.checkpoints import read_stored, write_stored

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
