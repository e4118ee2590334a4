"""Golden values of ppi-python: means of labels drawn here, with the weight that it tunes, and its 95% intervals.

Run in an environment that has ppi-python: PYTHON tests/golden/peers/make_ppi_python.py OUT_FOLDER
Writes ``ppi_python.json``. Each drawing is a list of human labels with the judge's of the same items, and the judge's
labels of other items: 0, 1 (a tie) or 2, twice the credit.
"""

import json
import random
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate


def main():
    drawn = random.Random(0)
    found = []
    for size, num_others, agreement in ((60, 600, 0.9), (200, 1000, 0.75), (400, 400, 0.6), (800, 4000, 0.85)):
        human = [drawn.choice((0, 0, 1, 2, 2, 2)) for _ in range(size + num_others)]
        judged = [label if drawn.random() < agreement else drawn.choice((0, 1, 2)) for label in human]
        labels, same, others = (np.array(part) / 2 for part in (human[:size], judged[:size], judged[size:]))
        point = float(np.squeeze(ppi_mean_pointestimate(labels, same, others)))
        weight = (point - labels.mean()) / (others.mean() - same.mean())
        low, high = ppi_mean_ci(labels, same, others, alpha=0.05)
        numbers = {"weight": float(weight), "point": point, "low": float(np.squeeze(low))}
        numbers |= {
            "high": float(np.squeeze(high)),
            "human": human[:size],
            "same": judged[:size],
            "others": judged[size:],
        }
        found.append(numbers)
    content = {"ppi-python": version("ppi-python"), "drawn": found}
    (Path(sys.argv[1]) / "ppi_python.json").write_text(json.dumps(content) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
