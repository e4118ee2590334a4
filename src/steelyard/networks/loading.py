"""Load networks, tokenizers and published weights; initialise heads; check rows against a network."""

import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from steelyard.core.errors import ModelError
from steelyard.core.numerics import derived_seed
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import JsonObject
from steelyard.io.progress import log
from steelyard.io.run_folder import path_inside
from steelyard.networks.devices import keep_few_kernels
from steelyard.networks.pretrained import Precision, hub_folder, is_hub_name, load_pretrained, tokenizer_folder
from steelyard.networks.reward_network import RewardNetwork

_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_WHOLE = ("model.safetensors", "pytorch_model.bin")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt")


def load_network(path: str, *, dtype: Precision) -> tuple[RewardNetwork, bool]:
    """Return the network of a model folder or hub name, and whether its head was trained (is in its weights).

    The backbone is in ``dtype``, the head always in float32: all is loaded in float32 first, since a head that has
    been rounded to bfloat16 stays rounded. Code that comes with a model is never run. Raises ModelError for a model
    that is not a decoder with a head.
    """
    from transformers.models.auto import AutoModelForSequenceClassification

    keep_few_kernels()
    if is_hub_name(path):
        path = str(hub_folder(path))
    if (Path(path) / "adapter_config.json").is_file():
        return _load_adapted(Path(path), dtype=dtype)
    _check_shards(Path(path))
    try:
        with quiet():
            classifier, loading = load_pretrained(
                AutoModelForSequenceClassification,
                path,
                num_labels=1,
                dtype=torch.float32,
                output_loading_info=True,
                # Heads of another shape are reported below, by their names.
                ignore_mismatched_sizes=True,
            )
    except (OSError, ValueError, RuntimeError) as error:
        problem = f"cannot be loaded as a scalar reward model ({str(error).splitlines()[0]})"
        raise ModelError(
            problem, where=path, do="name a decoder in Hugging Face format with one label or none"
        ) from error
    head = dict(classifier.named_children()).get("score")
    if not isinstance(head, nn.Linear) or head.out_features != 1:
        raise ModelError("has no scalar head named 'score'", where=path, allowed="decoders such as Qwen, Llama, Gemma")
    shapes = {name: shape for name, shape, *_ in loading["mismatched_keys"]}
    if other := sorted(shapes):
        if other == ["score.weight"]:
            problem = f"its head has {shapes['score.weight'][0]} labels, and a reward is one number"
            do = "let its own code make one score of them for each answer, and evaluate these scores"
            raise ModelError(problem, where=path, allowed="a head of one label, or none", do=do)
        problem = f"has weights of another shape than a model with one label: {', '.join(other[:3])}"
        raise ModelError(problem, where=path, allowed="a head of one label, or none")
    missing = sorted(name for name in loading["missing_keys"] if not name.startswith("score."))
    unread = sorted(name for name in loading["unexpected_keys"] if not name.startswith("lm_head."))
    if missing:
        problem, do = f"lacks weights: {', '.join(missing[:3])}", "check that the download is whole"
        if unread:
            problem += f"; it has weights under other names: {', '.join(unread[:3])}"
            do = "save the model itself, without the wrapper that gives its weights other names"
        raise ModelError(problem, where=path, do=do)
    has_head = not any(name.startswith("score.") for name in loading["missing_keys"])
    if unread and not has_head:
        # A head of another design would be replaced by a new one in silence.
        weights = ", ".join(unread[:3])
        log(f"{path}: has no head named 'score', and its weights {weights} are not read (heads: steelyard list models)")
    network = RewardNetwork(classifier)
    network.unread_weights = tuple(unread)
    network.backbone.to(getattr(torch, dtype))
    return network, has_head


def _load_adapted(folder: Path, *, dtype: Precision) -> tuple[RewardNetwork, bool]:
    """Return the base model of an adapter folder with the adapter merged, and whether there is a trained head."""
    from steelyard.networks.adapters import base_of, load_adapter

    network, has_head = load_network(base_of(folder), dtype="float32")
    is_saved = load_adapter(network, folder, dtype=dtype)
    network.backbone.to(getattr(torch, dtype))
    return network, is_saved or has_head


def load_causal(path: str, *, dtype: Precision) -> Any:
    """Return a whole causal language model. Raises ModelError for anything else."""
    from transformers.models.auto import AutoModelForCausalLM

    return _load_whole(AutoModelForCausalLM, path, dtype, "causal language model")


def load_seq2seq(path: str, *, dtype: Precision) -> Any:
    """Return a whole model with encoder and decoder. Raises ModelError for anything else."""
    from transformers.models.auto import AutoModelForSeq2SeqLM

    return _load_whole(AutoModelForSeq2SeqLM, path, dtype, "translation model")


def load_encoder(path: str, *, dtype: Precision) -> Any:
    """Return a whole encoder; the layer that pools its states may be absent. Raises ModelError for anything else."""
    from transformers.models.auto import AutoModel

    return _load_whole(AutoModel, path, dtype, "text encoder", optional="pooler.")


def _load_whole(loader: Any, path: str, dtype: Precision, kind: str, *, optional: str | None = None) -> Any:
    """Return a model with all its weights but the ``optional`` ones: what a loader lacks it fills with random ones."""
    keep_few_kernels()
    if is_hub_name(path):
        path = str(hub_folder(path))
    _check_shards(Path(path))
    try:
        with quiet():
            loaded: Any = load_pretrained(loader, path, dtype=getattr(torch, dtype), output_loading_info=True)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        problem = f"cannot be loaded as a {kind} ({str(error).splitlines()[0]})"
        raise ModelError(problem, where=path) from error
    model, loading = loaded
    missing = sorted(key for key in loading["missing_keys"] if optional is None or not key.startswith(optional))
    if missing:
        problem = f"lacks weights: {', '.join(missing[:3])}"
        raise ModelError(problem, where=path, allowed=f"a whole {kind} with its output layer")
    return model


def load_tokenizer(path: str) -> Any:
    """Return the tokenizer of a model. Raises ModelError where there is none that loads."""
    from transformers.models.auto import AutoTokenizer

    folder = Path(path := tokenizer_folder(path))
    is_adapter = (folder / "adapter_config.json").is_file()
    if is_adapter and not any((folder / name).is_file() for name in _TOKENIZERS):
        from steelyard.networks.adapters import base_of

        return load_tokenizer(base_of(folder))
    try:
        with quiet():
            return load_pretrained(AutoTokenizer, path)
    except (OSError, ValueError) as error:
        if not (folder / "config.json").is_file():
            models = sorted(config.parent.name for config in folder.glob("*/config.json"))
            raise ModelError(
                "this folder holds no model: it has no config.json",
                where=path,
                do=f"name one of the models in it: {', '.join(models[-3:])}" if models else "check the path",
            ) from error
        raise ModelError(
            f"has no tokenizer that loads ({str(error).splitlines()[0].removesuffix('one of: ').strip()})",
            where=path,
            allowed="a model's folder with its tokenizer",
            do="check the path",
        ) from error


def initialise_head(network: RewardNetwork, *, seed: int) -> None:
    """Draw the head from the seed alone: normal with standard deviation 1 / (hidden size + 1), as in OpenRLHF."""
    # A generator of the CPU: the same head on every device, and no other draw changes.
    draws = torch.Generator().manual_seed(derived_seed(seed, "head"))
    weight = network.head.weight
    with torch.no_grad():
        weight.copy_(torch.randn(weight.shape, generator=draws, dtype=torch.float32) / (weight.shape[1] + 1))
        if network.head.bias is not None:
            network.head.bias.zero_()


def check_rows(rows: Sequence[Sequence[int]], network: RewardNetwork, *, where: str) -> None:
    """Raise ModelError for a token id or a position that the model has no embedding for."""
    check_token_ids(rows, network.classifier, where=where)
    longest, limit = max(map(len, rows), default=0), _num_learned_positions(network)
    if limit is not None and longest > limit:
        problem = f"a conversation has {longest:,} tokens, and the model has embeddings for {limit:,} positions"
        raise ModelError(problem, where=where, do=Advice("use ", Remedy("max_length", limit)))


def check_token_ids(rows: Sequence[Sequence[int]], model: Any, *, where: str) -> None:
    """Raise ModelError for a token id without an embedding: tokenizer and weights belong to different models."""
    size = model.get_input_embeddings().num_embeddings
    largest = max((max(row) for row in rows if row), default=0)
    if largest >= size:
        raise ModelError(
            f"token id {largest}, and the model has {size} embeddings: tokenizer and weights do not belong together",
            where=where,
            allowed=f"ids below {size}",
            do="put the model's own tokenizer into its folder",
        )


def _num_learned_positions(network: RewardNetwork) -> int | None:
    """Return the longest row where positions are a table, as in GPT-2; null where they are computed."""
    settings = network.classifier.config.get_text_config().to_dict()
    limit = settings.get("max_position_embeddings") or settings.get("n_positions")
    tables = [module for module in network.backbone.modules() if isinstance(module, nn.Embedding)]
    embeddings = network.classifier.get_input_embeddings()
    # OPT and its relatives reserve two rows of the table.
    is_learned = any(limit and table is not embeddings and table.num_embeddings - limit in (0, 2) for table in tables)
    return limit if is_learned else None


@contextmanager
def quiet() -> Any:
    """Silence transformers while it loads and saves; its relevant reports are checked by the caller."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    shown = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if shown:
            logging.enable_progress_bar()


def local_folder(path: str) -> Path:
    """Return the folder of a model: the path itself, or the local copy of the hub's files of that name.

    Raises ModelError for a folder that does not exist and a name that the hub does not serve.
    """
    folder = Path(path).expanduser()
    if folder.is_dir():
        return folder
    if path.startswith(("/", ".", "~")):
        raise ModelError("there is no such model folder", where=path, do="check the path")
    return hub_folder(path)


def read_config(folder: Path) -> JsonObject:
    """Return the model's ``config.json``. Raises ModelError where it is missing or cannot be read."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"has no config.json that can be read ({error})", where=str(folder)) from error
    if not isinstance(config, dict):
        raise ModelError("is not a JSON object", where=str(path))
    return config


def _check_shards(folder: Path) -> None:
    """Raise ModelError for the first file of weights that an index names and the folder lacks."""
    if any((folder / name).is_file() for name in _INDEXES) and not any((folder / name).is_file() for name in _WHOLE):
        for path in _weight_files(folder, lambda name: True):
            if not path.is_file():
                raise _missing_file(path)


def _missing_file(path: Path) -> ModelError:
    return ModelError("this file of its weights is missing", where=str(path), do="download the model again")


def stored_weights(folder: Path, is_wanted: Callable[[str], bool]) -> dict[str, Tensor]:
    """Return the wanted weights by their published names, as stored, from one file or from shards.

    Raises ModelError for a folder without weights and for a shard that is missing.
    """
    weights: dict[str, Tensor] = {}
    for path in _weight_files(folder, is_wanted):
        if not path.is_file():
            raise _missing_file(path)
        try:
            weights |= {name: value for name, value in _weights_in(path, is_wanted) if is_wanted(name)}
        except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, AttributeError) as error:
            why = (str(error).splitlines() or [""])[0]
            raise ModelError(f"its weights are broken ({why})", where=str(path), do="download it again") from error
    return weights


def load_backbone(folder: Path, *, dtype: Precision) -> nn.Module:
    """Return the decoder of a checkpoint without its head, in evaluation mode; never runs the model's code.

    Raises ModelError for a folder that transformers cannot load, and for a decoder without all its weights.
    """
    from transformers.models.auto import AutoModel

    try:
        with quiet():
            model, loading = load_pretrained(AutoModel, folder, dtype=getattr(torch, dtype), output_loading_info=True)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        problem = f"cannot be loaded as a decoder ({str(error).splitlines()[0]})"
        raise ModelError(problem, where=str(folder)) from error
    if missing := sorted(loading["missing_keys"]):
        raise ModelError(f"lacks weights: {', '.join(missing[:3])}", where=str(folder), do="check the download")
    return model.eval()


def fill(module: nn.Module, weights: Mapping[str, Tensor], *, where: Path) -> None:
    """Load published weights into a head, in float32. Raises ModelError unless names and shapes match exactly."""
    expected = module.state_dict()
    missing, extra = sorted(expected.keys() - weights.keys()), sorted(weights.keys() - expected.keys())
    shapes = [name for name in expected.keys() & weights.keys() if expected[name].shape != weights[name].shape]
    for kind, names in (("lacks", missing), ("also has", extra), ("has in another shape", sorted(shapes))):
        if names:
            problem = f"is not of this family: it {kind} {', '.join(names[:3])}"
            raise ModelError(problem, where=str(where), do="see the families by name: steelyard list models")
    # A counter of steps stays an integer; everything else becomes float32.
    module.load_state_dict({name: value.to(expected[name].dtype) for name, value in weights.items()})
    module.eval()


def _weight_files(folder: Path, is_wanted: Callable[[str], bool]) -> list[Path]:
    for name in _INDEXES:
        if (folder / name).is_file():
            shards = _weight_map(folder / name)
            # The index is the model's own file: it must not name files outside the folder.
            return [path_inside(folder, file) for file in sorted({shards[key] for key in shards if is_wanted(key)})]
    for name in _WHOLE:
        if (folder / name).is_file():
            return [folder / name]
    raise ModelError("has no weights", where=str(folder), allowed=", ".join((*_WHOLE, *_INDEXES)))


def _weight_map(path: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Index).weight_map
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = f"not an index of weights ({error})"
        raise ModelError(problem, where=str(path), do="download the model again") from error


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


def _weights_in(path: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, Tensor]]:
    if path.suffix != ".safetensors":
        yield from torch.load(path, map_location="cpu", weights_only=True).items()
        return
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        for name in file.keys():  # noqa: SIM118 - the file is no mapping
            if is_wanted(name):
                yield name, file.get_tensor(name)
