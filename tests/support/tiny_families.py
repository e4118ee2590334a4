"""Tiny checkpoints in the published layouts of reward model families: random weights, real names."""

import json
from itertools import pairwise
from pathlib import Path

import tiny

LLAMA3 = (
    "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n"
    "{{ message.content | trim }}<|eot_id|>{% endfor %}"
)
WIDTH = 32
VOCABULARY = 420


def llama3_tokenizer(*, adds_bos=False):
    made = tiny.tokenizer(LLAMA3, bos_token="<|begin_of_text|>", eos_token="<|eot_id|>")
    made.add_special_tokens({"additional_special_tokens": ["<|start_header_id|>", "<|end_header_id|>"]})
    return adding_bos(made) if adds_bos else made


def adding_bos(tokenizer):
    """Return a tokenizer that adds the BOS token itself, as most do."""
    from tokenizers.processors import TemplateProcessing

    bos = tokenizer.bos_token
    tokenizer._tokenizer.post_processor = TemplateProcessing(
        single=[bos, "$A"], pair=[bos, "$A", "$B"], special_tokens=[(bos, tokenizer.bos_token_id)]
    )
    return tokenizer


def llama_config(**settings):
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=4096, **settings,
    )  # fmt: skip


def llama_weights(seed=0, config=None):
    """Return a decoder's weights by their published names."""
    import torch
    from transformers import AutoModel

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModel.from_config(config or llama_config())
    return {f"model.{name}": value.contiguous() for name, value in model.state_dict().items()}


def draws(*shape, seed):
    import torch

    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def save(folder, weights, *, config, tokenizer, **settings):
    """Save a checkpoint: weights, the family's config, a tokenizer; the code that the config names is absent."""
    from safetensors.torch import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = config if isinstance(config, dict) else config.to_dict()
    remote = {"auto_map": {"AutoModelForSequenceClassification": "modeling_custom.RewardModel"}}
    (folder / "config.json").write_text(json.dumps(written | remote | settings))
    save_file({name: value.clone() for name, value in weights.items()}, folder / "model.safetensors")
    tokenizer.save_pretrained(folder)
    return str(folder)


def gate_weights(widths, *, seed=5):
    names = {}
    for index, (before, after) in enumerate(pairwise(widths)):
        names[f"gating.layers.{index}.weight"] = draws(after, before, seed=seed + index) / 3
        names[f"gating.layers.{index}.bias"] = draws(after, seed=seed + 20 + index)
    return names


def save_armorm(folder, *, tokenizer=None, **settings):
    import torch

    head = {
        "regression_layer.weight": draws(19, WIDTH, seed=1),
        "reward_transform_matrix": torch.eye(19) + draws(19, 19, seed=2) / 10,
        "gating.logit_scale": torch.tensor([1.7]),
    } | gate_weights([WIDTH, 12, 12, 12, 19])
    return save(
        folder, llama_weights() | head, config=llama_config(), tokenizer=tokenizer or llama3_tokenizer(),
        architectures=["LlamaForRewardModelWithGating"], num_objectives=19, gating_temperature=0.8,
        gating_hidden_dim=12, gating_n_hidden=3, **settings,
    )  # fmt: skip


def save_qrm(folder, *, num_quantiles=5):
    import torch

    head = {
        "regression_layer.weight": draws(19 * num_quantiles, WIDTH, seed=1),
        "reward_transform_matrix": torch.eye(19) + draws(19, 19, seed=2) / 10,
        "gating.logit_scale": torch.tensor([0.6]),
        "gating.layers.6.weight": draws(19, 12, seed=9),
        "gating.layers.6.bias": draws(19, seed=10),
    }
    for start, before in ((0, WIDTH), (3, 12)):
        head |= {
            f"gating.layers.{start}.weight": draws(12, before, seed=20 + start) / 3,
            f"gating.layers.{start + 2}.weight": draws(12, seed=21 + start),
            f"gating.layers.{start + 2}.bias": draws(12, seed=22 + start),
            f"gating.layers.{start + 2}.running_mean": draws(12, seed=23 + start),
            f"gating.layers.{start + 2}.running_var": draws(12, seed=24 + start).square() + 0.5,
            f"gating.layers.{start + 2}.num_batches_tracked": torch.tensor(7),
        }
    return save(
        folder, llama_weights() | head, config=llama_config(), tokenizer=llama3_tokenizer(),
        num_objectives=19, num_quantiles=num_quantiles, gating_temperature=2.0, gating_hidden_dim=12, gating_n_hidden=2,
    )  # fmt: skip


def save_urm(folder, *, is_weighted=True):
    head = {"score.weight": draws(10, WIDTH, seed=1) / 3}
    if is_weighted:
        head |= {"weights.weight": draws(5, WIDTH, seed=2) / 3, "weights.bias": draws(5, seed=3)}
    return save(folder, llama_weights() | head, config=llama_config(), tokenizer=llama3_tokenizer(), num_labels=10)


def save_eurus_rm(folder):
    from transformers import MistralConfig

    config = MistralConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, sliding_window=None, rope_theta=1000000.0,
    )  # fmt: skip
    head = {"regression_head.weight": draws(1, WIDTH, seed=1)}
    weights = llama_weights(config=config) | head
    return save(folder, weights, config=config, tokenizer=adding_bos(tiny.tokenizer(None)))


def save_grm(folder, **settings):
    head = {
        "v_head.summary.0.weight": draws(24, WIDTH, seed=1),
        "v_head.summary.0.bias": draws(24, seed=2),
        "v_head.summary.2.weight": draws(1, 24, seed=3),
        "v_head.summary.2.bias": draws(1, seed=4),
    }
    if settings.get("vhead_layer_type") == "linear":
        head = {"v_head.summary.weight": draws(1, WIDTH, seed=1), "v_head.summary.bias": draws(1, seed=2)}
    return save(
        folder, llama_weights() | head, config=llama_config(), tokenizer=llama3_tokenizer(),
        vhead_num_neurons=24, **settings,
    )  # fmt: skip


def save_cheemsrm(folder, *, template=tiny.CHATML, adds_bos=False, seed=0):
    config = tiny.config(VOCABULARY)
    head = {
        "v_head.weight": draws(1, WIDTH, seed=1),
        "lm_head.weight": draws(VOCABULARY, WIDTH, seed=2),
    }
    tokenizer = tiny.tokenizer(template)
    weights = llama_weights(seed, config=config) | head
    return save(folder, weights, config=config, tokenizer=adding_bos(tokenizer) if adds_bos else tokenizer)


def save_nemotron_reward(folder, **settings):
    head = {"lm_head.weight": draws(VOCABULARY, WIDTH, seed=2)}
    return save(
        folder, llama_weights() | head, config=llama_config(tie_word_embeddings=False),
        tokenizer=llama3_tokenizer(), architectures=["LlamaForCausalLM"], **settings,
    )  # fmt: skip


INTERNLM2 = {
    "model_type": "internlm2",
    "architectures": ["InternLM2ForRewardModel"],
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "rope_theta": 1000000.0,
    "rope_scaling": {"factor": 2.0, "type": "dynamic"},
    "bias": False,
    "reward_token_id": 401,
}


def save_internlm2_reward(folder, **settings):
    weights = {
        "model.tok_embeddings.weight": draws(VOCABULARY, WIDTH, seed=1) / 2,
        "model.norm.weight": 1 + draws(WIDTH, seed=2) / 10,
        "v_head.weight": draws(1, WIDTH, seed=3),
    }
    for layer in range(2):
        seed, start = 100 * (layer + 1), f"model.layers.{layer}."
        weights |= {
            start + "attention.wqkv.weight": draws(48, WIDTH, seed=seed) / 3,
            start + "attention.wo.weight": draws(WIDTH, WIDTH, seed=seed + 1) / 5,
            start + "feed_forward.w1.weight": draws(48, WIDTH, seed=seed + 2) / 5,
            start + "feed_forward.w3.weight": draws(48, WIDTH, seed=seed + 3) / 5,
            start + "feed_forward.w2.weight": draws(WIDTH, 48, seed=seed + 4) / 5,
            start + "attention_norm.weight": 1 + draws(WIDTH, seed=seed + 5) / 10,
            start + "ffn_norm.weight": 1 + draws(WIDTH, seed=seed + 6) / 10,
        }
    remote = {"AutoConfig": "configuration_internlm2.InternLM2Config", "AutoModel": "modeling_internlm2.InternLM2Model"}
    return save(folder, weights, config=INTERNLM2, tokenizer=tiny.tokenizer(), auto_map=remote, **settings)


FAMILIES = {
    "armorm": save_armorm,
    "qrm": save_qrm,
    "urm": save_urm,
    "eurus_rm": save_eurus_rm,
    "grm": save_grm,
    "cheemsrm": save_cheemsrm,
    "nemotron_reward": save_nemotron_reward,
    "internlm2_reward": save_internlm2_reward,
}


def stored(folder):
    from safetensors.torch import load_file

    return load_file(Path(folder) / "model.safetensors")


def turns(case, response):
    return [
        *({"role": one.role, "content": one.content} for one in case.prompt.messages),
        {"role": "assistant", "content": response.text},
    ]


def chat_ids(folder, case, response, *, strip=False):
    """Return the ids of a conversation by the tokenizer's template, with the template's marks."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    text = tokenizer.apply_chat_template(turns(case, response), tokenize=False)
    return tokenizer(text.strip() if strip else text, add_special_tokens=False).input_ids


def hidden_states(folder, ids, *, dtype=None):
    """Return the decoder's hidden states of one row without padding, in float64: (token, width)."""
    import torch
    from transformers import AutoConfig, AutoModel

    model = AutoModel.from_config(AutoConfig.from_pretrained(folder))
    own = {name: value for name, value in stored(folder).items() if name.startswith("model.")}
    model.load_state_dict({name.removeprefix("model."): value for name, value in own.items()}, strict=True)
    with torch.no_grad():
        return model.double().eval()(torch.tensor([ids])).last_hidden_state[0].numpy()
