from pathlib import Path

import pytest
import torch

import sharded_trainings
from many_processes import ended_together
from steelyard.stages.train.checkpoints import load_checkpoint
from steelyard.stages.train.sharded import clip_gradient, gathered, put, shape_of, spread, whole, whole_on_first
from training_examples import network


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same trainings in one process and in two."""
    work = tmp_path_factory.mktemp("sharded")
    one = sharded_trainings.everything(work / "one")
    ended = ended_together(Path(sharded_trainings.__file__), work)
    assert [process.code for process in ended] == [0, 0], ended[0].err + ended[1].err
    many = torch.load(work / "many.pt", weights_only=True)
    one["gone on elsewhere"] = sharded_trainings.trained("plain", start=load_checkpoint(work / "many").state)
    return one, many


@pytest.mark.parametrize("name", sorted(set(sharded_trainings.SETTINGS) - {"bfloat16"}))
def test_two_processes_train_what_one_does(both, name):
    """In float64 but for what transformers and the loss's weights hold in float32."""
    one, many = both[0][name], both[1][name]
    assert torch.allclose(torch.tensor(one["curve"]), torch.tensor(many["curve"]), rtol=0, atol=1e-9)
    assert one["weights"].keys() == many["weights"].keys()
    for key, weight in one["weights"].items():
        assert (weight - many["weights"][key]).abs().max() < 1e-9, key
    assert (one["rewards"] - many["rewards"]).abs().max() < 1e-9
    assert one["measured"] == many["measured"]


def test_bfloat16_computes_as_in_one_process(both):
    """Norms are rounded too where layers are gathered in bfloat16: equal to what bfloat16 can tell."""
    one, many = (torch.tensor(found["bfloat16"]["curve"])[:, 2] for found in both)
    assert torch.allclose(one, many, rtol=0, atol=0.02)
    assert all(weight.dtype == torch.float32 for weight in both[1]["bfloat16"]["weights"].values())


def test_a_training_goes_on_bit_for_bit_and_elsewhere_to_rounding(both):
    for found in both:
        whole_one, again, elsewhere = (found[name] for name in ("plain", "gone on", "gone on elsewhere"))
        assert again["curve"] == whole_one["curve"][2:]
        for key, weight in whole_one["weights"].items():
            assert torch.equal(weight, again["weights"][key]), key
            assert (weight - elsewhere["weights"][key]).abs().max() < 1e-9, key


def test_moments_that_cannot_be_gathered_are_refused(both):
    assert "optimiser=adamw-8bit in 2 processes" in both[1]["8 bits"]


def test_one_process_alone_divides_nothing():
    model = network()
    assert shape_of(model) is None
    assert spread(model, dtype="float32") is model
    assert gathered(model, None) is model
    tensor = torch.arange(3.0)
    assert whole(tensor) is tensor
    assert whole_on_first({"a": tensor})["a"] is tensor
    there = torch.zeros(3)
    put(tensor, there)
    assert there.tolist() == [0, 1, 2]
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([3.0, 4.0])
    assert clip_gradient([weight], 1.0) == 5
    assert weight.grad.norm() == pytest.approx(1, abs=1e-5)
