"""The passes of a GPU on tensors that have its device and no numbers: nothing stays behind on the CPU."""

import sys

import pytest
import torch

from fake_gpu import GPU, fake_gpu, on_fake_gpu
from packed_models import network
from steelyard.networks import invariance as _invariance
from steelyard.networks.gpu_attention import varlen_attention, varlen_kernel
from steelyard.networks.invariance import Arithmetic
from steelyard.networks.pack_layout import AttentionRule, layout_of
from steelyard.networks.packing import pack
from steelyard.networks.scorer import Scorer

PROMPTS = [((1, 2, 3, 4), (1, 2, 5)), ((7, 8),), tuple((9, *range(20, 20 + size)) for size in (1, 70, 200))]
FAMILIES = ["gemma", "gemma3_text", "llama", "mistral", "qwen2", "qwen3"]


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_pass_of_16_bits_stays_on_the_gpu(kind):
    model = network(kind, torch.float32)
    with torch.no_grad(), fake_gpu():
        on_fake_gpu(model, torch.bfloat16)
        scorer = Scorer(model, invariant=False)
        rewards = scorer.forward(PROMPTS)
        assert (rewards.device, rewards.dtype, rewards.shape) == (GPU, torch.float32, (6,))
        assert model.packed_rewards(PROMPTS, is_pruned=False).device == GPU


@pytest.mark.parametrize("kind", FAMILIES)
def test_an_invariant_pass_has_products_of_one_size(kind):
    model, sizes = network(kind, torch.float32), set()
    with torch.no_grad(), fake_gpu():
        on_fake_gpu(model, torch.bfloat16)
        for layer in [one for one in model.backbone.modules() if isinstance(one, torch.nn.Linear)]:
            plain = layer.forward
            layer.forward = lambda rows, plain=plain: sizes.add(rows.shape[:-1]) or plain(rows)
            _invariance._replace_forward(layer, _invariance._in_blocks, 128)
        rewards = model.packed_rewards(PROMPTS, arithmetic=Arithmetic("invariant", 128, 128))
        assert (rewards.device, rewards.shape) == (GPU, (6,))
        # Without a bias each block is written into its place, and the layer itself is not called.
        assert sizes == ({(128,)} if kind == "qwen2" else set())


def test_a_tensor_left_on_the_cpu_is_noticed():
    packed = pack([[[1, 2, 3], [1, 2, 4]]])
    kernel = varlen_kernel()
    assert kernel is not None
    with torch.no_grad(), fake_gpu():
        query, key = (torch.empty(1, heads, len(packed.ids), 8, dtype=torch.bfloat16, device=GPU) for heads in (4, 2))
        rule = AttentionRule(0.3, None, None, 0.0)
        read = varlen_attention(query, key, key, layout_of(packed, GPU), rule, kernel=kernel)
        assert (read.device, read.shape) == (GPU, query.shape)
        with pytest.raises(RuntimeError, match="device"):
            varlen_attention(query, key, key, layout_of(packed, torch.device("cpu")), rule, kernel=kernel)


@pytest.mark.parametrize(
    ("code", "is_logged"),
    [
        ("", False),  # of another version of PyTorch
        ("raise ImportError('libcudart.so.12: cannot open shared object file')", True),
        ("import steelyard_no_such_module", True),
    ],
)
def test_a_kernel_that_is_broken_is_logged_once_and_a_missing_one_is_not(
    monkeypatch, capsys, tmp_path, code, is_logged
):
    (tmp_path / "varlen.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(torch.nn.attention, "__path__", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "torch.nn.attention.varlen", raising=False)
    varlen_kernel.cache_clear()
    try:
        assert varlen_kernel() is None
        assert varlen_kernel() is None
    finally:
        varlen_kernel.cache_clear()
        sys.modules.pop("torch.nn.attention.varlen", None)
    assert capsys.readouterr().err.count("torch.nn.attention.varlen cannot be imported") == is_logged
