import copy
from math import exp, log

import pytest
import torch

import tiny
import training_examples
from steelyard.core.errors import ConfigError, EvidenceError, ModelError
from steelyard.core.types import Case, Message, Pair, Prompt, Response
from steelyard.integrations.preference_batches import PreferenceCollator, PreferenceLoss, preference_examples
from steelyard.training.batching import all_slots
from steelyard.training.config import Config

EXAMPLES = [
    training_examples.example(7, 9, 8, pairs=[(0, 1), (0, 2), (1, 2)]),
    training_examples.example(5, 6, pairs=[(1, 0)], start=20),
    training_examples.example(12, 4, pairs=[(0, 1)], start=40),
]


def cases(number=4):
    return [
        Case(
            prompt=Prompt(id=f"p{index}", messages=(Message(role="user", content=f"问题 {index}?"),)),
            responses=tuple(
                Response(id=name, text=f"{name} answer {index}" * (at + 1)) for at, name in enumerate("abc")
            ),
            ranking=(("a",), ("b", "c")),
        )
        for index in range(number)
    ]


def test_a_batch_has_a_row_for_each_response_and_a_label_for_each_pair():
    batch = PreferenceCollator(0)(EXAMPLES[:2])
    assert batch["input_ids"].shape == (5, 9)
    assert batch["attention_mask"].sum(dim=1).tolist() == [7, 9, 8, 5, 6]
    assert batch["input_ids"][3].tolist() == [20, 21, 22, 23, 24, 0, 0, 0, 0]
    pairs = [[0, 1, 1, 0, 0], [0, 2, 1, 0, 0], [1, 2, 1, 0, 0], [4, 3, 1, 0, 1]]
    assert batch["labels"].tolist() == pairs


def test_the_loss_is_that_of_equation_3():
    labels = PreferenceCollator(0)(EXAMPLES[:2])["labels"]
    rewards = torch.tensor([2.0, 1.0, -1.0, 0.0, 0.5])
    costs = [log(1 + exp(-ahead)) for ahead in (1.0, 3.0, 2.0, 0.5)]
    assert PreferenceLoss()(rewards, labels).item() == pytest.approx(sum(costs) / 4)
    by_prompt = PreferenceLoss(reduction="prompt")(rewards[:, None], labels)
    assert by_prompt.item() == pytest.approx((sum(costs[:3]) / 3 + costs[3]) / 2)
    squares = (4 + 1 + 1 + 0 + 0.25) / 5
    assert PreferenceLoss(regulariser=0.1)(rewards, labels).item() == pytest.approx(sum(costs) / 4 + 0.1 * squares)


def test_gradients_are_those_of_our_own_training():
    config = Config(regulariser=0.1)
    network = training_examples.network(double=False)
    reference = copy.deepcopy(network)
    batch = PreferenceCollator(0)(EXAMPLES)
    labels = batch.pop("labels")
    PreferenceLoss(regulariser=0.1)(network.classifier(**batch), labels).backward()
    slots = all_slots(range(len(EXAMPLES)), [len(example.rows) for example in EXAMPLES])
    training_examples.accumulated(reference, slots, EXAMPLES, config)
    for (name, weight), other in zip(network.named_parameters(), reference.parameters(), strict=True):
        assert weight.grad is not None, name
        assert torch.allclose(weight.grad, other.grad, atol=2e-6), name


def accumulated_step(batches, folder):
    """The weights after one step of transformers.Trainer over this many batches, by plain gradient descent."""
    from transformers import Trainer, TrainingArguments

    network = training_examples.network().classifier
    arguments = TrainingArguments(
        str(folder), per_device_train_batch_size=len(EXAMPLES) // batches, gradient_accumulation_steps=batches,
        max_steps=1, learning_rate=1.0, optim="sgd", lr_scheduler_type="constant", max_grad_norm=0.0,
        report_to="none", save_strategy="no", use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = Trainer(network, arguments, PreferenceCollator(0), EXAMPLES, compute_loss_func=PreferenceLoss())
    trainer.train()
    return torch.cat([weight.detach().flatten() for weight in network.parameters()])


@pytest.mark.slow
def test_trainer_of_transformers_takes_the_same_step_from_one_batch_and_from_three(tmp_path):
    start = torch.cat([weight.detach().flatten() for weight in training_examples.network().classifier.parameters()])
    whole, parts = accumulated_step(1, tmp_path / "whole"), accumulated_step(3, tmp_path / "parts")
    assert (whole - start).abs().max() > 1e-3
    assert torch.allclose(whole, parts, atol=2e-6)


@pytest.mark.parametrize("settings", [{"reduction": "prompt"}, {"regulariser": 0.1}, {"loss": "plackett-luce"}])
def test_a_divisor_that_a_part_of_a_step_does_not_know_is_refused(settings):
    labels = PreferenceCollator(0)(EXAMPLES[:2])["labels"]
    loss = PreferenceLoss(**settings)
    assert loss(torch.zeros(5), labels, num_items_in_batch=torch.tensor(labels.numel())) > 0
    with pytest.raises(ConfigError, match="not a mean over unweighted pairs"):
        loss(torch.zeros(5), labels, num_items_in_batch=labels.numel() + 5)


def test_weighted_pairs_are_refused_in_parts_of_a_step():
    weighted = [training_examples.example(5, 6, pairs=[(1, 0, 0.5)])]
    labels = PreferenceCollator(0)(weighted)["labels"]
    with pytest.raises(ConfigError, match="unweighted"):
        PreferenceLoss()(torch.zeros(2), labels, num_items_in_batch=10)


def test_a_loss_that_learns_a_parameter_is_refused():
    with pytest.raises(ConfigError, match="davidson") as raised:
        PreferenceLoss("davidson")
    assert raised.value.allowed == "bradley-terry, plackett-luce"


def test_a_padding_token_that_ends_texts_is_refused():
    with pytest.raises(ModelError, match="texts end with token 11"):
        PreferenceCollator(11)(EXAMPLES[:1])
    with pytest.raises(ModelError, match="no padding token"):
        PreferenceCollator(None)


def test_a_margin_that_transformers_would_not_count_is_refused():
    with pytest.raises(EvidenceError, match="margin of -100"):
        PreferenceCollator(0)([training_examples.example(5, 6, pairs=[(1, 0, 1.0, -100.0)])])


def test_examples_of_cases_have_their_pairs_and_leave_out_what_training_leaves_out(capsys):
    listed = cases(1)[0]
    without = Case(prompt=Prompt(id="none", messages=listed.prompt.messages), responses=listed.responses)
    weighted = Case(
        prompt=Prompt(id="w", messages=listed.prompt.messages),
        responses=listed.responses,
        pairs=(Pair(better="c", worse="a", weight=0.25, margin=0.5),),
    )
    examples = preference_examples([listed, without, weighted], tiny.tokenizer())
    assert [[tuple(pair) for pair in example.pairs] for example in examples] == [
        [(0, 1, 1.0, 0.0), (0, 2, 1.0, 0.0)],
        [(1, 0, 0.25, 0.5)],
    ]
    assert "dropped: no comparable pair 1" in capsys.readouterr().err
    with pytest.raises(EvidenceError):
        preference_examples([without], tiny.tokenizer())
