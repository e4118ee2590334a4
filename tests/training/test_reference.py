import pytest
import torch

import tiny
from steelyard.core.errors import EvidenceError, ModelError
from steelyard.core.types import Case, Response
from steelyard.networks.conversation import Rendering
from steelyard.networks.scorer import Scorer
from steelyard.training.examples import Example
from steelyard.training.reward_reference import ReferenceSet, all_answers, fold_scale, reward_reference, standardise
from strategies import case
from training_examples import network


class FirstToken(torch.nn.Module):
    """A real network whose reward is the row's first token id."""

    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(1, 1)

    def forward(self, ids, attended):
        return ids[:, 0].float()


GIVEN = ReferenceSet("ref", "hash", (Example(((1,), (3,)), ()), Example(((6,), (6,)), ())))


def test_mean_and_spreads_by_hand():
    found = reward_reference(Scorer(FirstToken(), kernel="padded"), GIVEN)
    assert (found.num_prompts, found.num_rewards, found.mean) == (2, 4, 4.0)
    assert found.spread == pytest.approx(((9 + 1 + 4 + 4) / 4) ** 0.5)
    assert found.spread_within == pytest.approx(((1 + 1) / 4) ** 0.5)


def test_scaling_makes_the_spread_one_and_the_shift_the_mean_nothing():
    found = reward_reference(Scorer(FirstToken(), kernel="padded"), GIVEN)
    moved, calibration = standardise(found)
    assert moved.spread == 1.0
    assert moved.mean + calibration.shift == 0
    assert calibration.scale * found.spread == pytest.approx(1)
    assert moved.spread_within == pytest.approx(calibration.scale * found.spread_within)
    model = network()
    before = model.head.weight.detach().clone()
    fold_scale(model, None)
    assert torch.equal(model.head.weight, before)
    fold_scale(model, calibration)
    assert torch.allclose(model.head.weight, before * calibration.scale)


def test_rewards_that_cannot_be_scaled_or_told_are_refused():
    equal = ReferenceSet("ref", "hash", (Example(((6,), (6,)), ()),))
    with pytest.raises(ModelError, match="all rewards of the reference set are equal"):
        standardise(reward_reference(Scorer(FirstToken(), kernel="padded"), equal))
    broken = network()
    broken.head.weight.data.fill_(float("nan"))
    with pytest.raises(ModelError, match="not finite"):
        reward_reference(Scorer(broken, kernel="padded"), GIVEN)


def test_every_answer_within_the_limit_is_read():
    one = Case(prompt=case().prompt, responses=(Response(id="a", text="x"), Response(id="b", text="word " * 200)))
    rendering = Rendering(template=tiny.CHATML, max_length=60)
    (example,) = all_answers([one], tiny.tokenizer(), rendering, where="r.jsonl")
    assert len(example.rows) == 1
    with pytest.raises(EvidenceError, match=r"r\.jsonl: no answer for the reference"):
        all_answers([], tiny.tokenizer(), rendering, where="r.jsonl")
