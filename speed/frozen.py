"""A head on a frozen decoder, trained on cached features and with the decoder in every epoch: seconds, one run each.

Run: python speed/frozen.py [EPOCHS]
"""

import argparse
import time
from contextlib import nullcontext

import torch
from memory import examples_of, network_of

from steelyard.training.config import Config
from steelyard.training.trainer import Trainer

SHAPE = {"hidden": 256, "inner": 1024, "layers": 4, "vocabulary": 2000}


def trained(settings, *, is_kept):
    trainer = Trainer(network_of(SHAPE, settings), examples_of(48, 2000, 100, 50), settings)
    began = time.monotonic()
    with trainer.cached_features() if is_kept else nullcontext():
        losses = [line["loss"] for line in trainer.run()]
    return time.monotonic() - began, losses, trainer.network.head.weight.detach().clone()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("epochs", type=int, nargs="?", default=10)
    epochs = parser.parse_args().epochs
    settings = Config(trainable="head", epochs=epochs, batch_size=12, learning_rate=1e-3)
    found = {is_kept: trained(settings, is_kept=is_kept) for is_kept in (True, False)}
    losses = max(abs(one - other) for one, other in zip(found[True][1], found[False][1], strict=True))
    weights = (found[True][2] - found[False][2]).abs().max().item()
    print(f"{epochs} epochs on {torch.get_num_threads()} threads: kept {found[True][0]:.2f} s, asked "
          f"{found[False][0]:.2f} s, {found[False][0] / found[True][0]:.1f} times; losses differ by at most "
          f"{losses:.1e}, weights by {weights:.1e}")  # fmt: skip


if __name__ == "__main__":
    main()
