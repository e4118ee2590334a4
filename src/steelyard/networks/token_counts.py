"""Lengths in tokens of a tokenizer: of responses alone, and of messages in its chat template."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from steelyard.core.text import response_text
from steelyard.core.types import Message, Response
from steelyard.networks.pretrained import tokenizer_folder


def response_tokens(tokenizer: str) -> Callable[[Response], float]:
    """Return the length of a response in tokens of a tokenizer, without its special tokens."""
    from steelyard.networks.loading import load_tokenizer

    loaded = load_tokenizer(tokenizer)
    loaded.model_max_length = 2**62  # counting needs no limit, and no warning of one

    def num_tokens(response: Response) -> float:
        return float(
            len(loaded(response_text(response), add_special_tokens=False, split_special_tokens=True).input_ids)
        )

    return num_tokens


def message_tokens(tokenizer: Path) -> Callable[[Sequence[Message]], float]:
    """Return a function that counts the tokens of messages, in the tokenizer's chat template if it has one."""
    # Before torch is imported: where there is no tokenizer, this is the answer at once.
    folder = tokenizer_folder(str(tokenizer))
    from steelyard.networks.loading import load_tokenizer

    loaded = load_tokenizer(folder)
    loaded.model_max_length = 2**62  # counting needs no limit, and no warning of one

    def num_tokens(messages: Sequence[Message]) -> float:
        if loaded.chat_template is None:
            return float(sum(len(loaded(turn.content, add_special_tokens=False).input_ids) for turn in messages))
        turns = msgspec.to_builtins(messages)
        text = loaded.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return float(len(loaded(text, add_special_tokens=False).input_ids))

    return num_tokens
