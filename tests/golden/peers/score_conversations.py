"""Rewards of conversations by a model folder, in the transformers of the environment.

PYTHON tests/golden/peers/score_conversations.py FOLDER CONVERSATIONS
CONVERSATIONS is JSON: a list of lists of turns. Prints a JSON object with the version, the token ids and the rewards.
"""

import json
import sys

import torch
import transformers

FOLDER, CONVERSATIONS = sys.argv[1:]


def main():
    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(FOLDER).eval()
    texts = [tokenizer.apply_chat_template(turns, tokenize=False) for turns in json.loads(CONVERSATIONS)]
    ids = [tokenizer(text).input_ids for text in texts]
    with torch.no_grad():
        rewards = [network(torch.tensor([each])).logits.item() for each in ids]
    sys.stdout.write("\n" + json.dumps({"version": transformers.__version__, "ids": ids, "rewards": rewards}) + "\n")


if __name__ == "__main__":
    main()
