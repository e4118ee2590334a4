import json
from contextlib import contextmanager

import pytest
import torch

import tiny
import training_examples
from steelyard.core.types import Case, Response
from steelyard.io.cases import write_cases
from steelyard.networks.adapters import put_adapter
from steelyard.networks.feature_cache import feature_cache, num_constant_layers
from steelyard.networks.reward_network import padded
from steelyard.stages.train import Config, train
from steelyard.training import trainer as training
from steelyard.training.callbacks import SaveCheckpoint
from steelyard.training.memory import set_recompute
from steelyard.training.trained_network import adapter_of, choose_trainable
from steelyard.training.trainer import Trainer, scorer_of
from strategies import case

EXAMPLES = [
    training_examples.answers(range(5, 25), (30, 31), (50,), (60, 61, 62), pairs=[(0, 1, 1.0, 0.0), (1, 2, 1.0, 0.0)]),
    training_examples.answers(range(70, 80), (90, 91), (95,), pairs=[(1, 0, 1.0, 0.0)]),
    training_examples.answers(range(100, 103), (110,), (111, 112), pairs=[(0, 1, 1.0, 0.0)]),
]
PROMPTS = [example.rows for example in EXAMPLES]


def frozen(**settings):
    network = training_examples.network()
    config = Config(trainable="head", epochs=4, batch_size=2, learning_rate=1e-2, **settings)
    list(choose_trainable(network, 0))
    return network, config


def counted(network):
    passes = []
    network.backbone.register_forward_pre_hook(lambda *_: passes.append(1))
    return passes


@pytest.mark.parametrize("kernel", ["packed", "padded"])
def test_the_head_learns_the_same_and_the_decoder_runs_once(kernel):
    found = {}
    for is_kept in (True, False):
        network, config = frozen(kernel=kernel, tokens_per_forward=40)
        passes, trainer = counted(network), Trainer(network, EXAMPLES, config)
        with trainer.cached_features() as kept:
            assert kept
            asked = len(passes)
            if not is_kept:
                trainer.scorer.cache = None
            trainer.run()
            assert (len(passes) == asked) is is_kept
        assert trainer.scorer.cache is None
        found[is_kept] = ([line["loss"] for line in trainer.curve], network.head.weight.detach().clone())
    assert found[True][0] == pytest.approx(found[False][0], abs=1e-6)
    assert len(found[True][0]) == 8
    assert found[True][0][0] != found[True][0][-1]
    assert torch.allclose(found[True][1], found[False][1], rtol=0, atol=1e-6)


def last_layer_trained(**settings):
    network = training_examples.network()
    config = Config(trainable="last:1", epochs=3, batch_size=2, learning_rate=1e-2, **settings)
    list(choose_trainable(network, 1))
    return network, config


def layer_runs(network, place):
    runs = []
    network.backbone.layers[place].self_attn.register_forward_pre_hook(lambda *_: runs.append(1))
    return runs


@pytest.mark.parametrize("settings", [{}, {"tokens_per_forward": 24}, {"gradient_checkpointing": "layers"}])
def test_the_last_layer_learns_the_same_and_the_frozen_one_runs_once(settings):
    found = {}
    for is_kept in (True, False):
        network, config = last_layer_trained(**settings)
        if config.gradient_checkpointing == "layers":
            set_recompute(network, "layers")
        runs, trainer = layer_runs(network, 0), Trainer(network, EXAMPLES, config)
        with trainer.cached_features() as kept:
            assert kept
            num_runs = len(runs)
            assert num_runs
            if not is_kept:
                trainer.scorer.cache = None
            trainer.run()
            assert (len(runs) == num_runs) is is_kept
        assert trainer.scorer.cache is None
        found[is_kept] = (
            [line["loss"] for line in trainer.curve],
            trainer.scorer.forward([EXAMPLES[0].rows]),
        )
    assert found[True][0] == pytest.approx(found[False][0], abs=1e-6)
    assert found[True][0][0] != found[True][0][-1]
    assert torch.allclose(found[True][1], found[False][1], rtol=0, atol=1e-5)


def test_answers_of_a_prompt_are_scored_by_its_states_in_any_selection():
    network, config = last_layer_trained()
    rows, scorer = EXAMPLES[0].rows, scorer_of(network, config)
    with feature_cache(scorer, PROMPTS):
        runs = layer_runs(network, 0)
        for chosen in (rows[:1], rows[1:], rows[::-1], rows):
            alone = torch.cat([network(*padded([row], filler=0)) for row in chosen])
            del runs[:]
            assert torch.allclose(scorer.forward([chosen]), alone, rtol=0, atol=1e-5)
            assert not runs


def test_only_layers_below_the_first_trained_one_are_constant():
    network, config = last_layer_trained()
    assert num_constant_layers(scorer_of(network, config)) == 1
    network.classifier.get_input_embeddings().weight.requires_grad_(True)
    assert num_constant_layers(scorer_of(network, config)) == 0
    assert num_constant_layers(scorer_of(frozen()[0], config)) == 2


@pytest.mark.parametrize("kernel", ["packed", "padded"])
def test_each_row_has_its_own_features(kernel):
    network, config = frozen(kernel=kernel, tokens_per_forward=40)
    read = scorer_of(network, config).head_inputs([one.rows for one in EXAMPLES])
    rows = [row for one in EXAMPLES for row in one.rows]
    for row, features in zip(rows, read, strict=True):
        hidden = network.backbone(input_ids=torch.tensor([row])).last_hidden_state[0, -1]
        assert torch.allclose(features, hidden, rtol=0, atol=1e-5)


def test_rows_that_are_not_known_are_worked_out():
    network, config = frozen()
    other = training_examples.answers(range(5, 9), (200,), (201,), pairs=[(0, 1, 1.0, 0.0)])
    scorer = scorer_of(network, config)
    expected = scorer.forward([other.rows])
    with feature_cache(scorer, PROMPTS):
        assert torch.equal(scorer.forward([other.rows]), expected)


def test_nothing_is_kept_that_changes():
    network, config = frozen()
    assert num_constant_layers(scorer_of(network, config)) == 2
    assert num_constant_layers(scorer_of(training_examples.network(), Config())) == 0
    network.classifier.config.attention_dropout = 0.1
    assert num_constant_layers(scorer_of(network, config)) == 0
    adapted = training_examples.network()
    settings = Config(adapter="lora", adapter_rank=4, batch_size=2)
    put_adapter(adapted, adapter_of(settings), seed=0)
    with Trainer(adapted, EXAMPLES, settings).cached_features() as is_cached:
        assert not is_cached
    with Trainer(
        frozen()[0], EXAMPLES, Config(trainable="head", epochs=1, batch_size=2)
    ).cached_features() as is_cached:
        assert not is_cached


def test_what_does_not_fit_in_memory_is_not_kept(monkeypatch):
    from steelyard.networks import feature_cache as module

    network, config = frozen()
    monkeypatch.setattr(module, "main_memory", lambda: 1000)  # 7 rows of 32 numbers are 896 bytes: over a quarter
    with feature_cache(scorer_of(network, config), PROMPTS) as is_cached:
        assert not is_cached


class StoppedError(RuntimeError):
    pass


def test_a_whole_run_is_the_same_kept_or_not_and_resumed(tmp_path, monkeypatch):
    made = [
        Case(
            prompt=case(id=f"p{index}", text=f"question {index}").prompt,
            responses=(Response(id="g", text=f"Yes {index}"), Response(id="b", text="no")),
            ranking=(("g",), ("b",)),
        )
        for index in range(9)
    ]
    write_cases(tmp_path / "train.jsonl", made[:6])
    write_cases(tmp_path / "held.jsonl", made[6:])
    base = tiny.save_base(tmp_path / "base")
    config = Config(trainable="head", epochs=3, batch_size=3, learning_rate=1e-2, checkpoint_every=1)

    def run(name):
        train(tmp_path / "train.jsonl", tmp_path / name, config, model=base, held_out=tmp_path / "held.jsonl")
        return [json.loads(line) for line in (tmp_path / name / "curve.jsonl").read_text().splitlines()]

    def stop(self, trainer, record, real=SaveCheckpoint.after_step):
        continues = real(self, trainer, record)
        if record.step == 3:
            raise StoppedError
        return continues

    kept = run("kept")
    with monkeypatch.context() as patched:
        patched.setattr(SaveCheckpoint, "after_step", stop)
        with pytest.raises(StoppedError):
            run("cut")
    assert run("cut") == kept

    @contextmanager
    def nothing_kept(*_):
        yield False

    monkeypatch.setattr(training, "feature_cache", nothing_kept)
    plain = run("plain")
    assert [line["step"] for line in plain] == [line["step"] for line in kept]
    for one, other in zip(kept, plain, strict=True):
        assert one.get("loss", 0.0) == pytest.approx(other.get("loss", 0.0), abs=1e-6)
        assert one.get("held_out") == other.get("held_out")
    from safetensors.torch import load_file

    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("kept", "plain"))
    assert one.keys() == other.keys()
    assert all(torch.allclose(one[name], other[name], rtol=0, atol=1e-6) for name in one)
