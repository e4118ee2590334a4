"""The official measures of CheemsRM, timed: run with a Python that has torch, transformers, datasets and accelerate.

Run: PYTHON speed/peers/cheemsrm_metric.py CLONE NUMBERS.json   (by speed/metrics.py --peer-python --peer-clone)
The file holds flat lists: rewards, prompts, places, ranks. Prints its values and the least processor seconds of three
runs as JSON. Its module of measures imports its trainer; packages that it names and its measures do not use are stood
in for by empty modules.
"""

import json
import sys
import time
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType


def main():
    for absent in ("deepspeed", "jsonlines"):
        sys.modules[absent] = ModuleType(absent)
        sys.modules[absent].__spec__ = ModuleSpec(absent, None)
    sys.path.insert(0, sys.argv[1])
    import torch
    from cheems.eval.metrics import metric_fn

    torch.set_num_threads(1)
    given = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    columns = (given["prompts"], given["places"], given["ranks"])
    rewards = torch.tensor(given["rewards"], dtype=torch.float64)
    prompts, places, ranks = (torch.tensor(column) for column in columns)
    least, found = float("inf"), {}
    for _ in range(3):
        start = time.process_time()
        found = metric_fn(rewards, prompts, places, ranks=ranks)
        least = min(least, time.process_time() - start)
    values = {"accuracy": found["accuracy-rank"], "exact_match": float(found["exact_match-rank"])}
    print(json.dumps(values | {"seconds": least, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
