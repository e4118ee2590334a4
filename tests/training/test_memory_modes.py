import json

import pytest
import torch
from torch._dynamo.utils import counters

import packed_models
import tiny
import training_examples
from steelyard.core.errors import ConfigError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from steelyard.io.cases import write_cases
from steelyard.networks.adapters import put_adapter
from steelyard.networks.packing import pack
from steelyard.stages.train import Config, train
from steelyard.training import memory
from steelyard.training.config import check_settings
from steelyard.training.memory import (
    compile_parts,
    compile_where_it_pays,
    set_recompute,
    undo_modes,
)
from steelyard.training.throughput import Peak, decoder_shape, training_flops
from steelyard.training.trained_network import adapter_of
from strategies import case

ADAPTED = Config(epochs=2, learning_rate=1e-2, batch_size=3, adapter="lora", adapter_rank=4, adapter_dropout=0.1)


def cases(number):
    return [
        Case(
            prompt=case(id=f"p{index}", text=f"问题 {index}").prompt,
            responses=(Response(id="g", text=f"好的 {index}"), Response(id="b", text=f"no {index}")),
            ranking=(("g",), ("b",)),
        )
        for index in range(number)
    ]


@pytest.fixture
def given(tmp_path):
    write_cases(tmp_path / "train.jsonl", cases(9))
    return tmp_path / "train.jsonl", tiny.save_base(tmp_path / "base")


def scores(folder):
    model = build("models", "classifier", {"path": str(folder)})
    return [value for line in model.score(cases(9)) for value in line.scores.values()]


@pytest.mark.parametrize(("kind", "dtype"), [("lora", "float32"), ("dora", "float32"), ("lora", "bfloat16")])
def test_saved_merged_or_apart_the_model_scores_alike_and_has_learned(given, tmp_path, kind, dtype):
    file, base = given
    both = {}
    for way in ("merged", "adapter"):
        settings = Config(
            epochs=6,
            learning_rate=2e-2,
            batch_size=3,
            adapter=kind,
            save_adapter=way,
            dtype=dtype,
            adapter_rank=4,
        )
        run = train(file, tmp_path / way, settings, model=base)
        assert run.summary.final_loss < 0.5
        both[way] = scores(tmp_path / way)
    assert both["adapter"] == pytest.approx(both["merged"], abs=1e-5)
    good, bad = both["merged"][::2], both["merged"][1::2]
    assert all(one > other for one, other in zip(good, bad, strict=True))
    assert (tmp_path / "merged" / "model.safetensors").is_file()
    assert not (tmp_path / "adapter" / "model.safetensors").exists()
    assert (tmp_path / "adapter" / "adapter_model.safetensors").is_file()


def test_a_training_stopped_and_resumed_ends_bit_equal(given, tmp_path, monkeypatch):
    from steelyard.training.callbacks import SaveCheckpoint

    file, base = given
    settings = Config(**{**{name: getattr(ADAPTED, name) for name in ADAPTED.__struct_fields__}, "checkpoint_every": 1})
    train(file, tmp_path / "whole", settings, model=base)

    class StoppedError(RuntimeError):
        pass

    def stop(self, trainer, record, real=SaveCheckpoint.after_step):
        found = real(self, trainer, record)
        if record.step == 3:
            raise StoppedError
        return found

    with monkeypatch.context() as patched:
        patched.setattr(SaveCheckpoint, "after_step", stop)
        with pytest.raises(StoppedError):
            train(file, tmp_path / "cut", settings, model=base)
    train(file, tmp_path / "cut", settings, model=base)
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut"))
    assert one == other
    lines = [(tmp_path / name / "curve.jsonl").read_text().splitlines() for name in ("whole", "cut")]
    assert [json.loads(line)["loss"] for line in lines[0]] == [json.loads(line)["loss"] for line in lines[1]]


def gradients(network, prompts, *, packed):
    torch.manual_seed(7)
    network.zero_grad()
    rewards = (
        packed_models.packed_rewards(network, pack(prompts)) if packed else packed_models.one_by_one(network, prompts)
    )
    (rewards * torch.linspace(-1, 2, len(rewards), dtype=rewards.dtype)).sum().backward()
    return {name: weight.grad for name, weight in network.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize("mode", ["mlp", "layers"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_recomputing_gives_the_same_gradients_drawn_alike(mode, packed, dropout):
    network = packed_models.network("qwen2", attention_dropout=dropout)
    put_adapter(network, adapter_of(Config(adapter="lora", adapter_dropout=dropout, adapter_layers="q_proj")), seed=0)
    network.double().train()
    network.requires_grad_()
    expected = gradients(network, packed_models.prompts(), packed=packed)
    set_recompute(network, mode)
    found = gradients(network, packed_models.prompts(), packed=packed)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert torch.allclose(found[name], gradient, rtol=0, atol=1e-12 * max(1.0, gradient.abs().max().item())), name


def num_kept(network, mode):
    """How many numbers the forward pass keeps for the backward pass."""
    kept = {}
    set_recompute(network, mode)
    with torch.autograd.graph.saved_tensors_hooks(lambda one: kept.setdefault(id(one), one), lambda one: one):
        packed_models.packed_rewards(network, pack(packed_models.prompts()))
    undo_modes(network)
    return sum({one.data_ptr(): one.numel() for one in kept.values()}.values())


def test_less_is_kept_the_more_is_worked_out_again():
    network = packed_models.network("llama").train()
    none, mlp, layers = (num_kept(network, mode) for mode in ("none", "mlp", "layers"))
    assert none > mlp > layers


def test_modes_are_taken_off_again():
    network = training_examples.network()
    set_recompute(network, "layers")
    assert "forward" in vars(network.layers[0])
    undo_modes(network)
    assert not [module for module in network.modules() if "forward" in vars(module)]


def test_a_long_training_on_a_gpu_is_compiled_by_default(monkeypatch):
    network, examples = (
        training_examples.network(),
        [training_examples.answers(range(5, 25), range(30, 40), range(50, 60), pairs=[(0, 1, 1.0, 0.0)])],
    )
    shape, compiled = decoder_shape(network), []
    flops = sum(training_flops(example.rows, shape) for example in examples)
    monkeypatch.setattr(memory, "compile_parts", compiled.append)
    monkeypatch.setattr(memory, "peak_of", lambda *_: Peak(flops / 10, is_measured=False))
    for device, epochs, setting, is_compiled in (
        ("cpu", 9, None, False), ("cuda", 1, None, False), ("cuda", 2, None, True), ("cuda", 2, False, False),
        ("cuda", 1, True, True), ("cpu", 1, True, True),
    ):  # fmt: skip
        monkeypatch.setattr(memory, "best_device", lambda device=device: torch.device(device))
        compiled.clear()
        compile_where_it_pays(network, examples, Config(epochs=epochs, compile=setting))
        assert bool(compiled) == is_compiled, (device, epochs, setting)


@pytest.mark.field  # the compiler takes minutes on a small machine
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")  # the compiler's own
@pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"
)  # its look at inputs
@pytest.mark.parametrize("mode", ["none", "mlp"])
def test_compiled_parts_have_the_same_loss_and_are_compiled_once(mode):
    torch._dynamo.reset()
    counters.clear()
    network = packed_models.network("qwen2", torch.float32).train()
    prompts = packed_models.prompts()
    expected = gradients(network, prompts, packed=True)
    with torch.no_grad():
        before = packed_models.packed_rewards(network, pack(prompts))
    assert compile_parts(network)
    set_recompute(network, mode)
    found = gradients(network, prompts, packed=True)
    with torch.no_grad():
        assert torch.allclose(packed_models.packed_rewards(network, pack(prompts)), before, atol=1e-5)
    for name, gradient in expected.items():
        assert torch.allclose(found[name], gradient, atol=1e-4 * max(1.0, gradient.abs().max().item())), name
    # Norms and feed-forward parts, with and without a graph: one function of each for all layers and lengths.
    num_graphs = counters["stats"]["unique_graphs"]
    for number in (1, 3, 4):
        gradients(network, prompts[:number], packed=True)
    assert counters["stats"]["unique_graphs"] == num_graphs <= 6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"adapter": "lora", "trainable": "head"}, "adapter=lora with trainable=head"),
        ({"adapter": "lora", "adapter_rank": 0}, "adapter_rank is 0"),
        ({"adapter": "lora", "adapter_dropout": 1.0}, "adapter_dropout is 1.0"),
        ({"save_adapter": "adapter"}, "without an adapter"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        check_settings(Config(**settings))
