"""A head on a frozen decoder, trained on kept features and by asking the decoder in every epoch: seconds, one run each.

Run: python speed/frozen.py [EPOCHS]
"""

import sys
import time
from contextlib import nullcontext

import torch
from memory import examples_of, network_of

from steelyard.stages.train.frozen import kept_features
from steelyard.stages.train.loop import fit, plan
from steelyard.stages.train.settings import Config

SHAPE = {"hidden": 256, "inner": 1024, "layers": 4, "vocabulary": 2000}


def trained(settings, *, is_kept):
    examples, network, losses = examples_of(48, 2000, 100, 50), network_of(SHAPE, settings), []
    began = time.monotonic()
    with kept_features(network, examples, settings) if is_kept else nullcontext():
        fit(
            network,
            examples,
            plan(examples, settings),
            settings,
            after_step=lambda point, state: losses.append(point.loss) or True,
        )
    return time.monotonic() - began, losses, network.head.weight.detach().clone()


def main():
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    settings = Config(trainable="head", epochs=epochs, prompts_per_step=12, learning_rate=1e-3)
    found = {is_kept: trained(settings, is_kept=is_kept) for is_kept in (True, False)}
    losses = max(abs(one - other) for one, other in zip(found[True][1], found[False][1], strict=True))
    weights = (found[True][2] - found[False][2]).abs().max().item()
    print(f"{epochs} epochs on {torch.get_num_threads()} threads: kept {found[True][0]:.2f} s, asked "
          f"{found[False][0]:.2f} s, {found[False][0] / found[True][0]:.1f} times; losses differ by at most "
          f"{losses:.1e}, weights by {weights:.1e}")  # fmt: skip


if __name__ == "__main__":
    main()
