import math

import pytest
import torch

import tiny
from steelyard.core.errors import ModelError
from steelyard.training.batching import plan_steps
from steelyard.training.config import Config
from steelyard.training.diagnostics import check_classifier, first_tokens
from steelyard.training.trainer import scorer_of
from training_examples import answers, network

EXAMPLES = tuple(answers((7, 8), (20 + index, 21), (40 + index,), pairs=[(0, 1)]) for index in range(4))


def flight(model, examples=EXAMPLES, kernel="packed"):
    config = Config(prompts_per_step=8, kernel=kernel)
    slots = plan_steps(examples, config)[0].slots
    return check_classifier(scorer_of(model, config), slots, examples, config.reduction)


@pytest.mark.parametrize("kernel", ["packed", "padded"])
def test_equal_scores_cost_ln_2_and_one_step_can_be_learnt_by_heart(kernel):
    model = network()
    before = [weight.clone() for weight in model.parameters()]
    found = flight(model, kernel=kernel)
    assert found.equal_loss == pytest.approx(math.log(2))
    assert found.fitted_loss < 0.05
    assert all(torch.equal(one, two) for one, two in zip(before, model.parameters(), strict=True))
    assert model.training


def test_margins_cost_more():
    pair = EXAMPLES[0].pairs[0]._replace(margin=1.0)
    found = flight(network(), (EXAMPLES[0]._replace(pairs=(pair,)),))
    assert found.equal_loss == pytest.approx(math.log(1 + math.e))


def test_a_model_that_cannot_tell_the_answers_apart_is_stopped():
    model = network()
    for layer in model.backbone.layers:
        layer.self_attn.o_proj.weight.data.zero_()
    # Nothing is mixed between tokens any more: answers that end in the same token look the same.
    same_end = tuple(answers((7,), (20 + index, 9), (40 + index, 9), pairs=[(0, 1)]) for index in range(4))
    with pytest.raises(ModelError, match="no difference between the answers of 4 of 4 pairs"):
        flight(model, same_end)


def test_pairs_that_contradict_each_other_cannot_be_learnt():
    both = EXAMPLES[0].pairs[0], EXAMPLES[0].pairs[0]._replace(better=1, worse=0)
    with pytest.raises(ModelError, match=r"no head can tell the pairs of the first step: the loss falls from 0\.693"):
        flight(network(), (EXAMPLES[0]._replace(pairs=both),))


def test_weights_that_are_no_numbers_are_stopped():
    model = network()
    model.backbone.norm.weight.data.fill_(float("inf"))
    with pytest.raises(ModelError, match="is not finite on the first step"):
        flight(model)


def test_the_first_prompt_is_shown_as_tokens():
    tokenizer = tiny.tokenizer()
    ids = [tokenizer.convert_tokens_to_ids(token) for token in ("<s>", "<|im_end|>")]
    shown = first_tokens(answers((5, 6, 7), (ids[0], ids[1]), (9,), pairs=[(0, 1)]), tokenizer)
    assert shown.startswith("the first prompt shares 3 tokens, its answers have 2, 1 of their own")
    assert shown.endswith("'<s>' '<|im_end|>'")
