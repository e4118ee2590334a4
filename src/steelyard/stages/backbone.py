"""A backbone for the demo, made locally: a tiny random Qwen2 and a byte-level BPE tokenizer; no download."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.numerics import derived_seed
from steelyard.core.types import Case, Counts, Record, Run
from steelyard.io.atomic import move_into_place
from steelyard.io.cases import read_cases
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import CASES, CaseFile, Option, Verb

_END, _PAD = "<|endoftext|>", "<|pad|>"
_ROLES = ("system", "user", "assistant")
# Each turn is its role's mark, its text, and the EOS token: 2 tokens of frame per turn.
TEMPLATE = "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}" + _END + "{% endfor %}"


class Config(BaseConfig, frozen=True):
    """The sizes of the network and its tokenizer. Each attention head has 32 dimensions."""

    hidden_size: int = 128
    """The width of the network; an attention head has 32 dimensions."""
    num_layers: int = 2
    """The number of layers."""
    vocabulary: int = 3000
    """The number of tokens of the tokenizer."""
    max_length: int = 2048
    """The longest text in tokens."""
    seed: int = 0
    """The seed of the random weights."""


class BackboneSummary(Record, frozen=True):
    """The numbers of weights and of tokens."""

    num_weights: int
    vocabulary: int


_DEFAULT = Config()


VERB = Verb("Models", 50, (CASES, Option("out", "The folder for the model.")), is_command=False)


def backbone(cases: CaseFile, out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run[BackboneSummary]:
    """Make a tiny untrained backbone, with a tokenizer of the texts of the cases: to try `train` without a download.

    Raises ConfigError for sizes that make no network, EvidenceError without cases.

    >>> tiny = sy.backbone(cases, hidden_size=32, num_layers=1, vocabulary=300)
    >>> tiny.summary.vocabulary
    300
    """
    _check(config)

    def write(result: Result) -> None:
        read = list(read_cases(cases))
        texts = [text for case in read for text in _texts(case)]
        if not texts:
            raise EvidenceError("there is no text to learn a tokenizer from", where=str(cases))
        tokenizer = _tokenizer(texts, config)
        network = _network(tokenizer, config)
        _save(result, network, tokenizer)
        result.counts = Counts(num_in=len(read), num_used=len(read), noted={"texts": len(texts)})
        num_weights = sum(weight.numel() for weight in network.parameters())
        result.summary = BackboneSummary(num_weights, len(tokenizer))

    return run_stage(out, "backbone", Run[BackboneSummary], write, config=config, inputs={"cases": cases}, force=force)


def _texts(case: Case) -> Iterator[str]:
    for message in case.prompt.messages:
        yield message.content
    for response in case.responses:
        for message in response.messages or ():
            yield message.content
        if response.text is not None:
            yield response.text


def _tokenizer(texts: Sequence[str], config: Config) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

    special = [_PAD, _END, *(f"<|{role}|>" for role in _ROLES)]
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = decoders.ByteLevel()
    trained.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=config.vocabulary,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=trained, eos_token=_END, pad_token=_PAD)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def _network(tokenizer: Any, config: Config) -> Any:
    """Draw the network on the CPU in its own random state, which neither affects nor depends on other draws."""
    import torch
    from transformers.models.qwen2 import Qwen2Config, Qwen2ForCausalLM

    heads = config.hidden_size // 32
    shape = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=config.hidden_size,
        intermediate_size=2 * config.hidden_size,
        num_hidden_layers=config.num_layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=config.max_length,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derived_seed(config.seed, "backbone"))
        return Qwen2ForCausalLM(shape)


def _save(result: Result, network: Any, tokenizer: Any) -> None:
    from steelyard.networks.loading import quiet

    with tempfile.TemporaryDirectory(dir=result.folder, prefix=".saving-") as name:
        with quiet():
            network.save_pretrained(name)
            tokenizer.save_pretrained(name)
        for path in sorted(Path(name).iterdir()):
            move_into_place(path, result.path(path.name))


def _check(config: Config) -> None:
    if config.hidden_size < 32 or config.hidden_size % 32:
        raise ConfigError(f"hidden_size is {config.hidden_size}", where="backbone", allowed="a multiple of 32")
    for name in ("num_layers", "vocabulary", "max_length"):
        if getattr(config, name) < 1:
            raise ConfigError(f"{name} is below 1", where="backbone", allowed="1 or more")
