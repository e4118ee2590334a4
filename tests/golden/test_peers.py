"""What published tools compute, by their own code, and what we compute of the same: `peers/` has the values and the
scripts that made them, each run in an environment of the peer's own."""

import json
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from steelyard.core.types import Case, Message, Prompt, Response, Scores
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import write_cases
from steelyard.plugins.models.classifier import Config as ClassifierConfig
from steelyard.plugins.models.classifier import build
from steelyard.stages.evaluate import Config, evaluate

PEERS = Path(__file__).parent / "peers"


def golden(name):
    return json.loads((PEERS / name).read_text(encoding="utf-8"))


def evaluated(tmp_path, cases, rewards, **settings):
    """The summary of an evaluation of given rewards, a list a case in the order of its responses."""
    write_cases(tmp_path / "bench.jsonl", cases)
    with atomic_write(tmp_path / "scores.jsonl") as file:
        for case, own in zip(cases, rewards, strict=True):
            scores = dict(zip((one.id for one in case.responses), own, strict=True))
            file.write(msgspec.json.encode(Scores(prompt=case.prompt.id, scores=scores)) + b"\n")
    config = Config(num_resamples=20, baselines=(), **settings)
    return evaluate([tmp_path / "bench.jsonl"], tmp_path / "out", config, scores=tmp_path / "scores.jsonl").summary


def ranked(index, ranks, category):
    names = [f"r{place}" for place in range(len(ranks))]
    tiers = [tuple(name for name, rank in zip(names, ranks, strict=True) if rank == own) for own in sorted({*ranks})]
    return Case(
        prompt=Prompt(id=f"p{index}", messages=(Message(role="user", content=f"问题 {index}"),), category=(category,)),
        responses=tuple(Response(id=name, text=f"回答 {name}") for name in names),
        ranking=tuple(tiers),
    )


def test_cheemsrm_s_accuracy_and_exact_match(tmp_path):
    peer = golden("cheemsrm.json")
    cases = [
        ranked(index, one["ranks"], peer["categories"][one["category"]]) for index, one in enumerate(peer["prompts"])
    ]
    assert sum(len(case.ranking) == 1 for case in cases) >= 6, "prompts without a pair, which the rule counts as right"
    summary = evaluated(tmp_path, cases, [one["rewards"] for one in peer["prompts"]], metric_compat="cheems")
    for own, theirs in (("accuracy", "accuracy-rank"), ("exact_match", "exact_match-rank")):
        # Their means are in float32.
        assert getattr(summary, own).value == pytest.approx(peer["measured"][theirs], abs=1e-6)
        for category in peer["categories"]:
            expected = peer["measured"][f"{theirs}-{category}"]
            assert getattr(summary.by_category[category], own).value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("index", range(2))
def test_rewardbench_s_sections(tmp_path, index):
    drawn = golden("rewardbench.json")["drawn"][index]
    cases, rewards, seen = [], [], Counter()
    for subset, number in drawn["num_rows"].items():
        for place in range(number):
            case = ranked(f"{subset}-{place}", [1, 2], "x")
            prompt = msgspec.structs.replace(case.prompt, subset=subset)
            cases.append(msgspec.structs.replace(case, prompt=prompt))
            rewards.append([1.0, 0.0] if seen[subset] < drawn["num_right"][subset] else [0.0, 1.0])
            seen[subset] += 1
    summary = evaluated(tmp_path, cases, rewards, bench_kind="rewardbench")
    assert {name: one.value for name, one in summary.sections.items()} == pytest.approx(drawn["sections"])
    assert summary.overall.value == pytest.approx(sum(drawn["sections"].values()) / 4)


@pytest.fixture(scope="module")
def trl():
    """TRL's own rows as cases, and the model that it saved."""
    peer = golden("trl.json")
    cases = [
        Case(
            prompt=Prompt(id=f"p{index}", messages=(Message(**row["chosen"][0]),)),
            responses=tuple(Response(id=side, text=row[side][1]["content"]) for side in ("chosen", "rejected")),
            ranking=(("chosen",), ("rejected",)),
        )
        for index, row in enumerate(peer["rows"])
    ]
    return peer, cases, build(ClassifierConfig(path=str(PEERS / "trl_checkpoint")))


def test_trl_s_rewards_at_its_own_checkpoint(trl):
    peer, cases, model = trl
    num_equal = 0
    for case, own, expected in zip(cases, model.score(cases), peer["rewards"], strict=True):
        for response in case.responses:
            if "</s>" not in response.text:
                assert own.scores[response.id] == pytest.approx(expected[response.id], abs=1e-6)
                num_equal += 1
    assert num_equal == 10, "all but the two that spell out a mark"


def test_an_answer_that_spells_out_a_mark_is_text_here_and_a_mark_to_trl(trl):
    peer, cases, model = trl
    end = model.tokenizer.eos_token_id
    for case, own, ids, rewards in zip(cases, model.score(cases), peer["ids"], peer["rewards"], strict=True):
        for response in case.responses:
            if "</s>" in response.text:
                assert end in ids[response.id], "an end of text in the middle of an answer"
                assert own.scores[response.id] != pytest.approx(rewards[response.id], abs=1e-3)


def test_trl_s_accuracy_and_loss_of_the_same_rewards(trl, tmp_path):
    import torch

    from steelyard.training.losses import PairBatch, bradley_terry_loss

    peer, cases, _ = trl
    rewards = [[one["chosen"], one["rejected"]] for one in peer["rewards"]]
    summary = evaluated(tmp_path, cases, rewards)
    assert summary.accuracy.value == pytest.approx(peer["measured"]["eval_accuracy"], abs=1e-6)
    number = len(rewards)
    first, ones = torch.arange(0, 2 * number, 2), torch.ones(number)
    pairs = PairBatch(first, first + 1, ones, torch.zeros(number), torch.arange(number))
    loss = bradley_terry_loss(torch.tensor(rewards).flatten(), pairs)
    assert loss.item() == pytest.approx(peer["measured"]["eval_loss"], abs=1e-4)
