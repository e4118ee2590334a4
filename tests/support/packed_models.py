"""Tiny random decoders of every packed family, in float64 throughout, and packs of prompts for them."""

import numpy as np
import torch

from steelyard.networks import packed_forward
from steelyard.networks.reward_network import RewardNetwork, padded

SHAPE = {
    "vocab_size": 200, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256, "num_labels": 1, "pad_token_id": 0,
}  # fmt: skip
EXPERTS = {"moe_intermediate_size": 24, "num_experts": 4, "num_experts_per_tok": 2, "experts_implementation": "eager"}
# Windows that are shorter than the rows, so that they matter; Gemma 2 caps its logits besides.
OWN = {
    "gemma": {"head_dim": 8},
    "gemma2": {"head_dim": 8, "sliding_window": 6, "attn_logit_softcapping": 2.0},
    "gemma3_text": {"head_dim": 8, "sliding_window": 5, "sliding_window_pattern": 2},
    "mistral": {"sliding_window": 7},
    "mixtral": {"sliding_window": 9, "num_local_experts": 4, "experts_implementation": "eager"},
    "qwen2_moe": {**EXPERTS, "shared_expert_intermediate_size": 24},
    "qwen3": {"head_dim": 8},
    "qwen3_moe": {"head_dim": 8, **EXPERTS},
}


class Norm64(torch.nn.Module):
    """A family's norm without transformers' cast to float32, which alone would move float64 gradients by 2e-9."""

    def __init__(self, norm):
        super().__init__()
        self.weight, self.is_around_one = norm.weight, type(norm).__name__.startswith("Gemma")
        self.epsilon = norm.eps if self.is_around_one else norm.variance_epsilon

    def forward(self, hidden):
        scale = 1 + self.weight if self.is_around_one else self.weight
        return scale * hidden * torch.rsqrt(hidden.square().mean(-1, keepdim=True) + self.epsilon)


class Router64(torch.nn.Module):
    """Mixtral's router without its cast to float32."""

    def __init__(self, router):
        super().__init__()
        self.weight, self.number = router.weight, router.top_k

    def forward(self, hidden):
        logits = hidden.flatten(0, -2) @ self.weight.T
        chosen = logits.softmax(-1).topk(self.number)
        return logits, chosen.values / chosen.values.sum(-1, keepdim=True), chosen.indices


def softmax64(logits, dim=-1, dtype=None, softmax=torch.nn.functional.softmax):
    """Softmax without the cast to float32 of capped attention and routers in transformers."""
    return softmax(logits, dim=dim, dtype=logits.dtype)


def network(kind, dtype=torch.float64, **settings):
    from transformers import AutoModelForSequenceClassification

    return RewardNetwork(_made(AutoModelForSequenceClassification, kind, dtype, settings)).eval()


def causal(kind, dtype=torch.float64, **settings):
    """Return a language model of the family, with its output layer."""
    from transformers import AutoModelForCausalLM

    return _made(AutoModelForCausalLM, kind, dtype, settings).eval()


def _made(auto, kind, dtype, settings):
    from transformers import AutoConfig

    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = auto.from_config(AutoConfig.for_model(kind, **{**SHAPE, **OWN.get(kind, {}), **settings}))
        with torch.no_grad():
            for weight in made.parameters():
                weight.add_(torch.randn_like(weight) * 0.3)
    made.to(dtype)
    if dtype == torch.float64:
        for name, module in list(made.named_modules()):
            kind = type(module).__name__
            exact = Norm64 if kind.endswith("RMSNorm") else Router64 if kind == "MixtralTopKRouter" else None
            if exact is not None:
                made.set_submodule(name, exact(module))
    return made


def prompts(seed=0, longest=12):
    """Return prompts of one to five answers; some share no tokens, some answers are one token."""
    rng = np.random.default_rng(seed)
    found = []
    for number in (5, 1, 3, 2):
        prompt = rng.integers(1, 200, int(rng.integers(0, 15))).tolist()
        found.append([prompt + rng.integers(1, 200, int(rng.integers(1, longest))).tolist() for _ in range(number)])
    return found


def packed_rewards(model, packed, **settings):
    return packed_forward.packed_rewards(model.backbone, model.head, packed, **settings)


def one_by_one(model, chosen):
    return torch.cat([model(*padded([row], filler=0)) for rows in chosen for row in rows])


def gradients(rewards, model):
    weights = torch.linspace(-1, 2, len(rewards), dtype=rewards.dtype)
    return torch.autograd.grad((rewards * weights).sum(), list(model.parameters()), allow_unused=True)


def furthest(found, expected):
    """Return the largest difference between two lists of gradients, and the largest gradient."""
    assert [one is None for one in found] == [one is None for one in expected]
    both = [(mine, theirs) for mine, theirs in zip(found, expected, strict=True) if mine is not None]
    return max((a - b).abs().max().item() for a, b in both), max(b.abs().max().item() for _, b in both)
