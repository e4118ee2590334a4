"""Tiny real models for tests: random weights, a byte-level tokenizer, no download. Created once per process."""

import functools
import tempfile
from pathlib import Path

CHATML = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
WITH_BOS = "{{ bos_token }}" + CHATML


@functools.cache
def tokenizer_file() -> str:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    lines = [
        "user assistant system What is it? The answer is here.",
        "你好，世界。杆秤是什么？",
        "שלום مرحبا नमस्ते こんにちは",
    ]
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<pad>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    path = Path(tempfile.mkdtemp(prefix="tiny-")) / "tokenizer.json"
    tokenizer.save(str(path))
    return str(path)


def tokenizer(template=CHATML, **settings):
    from transformers import PreTrainedTokenizerFast

    made = PreTrainedTokenizerFast(
        tokenizer_file=tokenizer_file(),
        **{"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", **settings},
        additional_special_tokens=["<|im_start|>", "<|im_end|>"],
    )
    made.chat_template = template
    return made


def config(vocab_size=400, **settings):
    from transformers import Qwen2Config

    sizes = {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 512, "tie_word_embeddings": False,
    }  # fmt: skip
    return Qwen2Config(vocab_size=vocab_size, **{**sizes, **settings})


def save_base(folder, *, template=CHATML, seed=0, vocab_size=400, **settings):
    """Save a base model without a head, with its tokenizer."""
    import torch
    from transformers import Qwen2ForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        Qwen2ForCausalLM(config(vocab_size)).save_pretrained(folder)
    tokenizer(template, **settings).save_pretrained(folder)
    return str(folder)


def save_classifier(folder, *, template=CHATML, seed=0, spread=1.0, **settings):
    """Save a model with a head; ``spread`` enlarges the differences between its rewards."""
    import torch
    from transformers import Qwen2ForSequenceClassification

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Qwen2ForSequenceClassification(config(num_labels=1, pad_token_id=0))
        model.score.weight.data.normal_(std=spread)
        model.save_pretrained(folder)
    tokenizer(template, **settings).save_pretrained(folder)
    return str(folder)
