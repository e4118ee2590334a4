"""Golden values of TRL: a checkpoint of its RewardTrainer, the tokens that it read, its rewards and measures.

Run in an environment that has TRL: PYTHON tests/golden/peers/make_trl.py OUT_FOLDER
Writes ``trl.json`` and ``trl_checkpoint/`` (a random model of two layers after one epoch).
"""

import json
import sys
import tempfile
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from datasets import Dataset
from transformers import AutoTokenizer
from trl import RewardConfig, RewardTrainer, __version__

import tiny

PROMPTS = ["What is it?", "你好，世界。", "שלום", "مرحبا", "नमस्ते", "print('x')  # \\frac{1}{2}"]
ANSWERS = ["The answer is here.", "杆秤是什么？\n  two  spaces", "no", "</s> is spelt out"]


def rows():
    """Every prompt with two of the answers, of different lengths."""
    for index, prompt in enumerate(PROMPTS):
        chosen, rejected = ANSWERS[index % 4], ANSWERS[(index + 1) % 4]
        asked = {"role": "user", "content": prompt}
        yield {
            "chosen": [asked, {"role": "assistant", "content": chosen}],
            "rejected": [asked, {"role": "assistant", "content": rejected}],
        }


def main():
    torch.manual_seed(0)
    out = Path(sys.argv[1])
    given = list(rows())
    with tempfile.TemporaryDirectory() as folder:
        tiny.save_base(folder)
        config = RewardConfig(
            output_dir=f"{folder}/out", per_device_train_batch_size=3, per_device_eval_batch_size=len(given),
            num_train_epochs=1, learning_rate=1e-2, use_cpu=True, bf16=False, report_to="none", save_strategy="no",
            logging_strategy="no", disable_tqdm=True, max_length=None, seed=0, gradient_checkpointing=False,
        )  # fmt: skip
        trainer = RewardTrainer(
            model=folder,
            args=config,
            processing_class=AutoTokenizer.from_pretrained(folder),
            train_dataset=Dataset.from_list(given),
            eval_dataset=Dataset.from_list(given),
        )
        trainer.train()
        measured = trainer.evaluate()
        trainer.model.eval()
        read = [trainer.eval_dataset[index] for index in range(len(given))]
        batch = trainer.data_collator(read)
        with torch.no_grad():
            rewards = trainer.model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        trainer.save_model(str(out / "trl_checkpoint"))
    (out / "trl_checkpoint" / "training_args.bin").unlink(missing_ok=True)
    pairs = rewards.squeeze(-1).view(2, -1).tolist()
    found = {
        "trl": __version__,
        "rows": given,
        "ids": [{"chosen": one["chosen_ids"], "rejected": one["rejected_ids"]} for one in read],
        "rewards": [{"chosen": chosen, "rejected": rejected} for chosen, rejected in zip(*pairs, strict=True)],
        "measured": {key: measured[key] for key in ("eval_loss", "eval_accuracy", "eval_margin", "eval_mean_reward")},
    }
    (out / "trl.json").write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
