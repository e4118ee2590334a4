"""The examples of docs/howto/other_libraries.md run as they are printed."""

import re

import pytest
import torch

import tiny
from package_source import ROOT
from steelyard.core.types import Case, Message, Prompt, Response

PAGE = (ROOT / "docs" / "howto" / "other_libraries.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n.*?```python\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE))


def cases():
    answers = ["是的。", "No, it is not.", "שלום"]
    return [
        Case(
            prompt=Prompt(id=f"p{number}", messages=(Message(role="user", content=f"Question {number}?"),)),
            responses=tuple(Response(id=str(at), text=text) for at, text in enumerate(answers)),
            ranking=(("0",), ("1",), ("2",)),
        )
        for number in range(8)
    ]


def network():
    from transformers import Qwen2ForSequenceClassification

    return Qwen2ForSequenceClassification(tiny.config(num_labels=1, pad_token_id=0))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny.save_classifier(tmp_path / "model")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_scikit_learn(capsys):
    samples = [("Question?", "Yes.", "No."), ("问题？", "是", "不")] * 2
    exec(SECTIONS["Classifier in scikit-learn"], {"samples": samples, "first_is_better": [1, 0, 0, 1]})
    assert [float(line) for line in capsys.readouterr().out.split()] == [0.5, 0.5]


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_reinforcement_learning_in_trl_moves_the_policy(folder):
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM

    tiny.save_base(folder / "policy")
    prompts = Dataset.from_list(
        [{"prompt": [{"role": "user", "content": f"Question {number}?"}]} for number in range(4)]
    )
    settings = {
        "per_device_train_batch_size": 4, "num_generations": 4, "max_completion_length": 6, "max_steps": 1,
        "learning_rate": 0.01, "report_to": "none", "save_strategy": "no", "use_cpu": True, "bf16": False,
        "disable_tqdm": True, "temperature": 1.0, "gradient_checkpointing": False, "dataloader_pin_memory": False,
    }  # fmt: skip
    example = SECTIONS["Reward for reinforcement learning in TRL"]
    names = {"prompts": prompts}
    exec(example.replace("GRPOConfig()", f"GRPOConfig('trained', **{settings!r})"), names)
    (line,) = [line for line in names["trainer"].state.log_history if "rewards/model/mean" in line]
    assert line["reward_std"] > 0
    before = AutoModelForCausalLM.from_pretrained(folder / "policy").lm_head.weight
    assert not torch.equal(before, names["trainer"].model.lm_head.weight)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_transformers_trainer_learns_the_ranking():
    # The weights are those of one seed: how far a few steps come depends on them.
    torch.manual_seed(0)
    names = {"cases": cases(), "tokenizer": tiny.tokenizer(), "network": network()}
    example = SECTIONS["Loss and batches in transformers.Trainer"]
    settings = "learning_rate=0.02, num_train_epochs=4, logging_steps=1, use_cpu=True, disable_tqdm=True, "
    settings += "save_strategy='no', dataloader_pin_memory=False, "
    exec(example.replace("report_to", f"{settings}report_to"), names)
    losses = [line["loss"] for line in names["trainer"].state.log_history if "loss" in line]
    assert losses[-1] < 0.75 * losses[0]


@pytest.mark.usefixtures("folder")
def test_a_loop_of_plain_pytorch_trains():
    names = {"cases": cases(), "tokenizer": tiny.tokenizer(), "network": network()}
    before = names["network"].score.weight.detach().clone()
    exec(SECTIONS["Loss and batches in plain PyTorch"], names)
    assert not before.equal(names["network"].score.weight)
