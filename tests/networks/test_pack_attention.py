import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn.attention.flex_attention import create_block_mask
from torch.nn.attention.flex_attention import flex_attention as plain_flex

from steelyard.networks import pack_attention as _pack_attention
from steelyard.networks.gpu_attention import (
    Flex,
    VarlenKernel,
    compiled_flex,
    flex_attention,
    varlen_attention,
    visibility,
)
from steelyard.networks.invariance import FAST, Arithmetic
from steelyard.networks.pack_attention import attend, blocked_attention, ragged_attention
from steelyard.networks.pack_layout import AttentionRule, layout_of
from steelyard.networks.packing import fill_up, pack

CPU = torch.device("cpu")
INVARIANT = Arithmetic("invariant")
PLAIN_FLEX = Flex(plain_flex, create_block_mask)
RULES = [AttentionRule(0.3, window, softcap, 0.0) for window in (None, 1, 4) for softcap in (None, 1.5)]


def rows_of(lengths, seed=0):
    """Prompts whose first tokens are shared by all answers: (shared, (tail, tail)) each."""
    rng = np.random.default_rng(seed)
    return [
        [[7] * shared + [100 + answer, *rng.integers(1, 99, tail - 1).tolist()] for answer, tail in enumerate(tails)]
        for shared, tails in lengths
    ]


def states(packed, heads=4, key_heads=2, size=8, dtype=torch.float64, seed=0):
    draws = torch.Generator().manual_seed(seed)
    number = len(packed.ids)
    return [torch.randn(1, one, number, size, generator=draws, dtype=dtype) for one in (heads, key_heads, key_heads)]


def plain(query, key, value, packed, rule):
    """Every answer by itself, every query in a loop: softmax over what stands before it in its own conversation."""
    key, value = (one.repeat_interleave(query.shape[1] // one.shape[1], dim=1) for one in (key, value))
    out = torch.zeros_like(query)
    for branch in packed.branches:
        for row in (branch.places(answer).tolist() for answer in range(len(branch.tails))):
            for number, place in enumerate(row):
                seen = row[max(0, number + 1 - (rule.window or 10**9)) : number + 1]
                logits = (query[0, :, place, None] * key[0, :, seen]).sum(-1) * rule.scale
                if rule.softcap is not None:
                    logits = rule.softcap * torch.tanh(logits / rule.softcap)
                out[0, :, place] = (logits.softmax(-1)[..., None] * value[0, :, seen]).sum(1)
    return out


LENGTHS = [(5, (3, 1, 6)), (0, (2, 4)), (1, (7,)), (4, (1, 1))]
some_lengths = st.lists(
    st.tuples(st.integers(0, 6), st.lists(st.integers(1, 7), min_size=1, max_size=4)), min_size=1, max_size=3
)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")  # the plain program is meant here
@pytest.mark.parametrize("rule", RULES)
def test_ragged_runs_and_flex_attention_read_what_a_plain_loop_reads(rule):
    packed = pack(rows_of(LENGTHS))
    query, key, value = states(packed)
    layout = layout_of(packed, CPU)
    expected = plain(query, key, value, packed, rule)
    assert (ragged_attention(query, key, value, layout, rule) - expected).abs().max() < 1e-14
    assert (blocked_attention(query, key, value, layout, rule) - expected).abs().max() < 1e-14
    assert (flex_attention(query, key, value, layout, rule, flex=PLAIN_FLEX) - expected).abs().max() < 1e-12
    last = layout._replace(is_last=True)
    asked = query[:, :, layout.last]
    for found in (
        ragged_attention(asked, key, value, last, rule),
        blocked_attention(asked, key, value, last, rule),
        flex_attention(asked, key, value, last, rule, flex=PLAIN_FLEX),
    ):
        assert (found - expected[:, :, layout.last]).abs().max() < 1e-12


@settings(deadline=None, max_examples=30)
@given(some_lengths, st.sampled_from(RULES), st.integers(1, 3), st.sampled_from([FAST, INVARIANT]))
def test_any_pack_in_runs_of_any_size(lengths, rule, run, arithmetic):
    packed = pack(rows_of(lengths))
    query, key, value = states(packed)
    name = "_BLOCK" if arithmetic.is_invariant else "_QUERIES_AT_A_TIME"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pack_attention, name, run)
        found = attend(query, key, value, layout_of(packed, CPU, arithmetic), rule)
    assert (found - plain(query, key, value, packed, rule)).abs().max() < 1e-14


def test_gradients_are_those_of_the_plain_loop():
    packed = pack(rows_of(LENGTHS))
    for rule in (RULES[0], RULES[-1]):
        given_states = [one.requires_grad_() for one in states(packed)]
        loss = [
            attend(*given_states, layout_of(packed, CPU), rule).cos().sum(),
            plain(*given_states, packed, rule).cos().sum(),
        ]
        mine, theirs = (torch.autograd.grad(one, given_states) for one in loss)
        assert max((a - b).abs().max() for a, b in zip(mine, theirs, strict=True)) < 1e-13


def run_by_run(query, key, value, query_ends, key_ends, most_queries, most_keys, *, scale, window_size, **options):
    """What PyTorch's kernel on a GPU is documented to compute: the last query of each run stands at its last key."""
    assert query_ends.dtype == key_ends.dtype == torch.int32
    assert window_size[1] == 0
    assert (most_queries, most_keys) == (int(query_ends.diff().max()), int(key_ends.diff().max()))
    assert options == ({"enable_gqa": True} if key.shape[1] < query.shape[1] else {})
    key, value = (one.repeat_interleave(query.shape[1] // one.shape[1], dim=1) for one in (key, value))
    parts = []
    for number in range(len(query_ends) - 1):
        asked, keys, values = (
            one[ends[number] : ends[number + 1]]
            for one, ends in ((query, query_ends), (key, key_ends), (value, key_ends))
        )
        distance = (torch.arange(len(asked))[:, None] + len(keys) - len(asked)) - torch.arange(len(keys))
        seen = distance >= 0 if window_size[0] < 0 else (distance >= 0) & (distance <= window_size[0])
        logits = torch.einsum("qhd,khd->hqk", asked, keys) * scale
        parts.append(torch.einsum("hqk,khd->qhd", logits.masked_fill(~seen, -torch.inf).softmax(-1), values))
    return torch.cat(parts)


@pytest.mark.parametrize("has_groups", [False, True])
@pytest.mark.parametrize("window", [None, 1, 4])
def test_runs_of_different_lengths_read_what_a_plain_loop_reads(window, has_groups):
    packed = pack(rows_of([*LENGTHS, (70, (3, 90))]))
    filled = fill_up(packed, len(packed.ids) + 130, len(packed.last) + 3)
    query, key, value = states(filled)
    layout, rule = layout_of(filled, CPU), AttentionRule(0.3, window, None, 0.0)
    kernel = VarlenKernel(run_by_run, has_groups, has_splits=False)
    expected = plain(query, key, value, packed, rule)[:, :, : len(packed.ids)]
    found = varlen_attention(query, key, value, layout, rule, kernel=kernel)
    assert found.shape == query.shape
    assert (found[:, :, : len(packed.ids)] - expected).abs().max() < 1e-12
    last = varlen_attention(query[:, :, layout.last], key, value, layout._replace(is_last=True), rule, kernel=kernel)
    assert last.shape[2] == len(filled.last)
    assert (last[:, :, : len(packed.last)] - expected[:, :, packed.last]).abs().max() < 1e-12


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:<class .torch.autograd.function.Function.> should not be instantiated")
def test_packs_of_all_lengths_are_compiled_a_few_times():
    counter = CompileCounterWithBackend("eager")
    torch._dynamo.reset()
    compiled = compiled_flex(counter)
    numbers = []
    for seed in range(50):
        draws = np.random.default_rng(seed)
        lengths = [
            (int(draws.integers(80, 200)), draws.integers(40, 150, int(draws.integers(1, 4))).tolist())
            for _ in range(int(draws.integers(2, 5)))
        ]
        packed = pack(rows_of(lengths, seed))
        query, key, value = states(packed, dtype=torch.float32, seed=seed)
        layout = layout_of(packed, CPU)
        layout = layout._replace(is_last=seed % 3 == 0)
        asked, rule = query[:, :, layout.last] if layout.is_last else query, RULES[4 * (seed % 2)]
        found = flex_attention(asked, key, value, layout, rule, flex=compiled)
        assert (found - ragged_attention(asked, key, value, layout, rule)).abs().max() < 1e-5
        numbers.append(counter.frame_count)
    assert numbers[-1] == numbers[9]
    assert numbers[-1] <= 8


def test_who_sees_whom_by_hand():
    packed = pack([[[1, 2, 3], [1, 2, 4, 5]], [[6]]])  # 1 2 | 3 | 4 5 | 6
    layout = layout_of(packed, CPU)
    places = torch.arange(6)
    seen = visibility(layout, None)(None, None, places[:, None], places[None, :]).int().tolist()
    assert seen == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 0, 1, 0, 0],
        [1, 1, 0, 1, 1, 0],
        [0, 0, 0, 0, 0, 1],
    ]
    near = visibility(layout, 2)(None, None, places[:, None], places[None, :]).int().tolist()
    assert near[4] == [0, 0, 0, 1, 1, 0]
    assert near[3] == [0, 1, 0, 1, 0, 0]


def test_dropout_leaves_the_mean():
    packed = pack(rows_of([(3, (2, 3))]))
    query, key, value = states(packed)
    layout, value = layout_of(packed, CPU), torch.ones_like(value)
    for softcap in (None, 2.0):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            found = torch.stack(
                [attend(query, key, value, layout, AttentionRule(1.0, None, softcap, 0.25)) for _ in range(400)]
            )
        assert found.std() > 0.05
        assert abs(found.mean() - 1) < 0.02


def test_masks_are_kept_where_arguments_are_taken_apart_on_their_way():
    """FSDP2 rebuilds what a layer is given as a tree: masks made by one layer must still be there for the next."""
    layout = layout_of(pack(rows_of([(3, (2, 3))])), CPU)
    leaves, tree = torch.utils._pytree.tree_flatten({"packed": layout})
    assert torch.utils._pytree.tree_unflatten(leaves, tree)["packed"].masks is layout.masks


@pytest.mark.parametrize("is_mixed", [False, True])
def test_short_rows_attend_in_float32_where_bfloat16_is_asked_for_on_a_cpu(is_mixed):
    packed = pack(rows_of(LENGTHS))
    narrow = [one.bfloat16() for one in states(packed, dtype=torch.float32)]
    # Under autocast queries and keys come in float32 from the rotation, and values in bfloat16.
    given_states = [narrow[0].float(), narrow[1].float(), narrow[2]] if is_mixed else narrow
    with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
        read = attend(*given_states, layout_of(packed, CPU), RULES[0])
    exact = plain(*(one.double() for one in narrow), packed, RULES[0])
    assert read.dtype == torch.bfloat16
    # One rounding of the result to bfloat16's 8 bits, and none before it: half a unit in the last place.
    assert ((read.double() - exact).abs() <= exact.abs() / 256 + 1e-6).all()


@pytest.mark.parametrize("is_slow", [False, True])
def test_long_rows_attend_in_bfloat16_where_the_processor_has_it(is_slow, monkeypatch):
    monkeypatch.setattr(_pack_attention, "has_slow_bfloat16", lambda device: is_slow)
    packed = pack([[[7] * 10 + [100 + answer] * 300 for answer in range(2)]])
    given_states = [one.bfloat16() for one in states(packed, dtype=torch.float32)]
    read = attend(*given_states, layout_of(packed, CPU), RULES[0])
    inner = [one.float() for one in given_states] if is_slow else given_states
    assert torch.equal(read, ragged_attention(*inner, layout_of(packed, CPU), RULES[0]).bfloat16())
