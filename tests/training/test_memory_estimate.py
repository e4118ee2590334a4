import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.networks.devices import fits
from steelyard.training.memory import (
    GIBIBYTE,
    Decoder,
    PassPlan,
    activation_bytes,
    estimate,
    in_words,
    least_recompute,
)

# 3 layers; 100 numbers of weights in float32, all trained, the largest tensor of 40.
TINY = Decoder(3, 8, 16, 8, 4, 400, 100, 60, 40, 3)


def test_the_parts_by_hand():
    found = estimate(TINY, PassPlan(tokens=10, recompute="none"))
    # Two of the layers whole: norms 2 x 8 twice and what is read 2 x 8, 3 x 8 + 2 x 4 of attention, 4 x 16; the last
    # 3 x 8 and 2 x 4; four bytes each.
    assert found.activations == 10 * 4 * (2 * (32 + 16 + 32 + 64) + 32)
    assert (found.weights, found.gradients, found.moments) == (400, 400, 800)
    assert found.transient == 10 * 4 * (3 * 16 + 2 * 8)
    assert found.total == sum(found)


def test_eight_bits_quarter_the_moments_and_one_pass_alone_shares_with_gradients():
    plain = PassPlan(tokens=10, recompute="none")
    assert estimate(TINY, plain._replace(is_eight_bit=True)).moments == 200
    alone = estimate(TINY, plain._replace(has_many_passes=False))
    assert alone.activations == estimate(TINY, plain).activations - 400


def test_a_head_alone_keeps_nothing_of_the_backbone():
    head = TINY._replace(num_trained=8, num_linear_trained=0, largest_trained=8, num_reached_layers=0)
    assert activation_bytes(head, PassPlan(tokens=10, recompute="none")) == 0


def test_a_small_step_is_bounded_by_the_optimiser():
    found = estimate(TINY._replace(largest_trained=10**6), PassPlan(tokens=1, recompute="none"))
    assert (found.activations, found.transient) == (0, 8 * 10**6)


sizes = st.integers(1, 64).map(lambda one: 8 * one)
decoders = st.builds(
    lambda layers, hidden, inner, keys: Decoder(layers, hidden, inner, hidden, keys, 10**6, 10**5, 10**5, 10, layers),
    st.integers(3, 40), sizes, sizes, sizes,
)  # fmt: skip


@given(decoders, st.integers(1, 10_000), st.booleans())
def test_working_out_more_again_never_keeps_more(decoder, tokens, is_half):
    asked = PassPlan(tokens, "none", is_half=is_half)
    none, mlp = (estimate(decoder, asked._replace(recompute=mode)).activations for mode in ("none", "mlp"))
    assert mlp <= none
    deep = decoder._replace(num_layers=40, num_reached_layers=40)
    assert activation_bytes(deep, asked._replace(recompute="layers")) < activation_bytes(deep, asked)


@given(decoders, st.integers(1, 10_000), st.integers(10**6, 10**10))
def test_auto_works_out_as_little_again_as_fits(decoder, tokens, memory):
    asked = PassPlan(tokens, "none")
    mode = least_recompute(decoder, asked, memory)
    less = {"none": (), "mlp": ("none",), "layers": ("none", "mlp")}[mode]
    assert not any(fits(estimate(decoder, asked._replace(recompute=one)).total, memory) for one in less)
    assert mode == "layers" or fits(estimate(decoder, asked._replace(recompute=mode)).total, memory)


@pytest.mark.parametrize(
    ("needed", "memory", "said"),
    [
        (61 * GIBIBYTE, 139 * GIBIBYTE, "fits: 61 of 139 GiB"),
        (138 * GIBIBYTE, 139 * GIBIBYTE, "does not fit: 138 of 139 GiB"),
        (GIBIBYTE // 2, 24 * GIBIBYTE, "fits: 0.5 of 24 GiB"),
    ],
)
def test_the_estimate_in_words(needed, memory, said):
    assert in_words(needed, memory) == said
