import json
from pathlib import Path

import pytest
import torch

import sharded_trainings
import tiny
from many_processes import ended_together
from steelyard.networks.devices import LOCAL
from steelyard.training.checkpoints import load_checkpoint
from steelyard.training.distributed import clip_gradient, copy_into, load_on_first, outline_of, shard, unshard, whole
from training_examples import network

pytestmark = pytest.mark.slow


def save_large(folder):
    """A classifier of 110 MB in float32, none of its tensors much of it."""
    from transformers import Qwen2ForSequenceClassification

    sizes = {"hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 8}
    with torch.random.fork_rng():
        Qwen2ForSequenceClassification(tiny.config(num_labels=1, **sizes)).to(torch.bfloat16).save_pretrained(folder)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same trainings in one process and in two."""
    work = tmp_path_factory.mktemp("sharded")
    save_large(work / "large")
    one = sharded_trainings.everything(work / "one")
    ended = ended_together(Path(sharded_trainings.__file__), work)
    assert [process.returncode for process in ended] == [0, 0], ended[0].stderr + ended[1].stderr
    many = torch.load(work / "many.pt", weights_only=True)
    one["loaded"] = dict(zip(("peak", "weights"), sharded_trainings.peak_of_loading(work / "large"), strict=True))
    one["gone on elsewhere"] = sharded_trainings.trained("plain", start=load_checkpoint(work / "many"))
    return one, many


@pytest.mark.parametrize("name", sorted(name for name in sharded_trainings.SETTINGS if "bfloat16" not in name))
def test_two_processes_train_what_one_does(both, name):
    """In float64 but for what transformers and the loss's weights hold in float32."""
    one, many = both[0][name], both[1][name]
    assert torch.allclose(torch.tensor(one["curve"]), torch.tensor(many["curve"]), rtol=0, atol=1e-9)
    assert one["weights"].keys() == many["weights"].keys()
    for key, weight in one["weights"].items():
        assert (weight - many["weights"][key]).abs().max() < 1e-9, key
    assert (one["rewards"] - many["rewards"]).abs().max() < 1e-9
    assert one["measured"] == many["measured"]


@pytest.mark.parametrize("name", ["bfloat16", "bfloat16, an adapter"])
def test_bfloat16_computes_as_in_one_process(both, name):
    """Norms are rounded too where layers are gathered in bfloat16: equal to what bfloat16 can tell."""
    one, many = (torch.tensor(found[name]["curve"])[:, 2] for found in both)
    assert torch.allclose(one, many, rtol=0, atol=0.02)
    stored = {key: weight.dtype for key, weight in both[0][name]["weights"].items()}
    assert {key: weight.dtype for key, weight in both[1][name]["weights"].items()} == stored
    # Master weights stay in float32; what is frozen needs none.
    assert set(stored.values()) == ({torch.float32} if name == "bfloat16" else {torch.float32, torch.bfloat16})


@pytest.mark.field  # the compiler takes a minute or more on a small machine
def test_compiled_layers_train_alike_in_two_processes(tmp_path):
    ended = ended_together(Path(sharded_trainings.__file__), tmp_path, "compiled", seconds=600)
    assert [process.returncode for process in ended] == [0, 0], ended[0].stderr + ended[1].stderr
    found = json.loads((tmp_path / "compiled.json").read_text())
    assert found["compiled"] == pytest.approx(found["not compiled"], abs=1e-6)
    assert "recompile_limit" not in ended[0].stderr


def test_a_training_goes_on_bit_for_bit_and_elsewhere_to_rounding(both):
    for found in both:
        whole_one, again, elsewhere = (found[name] for name in ("plain", "gone on", "gone on elsewhere"))
        assert again["curve"] == whole_one["curve"]
        for key, weight in whole_one["weights"].items():
            assert torch.equal(weight, again["weights"][key]), key
            assert (weight - elsewhere["weights"][key]).abs().max() < 1e-9, key


def test_only_the_first_process_ever_holds_a_whole_model_and_none_a_whole_checkpoint(both):
    """The others hold their half; weights come out of it as they are in the file, bit for bit."""
    (one, many), saving = (found["loaded"] for found in both), both[1]["peaks of saving"]
    assert one["weights"].keys() == many["weights"].keys()
    assert all(torch.equal(weight, many["weights"][name]) for name, weight in one["weights"].items())
    assert many["named"] == [len(one["weights"]), 0]
    size = sum(weight.nbytes for weight in one["weights"].values())
    assert one["peak"] > 0.9 * size, "else nothing is measured"
    assert many["peaks"][1] < 0.75 * size
    assert max(saving) < 0.25 * size, "of weights and both moments one tensor at a time is whole"


def test_families_are_handed_out_with_all_that_is_no_weight(both):
    one, many = (found["families"] for found in both)
    for kind, rewards in one.items():
        assert torch.allclose(rewards, many[kind], rtol=1e-5, atol=1e-6), kind
        assert rewards.std() > 1e-3, "else anything would do"


def test_where_the_first_is_refused_the_others_end_too(both):
    assert both[1]["refused"] == ["no model", "the first process has ended with an error, and reports it"]


def test_moments_that_cannot_be_gathered_are_refused(both):
    assert "optimiser=adamw-8bit in 2 processes" in both[1]["8 bits"]


def test_one_process_alone_divides_nothing():
    model = network()
    assert load_on_first(lambda: model, world=LOCAL) is model
    assert outline_of(model, world=LOCAL) is None
    assert shard(model, dtype="float32", world=LOCAL) is model
    assert unshard(model, None, world=LOCAL) is model
    tensor = torch.arange(3.0)
    assert whole(tensor) is tensor
    there = torch.zeros(3)
    copy_into(tensor, there, world=LOCAL)
    assert there.tolist() == [0, 1, 2]
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([3.0, 4.0])
    assert clip_gradient([weight], 1.0, world=LOCAL) == 5
    assert weight.grad.norm() == pytest.approx(1, abs=1e-5)
