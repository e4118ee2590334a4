import json
import math

import pytest
import torch

import tiny
from steelyard.core.errors import ConfigError, ModelError
from steelyard.io.cases import read_cases, write_cases
from steelyard.plugins.models.classifier import Config as ClassifierConfig
from steelyard.plugins.models.classifier import build as build_classifier
from steelyard.plugins.models.implicit import Config as ImplicitConfig
from steelyard.plugins.models.implicit import build as build_implicit
from steelyard.stages.train import Config, train
from toy_prompts import toy_prompts

QUICK = {"kind": "implicit", "epochs": 1, "learning_rate": 3e-3, "batch_size": 4, "max_length": 256}


def files(tmp_path):
    write_cases(tmp_path / "cases.jsonl", toy_prompts(24, right=True))
    write_cases(tmp_path / "held_out.jsonl", toy_prompts(8, right=True, start=100))
    return tmp_path / "cases.jsonl", tmp_path / "held_out.jsonl", tiny.save_base(tmp_path / "base")


def trained(tmp_path, **settings):
    cases, held_out, base = files(tmp_path)
    run = train(cases, tmp_path / "out", Config(**{**QUICK, **settings}), model=base, held_out=held_out)
    curve = [json.loads(line) for line in (tmp_path / "out" / "curve.jsonl").read_text("utf-8").splitlines()]
    return run, [line for line in curve if "loss" in line]


def plain_reward(model, tokenizer, case, response):
    """The log-probability of the answer's tokens, by transformers alone; its first token follows the prompt's frame."""
    prompt = f"<|im_start|>user\n{case.prompt.messages[0].content}<|im_end|>\n<|im_start|>assistant\n"
    start = len(tokenizer(prompt, add_special_tokens=False).input_ids)
    ids = tokenizer(f"{prompt}{response.text}<|im_end|>\n", add_special_tokens=False).input_ids
    logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return sum(logs[place - 1, ids[place]].item() for place in range(start, len(ids)))


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    return folder, *trained(folder)


def test_a_policy_learns_what_is_taught_beginning_at_ln_2(policy):
    _, run, curve = policy
    assert curve[0]["loss"] == pytest.approx(math.log(2), abs=1e-4)
    assert curve[-1]["loss"] < 0.3
    assert run.summary.held_out.accuracy == 1.0


def test_its_rewards_are_those_of_plain_transformers_beside_what_it_was_trained_from(policy):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, run, _ = policy
    own, base = (AutoModelForCausalLM.from_pretrained(folder / name) for name in ("out", "base"))
    tokenizer = AutoTokenizer.from_pretrained(folder / "out")
    scorer = build_implicit(ImplicitConfig(path=str(folder / "out"), reference=str(folder / "base"), beta=0.1))
    cases = list(read_cases(folder / "held_out.jsonl"))[:2]
    with torch.no_grad():
        for case, found in zip(cases, scorer.score(cases), strict=True):
            for response in case.responses:
                difference = plain_reward(own, tokenizer, case, response) - plain_reward(
                    base, tokenizer, case, response
                )
                assert found.scores[response.id] == pytest.approx(0.1 * difference, abs=1e-4)
    assert run.summary.kernel == "packed"


def test_the_padded_path_trains_the_same(policy, tmp_path):
    _, _, packed = policy
    _, padded = trained(tmp_path, kernel="padded")
    assert [line["loss"] for line in padded] == pytest.approx([line["loss"] for line in packed], abs=2e-3)


def test_without_a_reference_the_mean_log_probability_is_compared(tmp_path):
    run, curve = trained(tmp_path, reference_free=True, answer_reduction="avg", beta=2.0)
    assert curve[-1]["loss"] < curve[0]["loss"]
    assert run.summary.held_out.accuracy == 1.0
    with pytest.raises(ModelError, match="trained without a reference"):
        build_implicit(ImplicitConfig(path=str(tmp_path / "out"), reference=str(tmp_path / "base")))
    assert build_implicit(ImplicitConfig(path=str(tmp_path / "out"))).reduction == "avg"


def test_settings_beside_a_manifest_are_followed_or_refused_never_ignored(policy):
    folder, _, _ = policy
    out, base = str(folder / "out"), str(folder / "base")
    assert build_implicit(ImplicitConfig(path=out, reference=base)).max_length == QUICK["max_length"]
    assert build_implicit(ImplicitConfig(path=out, reference=base, max_length=9)).max_length == 9
    with pytest.raises(ModelError, match="a policy that was trained with its own chat template"):
        build_implicit(ImplicitConfig(path=out, reference=base, chat_template="plain"))


def test_a_policy_is_scored_as_it_was_trained_or_refused(policy):
    folder, _, _ = policy
    out, base = str(folder / "out"), str(folder / "base")
    with pytest.raises(ModelError, match="a policy, whose reward is implicit"):
        build_classifier(ClassifierConfig(path=out))
    with pytest.raises(ModelError, match="trained from base: name it as reference"):
        build_implicit(ImplicitConfig(path=out))
    with pytest.raises(ModelError, match="the sum of its answers"):
        build_implicit(ImplicitConfig(path=out, reference=base, reduction="avg"))


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"beta": 0.0}, "beta is 0.0"),
        ({"over_length": "left"}, "a cut answer has another probability"),
        ({"trainable": "head"}, "a policy has no head of its own"),
        ({"adapter": "lora"}, "a policy has no head of its own"),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path, settings, found):
    with pytest.raises(ConfigError, match=found):
        trained(tmp_path, **settings)


def test_what_is_no_language_model_is_refused(tmp_path):
    cases, _, _ = files(tmp_path)
    with pytest.raises(ModelError, match="lacks weights: lm_head"):
        train(cases, tmp_path / "out", Config(**QUICK), model=tiny.save_classifier(tmp_path / "classifier"))
    assert not (tmp_path / "out" / "run.json").exists()
