"""Token ids of a file of pairs as RewardBench's program reads one: PYTHON read_rewardbench.py TOKENIZER FILE.

The tokenizer is built from its files, which transformers 5 wrote. Prints a JSON list with the ids of the better and the
worse conversation of each row.
"""

import json
import sys
from pathlib import Path

from rewardbench.utils import load_and_process_dataset
from transformers import PreTrainedTokenizerFast

TOKENIZER, FILE = sys.argv[1:]


def main():
    folder = Path(TOKENIZER)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    tokenizer.chat_template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    rows = load_and_process_dataset(FILE, json=True, tokenizer=tokenizer)
    sides = [[tokenizer(row[f"text_{side}"]).input_ids for side in ("chosen", "rejected")] for row in rows]
    sys.stdout.write("\n" + json.dumps(sides) + "\n")


if __name__ == "__main__":
    main()
