"""Golden values of CheemsRM: its published rule of accuracy and exact match, on ranks and rewards with many ties.

Run with a clone of AlignRM/CheemsRM, in an environment with torch, transformers, datasets and accelerate:
PYTHON tests/golden/peers/make_cheemsrm.py OUT_FOLDER CLONE
Writes ``cheemsrm.json``. Its module of measures imports its trainer; deepspeed, which it names and the measures do not
use, is stood in for by an empty module.
"""

import json
import random
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

CATEGORIES = ["推理", "翻译", "代码"]


def drawn(number=60):
    """Prompts of two to six answers; ranks and rewards come from a few values, so that both often tie."""
    values = random.Random(0)
    for index in range(number):
        size = values.randint(2, 6)
        ranks = [values.randint(1, 4) for _ in range(size)]
        if index % 10 == 0:
            ranks = [1] * size  # nothing to compare: the published rule counts the prompt as right
        rewards = [values.randint(-4, 4) / 4 for _ in range(size)]
        if index % 2:  # rewards that mostly follow the ranks
            rewards = [reward / 4 - rank for reward, rank in zip(rewards, ranks, strict=True)]
        yield {"category": index % len(CATEGORIES), "ranks": ranks, "rewards": rewards}


def main():
    clone = Path(sys.argv[2])
    for absent in ("deepspeed", "jsonlines"):
        sys.modules[absent] = ModuleType(absent)
        sys.modules[absent].__spec__ = ModuleSpec(absent, None)
    sys.path.insert(0, str(clone))
    import torch
    from cheems.eval.metrics import metric_fn
    from cheems.train.dataset import SampleDataset

    SampleDataset.ID_CATEGORY_MAP.update(enumerate(CATEGORIES))
    prompts = list(drawn())
    flat = [
        (reward, prompt, place, one["ranks"][place], one["category"])
        for prompt, one in enumerate(prompts)
        for place, reward in enumerate(one["rewards"])
    ]
    rewards, inputs, outputs, ranks, categories = (torch.tensor(column) for column in zip(*flat, strict=True))
    measured = metric_fn(rewards, inputs, outputs, ranks=ranks, category_ids=categories)
    commit = subprocess.run(["git", "-C", clone, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    content = {
        "commit": commit.stdout.strip(),
        "categories": CATEGORIES,
        "prompts": prompts,
        "measured": {key: float(value) for key, value in measured.items()},
    }
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    (Path(sys.argv[1]) / "cheemsrm.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
