import json
import signal

import pytest
import torch

import tiny
import warm_process
from steelyard.core.errors import EvidenceError, ModelError, OutputError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from steelyard.io.cases import write_cases
from steelyard.networks.loading import load_tokenizer
from steelyard.stages.train import Config, train
from strategies import case

GOOD, BAD = ["好的，明白了。", "Yes, here it is.", "שלום"], ["坏", "no", "لا"]


def cases(number, name="p"):
    return [
        Case(
            prompt=case(id=f"{name}{index}", text=f"question {name} {index}").prompt,
            responses=(
                Response(id="g", text=GOOD[index % 3]),
                Response(id="b", text=BAD[index % 3]),
                Response(id="u", text="?"),
            ),
            ranking=(("g",), ("b",)),
        )
        for index in range(number)
    ]


@pytest.fixture
def given(tmp_path):
    write_cases(tmp_path / "train.jsonl", cases(12))
    write_cases(tmp_path / "held.jsonl", cases(4, "q"))
    return tmp_path / "train.jsonl", tmp_path / "held.jsonl", tiny.save_base(tmp_path / "base")


FAST = Config(epochs=8, learning_rate=3e-3, batch_size=4)


def test_held_out_cases_are_scored_once_an_evaluation_and_never_again(given, tmp_path):
    file, held_out, base = given
    rows = []

    def see(module, inputs):
        if isinstance(module, torch.nn.Embedding) and not torch.is_grad_enabled():
            rows.extend(inputs[0].tolist())

    hook = torch.nn.modules.module.register_module_forward_pre_hook(see)
    config = Config(epochs=2, kernel="padded", preflight=False)
    try:
        run = train(file, tmp_path / "out", config, model=base, held_out=held_out)
    finally:
        hook.remove()
    tokenizer = load_tokenizer(str(base))
    # Two evaluations of 4 prompts with 2 ranked answers each; summary and reference take the second one's rewards.
    assert sum("question q" in tokenizer.decode(row) for row in rows) == 2 * 4 * 2
    assert run.summary.held_out.num_pairs == 4
    manifest = json.loads((tmp_path / "out" / "steelyard.json").read_text())
    assert (manifest["reference"]["name"], manifest["reference"]["num_rewards"]) == ("held out: held.jsonl", 8)
    model = build("models", "classifier", {"path": str(tmp_path / "out"), "kernel": "padded"})
    rewards = [line.scores[name] for line in model.score(cases(4, "q")) for name in "gb"]
    assert manifest["reference"]["mean"] == pytest.approx(sum(rewards) / 8, abs=1e-5)


def test_a_model_is_trained_measured_saved_and_scored(given, tmp_path):
    file, held_out, base = given
    run = train(file, tmp_path / "out", FAST, model=base, held_out=held_out)
    assert (run.summary.num_pairs, run.summary.num_steps, run.summary.share_of_pairs_kept) == (12, 24, 1.0)
    assert run.counts.noted == {"responses in no pair": 12, "held out: responses in no pair": 4}
    assert run.summary.held_out.accuracy == 1.0
    curve = [json.loads(line) for line in (tmp_path / "out" / "curve.jsonl").read_text().splitlines()]
    assert [line["step"] for line in curve if "held_out" in line] == [3 * epoch for epoch in range(1, 9)]
    assert run.summary.final_loss == [line for line in curve if "loss" in line][-1]["loss"]
    assert {"config.json", "model.safetensors", "steelyard.json", "tokenizer.json", "curve.jsonl"} <= set(run.outputs)
    model = build("models", "classifier", {"path": str(tmp_path / "out")})
    for line in model.score(cases(4, "q")):
        assert line.scores["g"] > line.scores["b"]
    assert train(file, tmp_path / "out", FAST, model=base, held_out=held_out) == run


@pytest.mark.parametrize(("adapter", "word"), [(None, "all"), ("lora", "lora"), ("dora", "dora")])
def test_a_training_says_what_is_trained(given, tmp_path, capsys, adapter, word):
    train(given[0], tmp_path / "out", Config(epochs=1, adapter=adapter), model=given[2])
    assert f"training ({word}, " in capsys.readouterr().err, "an adapter is named in place of all weights"


def test_the_folder_loads_plainly_and_gives_the_same_reward(given, tmp_path):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    train(given[0], tmp_path / "out", Config(epochs=1), model=given[2])
    plain = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    one = cases(1)[0]
    ours = next(build("models", "classifier", {"path": str(tmp_path / "out")}).score([one]))
    for response in one.responses:
        turns = [
            {"role": "user", "content": one.prompt.messages[0].content},
            {"role": "assistant", "content": response.text},
        ]
        ids = tokenizer(tokenizer.apply_chat_template(turns, tokenize=False), return_tensors="pt")
        with torch.no_grad():
            assert plain(**ids).logits.item() == pytest.approx(ours.scores[response.id], abs=1e-5)


def test_training_goes_on_from_a_trained_head(given, tmp_path):
    train(given[0], tmp_path / "first", FAST, model=given[2])
    run = train(given[0], tmp_path / "second", Config(epochs=1, learning_rate=1e-9), model=str(tmp_path / "first"))
    assert run.summary.final_loss < 0.3


def test_bfloat16_and_greedy_batches_train_too(given, tmp_path):
    settings = Config(
        epochs=2, batching="greedy", responses_per_step=3, dtype="bfloat16", trainable="last:1", learning_rate=1e-3
    )
    run = train(given[0], tmp_path / "out", settings, model=given[2])
    assert 0 < run.summary.share_of_pairs_kept < 1
    assert build("models", "classifier", {"path": str(tmp_path / "out")}).protocol()["dtype"] == "bfloat16"


def test_what_cannot_be_trained_is_refused_and_leaves_nothing(given, tmp_path):
    file, _, base = given
    with pytest.raises(EvidenceError, match="12 of 12 held-out prompts are in the training data"):
        train(file, tmp_path / "out", FAST, model=base, held_out=file)
    without = tiny.save_base(tmp_path / "raw", template=None)
    with pytest.raises(ModelError, match="no chat template"):
        train(file, tmp_path / "out", FAST, model=without)
    small = tiny.save_base(tmp_path / "small", vocab_size=40)
    with pytest.raises(ModelError, match="ids below 40"):
        train(file, tmp_path / "out", FAST, model=small)
    write_cases(tmp_path / "none.jsonl", [case()])
    with pytest.raises(EvidenceError, match="none of 1 case has a comparable pair"):
        train(tmp_path / "none.jsonl", tmp_path / "out", FAST, model=base)
    assert not (tmp_path / "out").exists()


def test_a_named_template_trains_a_model_without_one(given, tmp_path):
    without = tiny.save_base(tmp_path / "raw", template=None)
    train(given[0], tmp_path / "out", Config(epochs=1, chat_template="plain"), model=without)
    assert build("models", "classifier", {"path": str(tmp_path / "out")}).protocol()["special_tokens"] == "template"


@pytest.mark.parametrize("inside", [False, True])
def test_a_folder_that_holds_what_is_read_is_never_replaced(given, tmp_path, inside):
    base = tmp_path / "base"
    before = sorted(path.name for path in base.iterdir())
    with pytest.raises(OutputError, match="out holds the"):
        train(given[0], tmp_path if inside else base, FAST, model=str(base), force=True)
    assert sorted(path.name for path in base.iterdir()) == before


def test_what_a_kill_left_of_saving_goes_with_the_next_run(given, tmp_path):
    config = Config(epochs=1)
    train(given[0], tmp_path / "out", config, model=given[2])
    out = tmp_path / "out"
    (out / "run.json").rename(out / "kept.json")  # as a kill leaves it: started, no record, half a save
    run = json.loads((out / "kept.json").read_text())
    (out / "kept.json").unlink()
    asked = {name: run[name] for name in ("stage", "config", "inputs")}
    (out / "started.json").write_text(json.dumps(asked))
    (out / ".saving-x").mkdir()
    (out / ".saving-x" / "model.safetensors").write_bytes(b"half")
    again = train(given[0], out, config, model=given[2])
    assert again.outputs == run["outputs"]
    assert not (out / ".saving-x").exists()


def test_serving_engines_are_told_that_the_logit_is_the_reward(given, tmp_path):
    train(given[0], tmp_path / "out", Config(epochs=1), model=given[2])
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["problem_type"], config["pad_token_id"]) == ("regression", 0)
    assert list(config["id2label"]) == ["0"]


def test_the_measure_of_the_last_step_is_that_of_the_scorer(given, tmp_path):
    """The held-out figure of training, recomputed from the saved folder's scores."""
    run = train(given[0], tmp_path / "out", Config(epochs=1), model=given[2], held_out=given[1])
    lines = list(build("models", "classifier", {"path": str(tmp_path / "out")}).score(cases(4, "q")))
    right = [line.scores["g"] > line.scores["b"] for line in lines]
    assert run.summary.held_out.accuracy == sum(right) / 4


DIES = """
import os, signal, sys
from steelyard.cli.main import main

def kill(event, args):
    # The third checkpoint has just taken its name.
    if event == "os.rename" and str(args[1]).endswith("checkpoint.pt"):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

left = [3]
sys.addaudithook(kill)
main()
"""


@pytest.mark.slow
def test_a_killed_training_goes_on_to_bit_equal_weights_and_curve(given, tmp_path):
    file, held_out, base = given
    config = Config(epochs=3, learning_rate=3e-3, batch_size=4, checkpoint_every=1)
    whole = train(file, tmp_path / "whole", config, model=base, held_out=held_out)
    words = ["train", str(file), "--model", base, "--held-out", str(held_out), "--out", str(tmp_path / "out")]
    words += ["--epochs", "3", "--learning-rate", "3e-3", "--batch-size", "4", "--set", "checkpoint_every=1"]
    killed = warm_process.run("-c", DIES, *words)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (tmp_path / "out" / "started.json").exists()
    with pytest.raises(OutputError, match=r"unfinished run .*: epochs 3 there, 4 here"):
        train(file, tmp_path / "out", Config(epochs=4, learning_rate=3e-3, batch_size=4, checkpoint_every=1),
              model=base, held_out=held_out)  # fmt: skip
    again = train(file, tmp_path / "out", config, model=base, held_out=held_out)
    assert again.outputs == whole.outputs
    assert again.summary == whole.summary
    assert not (tmp_path / "out" / "checkpoint.pt").exists()


def test_a_tokenizer_that_pads_with_the_end_of_text_changes_no_reward_and_is_not_said_to_pad(given, tmp_path):
    """The same weights and texts, with a padding token of its own and without: equal rewards, by us and plainly."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    same = tiny.save_base(tmp_path / "eos", pad_token="</s>", template=tiny.CHATML + "{{ eos_token }}")
    other = tiny.save_base(tmp_path / "pad", template=tiny.CHATML + "{{ eos_token }}")
    lines = []
    for name, base in (("one", same), ("two", other)):
        train(given[0], tmp_path / name, Config(epochs=1, learning_rate=1e-3), model=base)
        lines.append(list(build("models", "classifier", {"path": str(tmp_path / name)}).score(cases(3))))
    assert lines[0] == lines[1]
    assert json.loads((tmp_path / "one" / "config.json").read_text())["pad_token_id"] is None
    plain = AutoModelForSequenceClassification.from_pretrained(tmp_path / "one")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "one")
    one = cases(1)[0]
    turns = [{"role": "user", "content": one.prompt.messages[0].content}, {"role": "assistant", "content": GOOD[0]}]
    ids = tokenizer(tokenizer.apply_chat_template(turns, tokenize=False), return_tensors="pt")
    assert ids["input_ids"][0, -1] == tokenizer.pad_token_id
    with torch.no_grad():
        assert plain(**ids).logits.item() == pytest.approx(lines[0][0].scores["g"], abs=1e-5)


def test_a_template_that_changes_the_prompt_with_the_answer_is_refused(given, tmp_path):
    counting = "{{ messages | length }}{{ messages[-1].content | length }}" + tiny.CHATML
    base = tiny.save_base(tmp_path / "counting", template=counting)
    with pytest.raises(ModelError, match="changes the prompt with the answer"):
        train(given[0], tmp_path / "out", FAST, model=base)
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_of_another_model_is_refused_by_its_weights(given, tmp_path):
    from steelyard.core.errors import FileError

    file, _, base = given
    config = Config(epochs=1, batch_size=4, checkpoint_every=1)
    run = train(file, tmp_path / "whole", config, model=base)
    asked = {name: json.loads((tmp_path / "whole" / "run.json").read_text())[name] for name in (
        "stage", "config", "inputs",
    )}  # fmt: skip
    from steelyard.training.checkpoints import Checkpoint, State, save_checkpoint

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "started.json").write_text(json.dumps(asked))
    import torch

    foreign = State(1, {"classifier.score.weight": torch.zeros(1, 7)}, {"state": {}, "param_groups": []})
    save_checkpoint(tmp_path / "out", Checkpoint(foreign, [], None))
    with pytest.raises(FileError, match="a checkpoint of another model"):
        train(file, tmp_path / "out", config, model=base)
    (tmp_path / "out" / "checkpoint.pt").unlink()
    assert train(file, tmp_path / "out", config, model=base).outputs == run.outputs
