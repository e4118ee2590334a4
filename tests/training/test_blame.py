import math

import pytest
import torch

from steelyard.core.errors import ModelError
from steelyard.training.batching import plan_steps
from steelyard.training.config import Config
from steelyard.training.diagnostics import loss_error, unscorable_prompts
from steelyard.training.trainer import scorer_of
from training_examples import answers, network, trained

BROKEN = 60
"""A token whose embedding is no number, as a damaged download has it."""


def given(*, broken):
    model = network()
    with torch.no_grad():
        model.classifier.get_input_embeddings().weight[BROKEN] = math.nan
    tail = (BROKEN,) if broken else (30,)
    examples = tuple(
        answers((7, 8), (20 + index, 21), (40 + index,), pairs=[(0, 1)])._replace(name=f"case {index}")
        for index in range(2)
    )
    return model, (*examples, answers((9,), (30, 31), tail, pairs=[(0, 1)])._replace(name="案例"))


@pytest.mark.parametrize("kernel", ["packed", "padded"])
def test_a_case_without_a_finite_reward_is_named(kernel):
    model, examples = given(broken=True)
    config = Config(prompts_per_step=3, kernel=kernel, learning_rate=1e-3)
    with pytest.raises(
        ModelError, match=r"the loss is nan at step 1: no finite reward for '案例' \(of 3 prompts"
    ) as told:
        trained(model, examples, config)
    assert "steelyard inspect" in told.value.do


def test_where_every_case_fails_the_rate_is_to_blame():
    model, examples = given(broken=False)
    (step,) = plan_steps(examples, Config(prompts_per_step=3, epochs=1))
    assert unscorable_prompts(scorer_of(model, Config()), step.slots, examples) == []
    model.head.weight.data.fill_(math.inf)
    guilty = unscorable_prompts(scorer_of(model, Config()), step.slots, examples)
    assert sorted(guilty) == ["'case 0'", "'case 1'", "'案例'"]
    for names in (guilty, []):
        refused = loss_error(math.inf, 7, names, 3)
        assert refused.problem == "the loss is inf at step 7"
        assert "lower --learning-rate" in refused.do


def test_of_many_the_first_are_named():
    assert "for a, b, c and 2 more (of 9 prompts" in loss_error(math.nan, 1, list("abcde"), 9).problem
