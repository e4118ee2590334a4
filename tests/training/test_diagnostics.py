import math
from math import log

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tiny
from steelyard.core.errors import ModelError
from steelyard.training.batching import plan_steps
from steelyard.training.config import Config
from steelyard.training.diagnostics import (
    check_classifier,
    first_tokens,
    has_diverged,
    has_learned_nothing,
    loss_error,
    median_loss,
    step_findings,
    unscorable_prompts,
)
from steelyard.training.trainer import scorer_of
from training_examples import answers, network, trained

EXAMPLES = tuple(answers((7, 8), (20 + index, 21), (40 + index,), pairs=[(0, 1)]) for index in range(4))


def flight(model, examples=EXAMPLES, kernel="packed"):
    config = Config(batch_size=8, kernel=kernel)
    slots = plan_steps(examples, config)[0].slots
    return check_classifier(scorer_of(model, config), slots, examples, config.reduction)


@pytest.mark.parametrize("kernel", ["packed", "padded"])
def test_equal_scores_cost_ln_2_and_one_step_can_be_learnt_by_heart(kernel):
    model = network()
    before = [weight.clone() for weight in model.parameters()]
    equal_loss, fitted_loss = flight(model, kernel=kernel)
    assert equal_loss == pytest.approx(math.log(2))
    assert fitted_loss < 0.05
    assert all(torch.equal(one, two) for one, two in zip(before, model.parameters(), strict=True))
    assert model.training


def test_margins_cost_more():
    pair = EXAMPLES[0].pairs[0]._replace(margin=1.0)
    equal_loss, _ = flight(network(), (EXAMPLES[0]._replace(pairs=(pair,)),))
    assert equal_loss == pytest.approx(math.log(1 + math.e))


def test_a_model_that_cannot_tell_the_answers_apart_is_stopped():
    model = network()
    for layer in model.backbone.layers:
        layer.self_attn.o_proj.weight.data.zero_()
    # Nothing is mixed between tokens any more: answers that end in the same token look the same.
    same_end = tuple(answers((7,), (20 + index, 9), (40 + index, 9), pairs=[(0, 1)]) for index in range(4))
    with pytest.raises(ModelError, match="hidden states of both answers are equal in 4 of 4 pairs"):
        flight(model, same_end)


def test_pairs_that_contradict_each_other_cannot_be_learnt():
    both = EXAMPLES[0].pairs[0], EXAMPLES[0].pairs[0]._replace(better=1, worse=0)
    with pytest.raises(
        ModelError,
        match=r"no linear head .*falls only from 0\.693 .*: 2 of 2 pairs are also listed the other way round",
    ) as error:
        flight(network(), (EXAMPLES[0]._replace(pairs=both),))
    assert "list each pair one way" in str(error.value)


def test_margins_that_no_reward_reaches_are_named_where_no_head_separates_the_pairs():
    pair = EXAMPLES[0].pairs[0]._replace(margin=1e30)
    with pytest.raises(
        ModelError, match=r"rewards cannot differ by the margins of the pairs, the largest 1e\+30"
    ) as error:
        flight(network(), (EXAMPLES[0]._replace(pairs=(pair,)),))
    assert "divide the margins" in str(error.value)
    assert "what the model reads" not in str(error.value)


def test_pairs_listed_both_ways_or_twice_are_counted():
    pair = EXAMPLES[0].pairs[0]
    twice = EXAMPLES[0]._replace(pairs=(pair, pair), name="twice")
    both = EXAMPLES[0]._replace(pairs=(pair, pair._replace(better=pair.worse, worse=pair.better)), name="both")
    found = {one.check: (one.count, one.total, one.examples) for one in step_findings((), (twice, both), "pair")}
    assert found == {"contradictory_pairs": (2, 4, ("both",)), "duplicate_pairs": (1, 4, ("twice",))}
    assert not list(step_findings((), EXAMPLES, "pair"))


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


BROKEN = 60
"""A token whose embedding is no number, as a damaged download has it."""


def model_and_examples(*, broken):
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
    model, examples = model_and_examples(broken=True)
    config = Config(batch_size=3, kernel=kernel, learning_rate=1e-3)
    with pytest.raises(
        ModelError, match=r"the loss is nan at step 1: no finite reward for '案例' \(of 3 prompts"
    ) as told:
        trained(model, examples, config)
    assert "steelyard inspect" in told.value.do


def test_where_every_case_fails_the_rate_is_to_blame():
    model, examples = model_and_examples(broken=False)
    (step,) = plan_steps(examples, Config(batch_size=3, epochs=1))
    assert unscorable_prompts(scorer_of(model, Config()), step.slots, examples) == []
    model.head.weight.data.fill_(math.inf)
    guilty = unscorable_prompts(scorer_of(model, Config()), step.slots, examples)
    assert sorted(guilty) == ["'case 0'", "'case 1'", "'案例'"]
    for names in (guilty, []):
        refused = loss_error(math.inf, 7, names, 3)
        assert refused.problem == "the loss is inf at step 7"
        assert "lower learning_rate" in refused.do


def test_of_many_the_first_are_named():
    assert "for a, b, c and 2 more (of 9 prompts" in loss_error(math.nan, 1, list("abcde"), 9).problem


def test_losses_far_over_the_median_for_long_enough_are_a_divergence():
    good = [2.0, 1.0, 3.0, 2.0]  # the median is 2
    assert not has_diverged([*good, 7.0, 7.0], factor=3.0, num_steps=3)
    assert has_diverged([*good, 7.0, 7.0, 7.0], factor=3.0, num_steps=3)
    assert not has_diverged([*good, 7.0, 5.0, 7.0], factor=3.0, num_steps=3)


def test_what_begins_badly_or_is_known_by_heart_is_none():
    assert not has_diverged([9.0, 9.0, 9.0], factor=3.0, num_steps=3)
    assert not has_diverged([0.01] * 50 + [1.0] * 10, factor=3.0, num_steps=10)
    assert median_loss([0.01] * 50 + [1.0] * 10, 10) == log(2)
    assert not has_diverged([1.0] * 50 + [1e9] * 50, factor=3.0, num_steps=0)


def test_only_the_last_hundred_count():
    assert median_loss([50.0] * 100 + [1.0] * 100 + [9.0] * 5, 5) == 1.0


@given(st.lists(st.floats(0, 100), max_size=60), st.integers(1, 20))
def test_no_loss_within_the_bound_is_ever_a_divergence(losses, steps):
    assert not has_diverged([*losses, 0.5], factor=3.0, num_steps=steps)


def test_a_loss_that_stays_where_equal_scores_are_is_seen_at_the_end():
    flat = [0.6931] * 100
    seen = [number for number in range(1, 101) if has_learned_nothing(flat[:number], 100, equal=0.6931)]
    assert seen == [100]
    assert not has_learned_nothing([0.6931] * 90 + [0.5] * 10, 100, equal=0.6931)
    falling = [0.6931 - 0.002 * step for step in range(100)]
    assert not any(has_learned_nothing(falling[:number], 100, equal=0.6931) for number in range(1, 101))
