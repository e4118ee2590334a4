"""Golden values of RewardBench: its section sums of accuracies drawn here, by its own function and its own tables.

Run in an environment that has rewardbench: PYTHON tests/golden/peers/make_rewardbench.py OUT_FOLDER
Writes ``rewardbench.json``.
"""

import json
import random
import sys
from importlib.metadata import version
from pathlib import Path

from rewardbench.constants import EXAMPLE_COUNTS, SUBSET_MAPPING
from rewardbench.utils import calculate_scores_per_section

NUM_MATH_ROWS = 447  # the rows of math-prm; its weight is another number


def main():
    drawn = random.Random(0)
    found = []
    for _ in range(5):
        rows = {name: NUM_MATH_ROWS if name == "math-prm" else number for name, number in EXAMPLE_COUNTS.items()}
        right = {name: drawn.randint(0, number) for name, number in rows.items()}
        accuracies = {name: right[name] / rows[name] for name in rows}
        sections = calculate_scores_per_section(EXAMPLE_COUNTS, SUBSET_MAPPING, accuracies)
        found.append({"num_rows": rows, "num_right": right, "sections": sections})
    content = {"rewardbench": version("rewardbench"), "drawn": found}
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    (Path(sys.argv[1]) / "rewardbench.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
