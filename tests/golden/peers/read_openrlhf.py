"""Token ids of a file of pairs as OpenRLHF's reward trainer reads it: PYTHON read_openrlhf.py TOKENIZER FILE.

Its repository is on PYTHONPATH. Prints a JSON list with the ids of the better and the worse conversation of each row.
"""

import json
import sys
from types import SimpleNamespace

from datasets import load_dataset
from openrlhf.datasets.reward_dataset import RewardDataset
from transformers import AutoTokenizer

TOKENIZER, FILE = sys.argv[1:]


def main():
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    keys = {"prompt_key": None, "chosen_key": "chosen", "rejected_key": "rejected", "apply_chat_template": True}
    strategy = SimpleNamespace(args=SimpleNamespace(data=SimpleNamespace(**keys)))
    rows = load_dataset("json", data_files=FILE, split="train")
    dataset = RewardDataset(rows, tokenizer, 512, strategy, num_processors=1)
    sides = ([dataset[place][0], dataset[place][2]] for place in range(len(dataset)))
    sys.stdout.write(json.dumps([[ids.flatten().tolist() for ids in side] for side in sides]))


if __name__ == "__main__":
    main()
