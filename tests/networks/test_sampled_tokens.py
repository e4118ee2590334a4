import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from steelyard.networks.sampled_tokens import SampledRow, SamplingRule, choose_token, sample_tokens

PROBABILITIES = np.array([0.5, 0.25, 0.15, 0.1])


def drawn(rule, number, error=0.0):
    noise = np.random.default_rng(1).gumbel(size=(number, 4))
    return [choose_token(np.log(PROBABILITIES), row, rule, error) for row in noise]


def test_tokens_come_as_often_as_their_probability():
    shares = np.bincount(drawn(SamplingRule(1.0), 20_000), minlength=4) / 20_000
    # The standard deviation of a share of 20,000 is at most 0.0035.
    assert shares == pytest.approx(PROBABILITIES, abs=0.015)


def test_the_temperature_divides_the_logits():
    shares = np.bincount(drawn(SamplingRule(0.5), 20_000), minlength=4) / 20_000
    squares = PROBABILITIES**2
    assert shares == pytest.approx(squares / squares.sum(), abs=0.015)


@pytest.mark.parametrize(("top_p", "left"), [(0.4, 1), (0.5, 1), (0.6, 2), (0.76, 3), (0.95, 4)])
def test_top_p_keeps_the_likeliest_tokens_that_reach_it(top_p, left):
    shares = np.bincount(drawn(SamplingRule(1.0, top_p), 20_000), minlength=4) / 20_000
    expected = np.where(np.arange(4) < left, PROBABILITIES, 0)
    assert shares == pytest.approx(expected / expected.sum(), abs=0.015)


def test_a_narrow_share_of_many_tokens_is_found():
    logits = np.zeros(500)
    logits[7] = 1e-9
    noise = np.arange(500) * 1.0
    assert choose_token(logits, noise, SamplingRule(1.0, 0.001)) == 7


@settings(max_examples=200)
@given(
    st.lists(st.floats(-3, 3), min_size=3, max_size=12),
    st.integers(0, 10_000),
    st.sampled_from([1.0, 0.9, 0.5]),
    st.sampled_from([0.01, 0.1]),
)
def test_a_certain_choice_is_that_of_every_error_within_the_bound(logits, seed, top_p, error):
    rng = np.random.default_rng(seed)
    exact, noise = np.array(logits), rng.gumbel(size=len(logits))
    rule = SamplingRule(0.8, top_p)
    certain = choose_token(exact, noise, rule, error)
    for _ in range(5):
        moved = exact + rng.uniform(-error, error, size=len(logits))
        assert certain in (None, choose_token(moved, noise, rule))


def test_most_choices_are_certain_where_errors_are_small():
    assert sum(token is None for token in drawn(SamplingRule(1.0, 0.8), 2000, error=1e-3)) < 20


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from transformers import AutoModelForCausalLM

    folder = tiny.save_base(tmp_path_factory.mktemp("models") / "m")
    return AutoModelForCausalLM.from_pretrained(folder).eval()


def plainly(model, row, rule, longest, ends):
    """Sample by whole forward passes over the row alone."""
    generator, ids = np.random.default_rng(row.seed), list(row.ids)
    while len(ids) < len(row.ids) + longest and (len(ids) == len(row.ids) or ids[-1] not in ends):
        with torch.inference_mode():
            logits = model(torch.tensor([ids])).logits[0, -1].double().numpy()
        ids.append(choose_token(logits, generator.gumbel(size=len(logits)), rule))
    return ids[len(row.ids) :]


@pytest.mark.parametrize("error", [1e-3, 5.0])
def test_a_row_has_its_text_in_every_batch(model, error):
    rows = [SampledRow(list(range(5, 5 + length)), seed) for length, seed in [(3, 1), (9, 2), (1, 3), (3, 4), (6, 1)]]
    rule, ends = SamplingRule(1.0, 0.95), set(range(60))
    expected = [plainly(model, row, rule, 12, ends) for row in rows]
    assert len({len(tokens) for tokens in expected}) > 1  # rows end at different steps
    # With a large bound every choice is made again alone.
    assert sample_tokens(model, rows, rule, longest=12, ends=ends, error=error) == expected
    for row, tokens in zip(rows, expected, strict=True):
        assert sample_tokens(model, [row], rule, longest=12, ends=ends, error=error) == [tokens]
    assert expected[0][:1] != expected[3][:1] or expected[0] != expected[3]
