"""A llama model of 800 kB for llama.cpp, written by a test: random weights, a trained tokenizer, every byte a token.

Its tokenizer is trained on the built-in corpus. The weights are random, with one direction that all hidden states
share: it gives the labels A and B and the end of the reply a probability, so that replies end, and verdicts depend on
the whole prompt. Equal seeds give equal files.
"""

from pathlib import Path

import gguf
import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from package_source import PACKAGE

CONTEXT = 4096
_WIDTH, _FEED_FORWARD, _HEADS, _LAYERS = 64, 128, 4, 2
END = 3
"""The token that ends a reply."""
_SPECIAL = ("<unk>", "<s>", "<|im_start|>", "<|im_end|>")
_NUM_PIECES = 600
_BIAS = {"A": 8.0, "B": 8.0, "<|im_end|>": 8.6}
"""How much likelier than another token these are, in nats."""
_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_tiny_model(path: Path, *, seed: int = 0) -> Path:
    """Write the model as a GGUF file and return its path."""
    pieces, scores, types = _vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_FEED_FORWARD)
    writer.add_head_count(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_vocab_size(len(pieces))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(END)
    writer.add_add_bos_token(value=False)
    writer.add_add_space_prefix(value=False)
    writer.add_chat_template(_TEMPLATE)
    for name, values in _weights(pieces, np.random.default_rng(seed)).items():
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _vocabulary() -> tuple[list[str], list[float], list[int]]:
    """Return the pieces, their scores (earlier merges first) and types, in SentencePiece's order."""
    tokenizer = Tokenizer(BPE())
    trainer = BpeTrainer(vocab_size=_NUM_PIECES, show_progress=False, special_tokens=[])
    lines = (PACKAGE / "data" / "corpus.en.jsonl").read_text(encoding="utf-8").replace(" ", "▁").splitlines()
    tokenizer.train_from_iterator(lines, trainer)
    trained = [piece for piece, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]
    every = [chr(code) for code in range(33, 127)]
    trained = [*dict.fromkeys([*every, *trained])]
    of_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    pieces = [*_SPECIAL, *of_bytes, *trained]
    kinds = gguf.TokenType
    types = [kinds.UNKNOWN, *[kinds.CONTROL] * 3, *[kinds.BYTE] * 256, *[kinds.NORMAL] * len(trained)]
    scores = [*[0.0] * (4 + 256), *(-float(place) for place in range(len(trained)))]
    return pieces, scores, [int(kind) for kind in types]


def _weights(pieces: list[str], rng: np.random.Generator) -> dict[str, np.ndarray]:
    def normal(*shape, scale):
        return rng.standard_normal(shape) * scale

    embedding, output = normal(len(pieces), _WIDTH, scale=1.0), normal(len(pieces), _WIDTH, scale=0.25)
    # The shared direction is the first dimension: constant in every state, and the layers add nothing to it.
    embedding[:, 0] = 12.0
    output[:, 0] = 0.0
    # What the labels' probabilities owe to the prompt, as against the others'.
    output[[pieces.index(label) for label in "AB"]] *= 1.5
    for piece, bias in _BIAS.items():
        output[pieces.index(piece), 0] = bias / 5.0
    # The second dimension marks a line's end, after which a reply begins: none ends before its first token.
    embedding[:, 1] = output[:, 1] = 0.0
    embedding[pieces.index("<0x0A>"), 1] = 12.0
    output[END, 1] = -2.0
    weights = {
        "token_embd.weight": embedding,
        "output_norm.weight": np.ones(_WIDTH),
        "output.weight": output,
    }
    for layer in range(_LAYERS):
        block = f"blk.{layer}"
        for name in ("attn_norm", "ffn_norm"):
            weights[f"{block}.{name}.weight"] = np.ones(_WIDTH)
        # Heads look at few tokens each, as those of a trained model do.
        for name, scale in {"attn_q": 0.5, "attn_k": 0.5, "attn_v": 0.2, "attn_output": 0.2}.items():
            weights[f"{block}.{name}.weight"] = normal(_WIDTH, _WIDTH, scale=scale)
        weights[f"{block}.ffn_gate.weight"] = normal(_FEED_FORWARD, _WIDTH, scale=0.12)
        weights[f"{block}.ffn_up.weight"] = normal(_FEED_FORWARD, _WIDTH, scale=0.12)
        weights[f"{block}.ffn_down.weight"] = normal(_WIDTH, _FEED_FORWARD, scale=0.12)
        # Neither dimension changes or is read between the ends.
        for name in ("attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up"):
            weights[f"{block}.{name}.weight"][:, :2] = 0.0
        for name in ("attn_output", "ffn_down"):
            weights[f"{block}.{name}.weight"][:2] = 0.0
    return weights
