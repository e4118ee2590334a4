"""TRL's RewardTrainer on the pairs of a task, in random order; run by an environment that has TRL, not by ours.

Run: PYTHON speed/peers/trl_trainer.py TASK.json MODEL_FOLDER   (one line of JSON: CPU seconds and peak memory)
"""

import json
import random
import sys
import tempfile
import time
from pathlib import Path

import torch
from datasets import Dataset
from memory import peak, resident
from tokenizers import Tokenizer, models
from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerFast
from trl import RewardConfig, RewardTrainer, __version__

torch.set_num_threads(1)


def pairs_of(task):
    rows = [
        {"chosen_ids": rows[better], "rejected_ids": rows[worse]}
        for rows in task["prompts"]
        for better in range(len(rows))
        for worse in range(better + 1, len(rows))
    ]
    random.Random(0).shuffle(rows)
    return rows


def measured(task, folder, rows, batch, accumulated):
    """CPU seconds, and megabytes beyond what the trainer holds before its first step."""
    vocabulary = {f"t{index}": index for index in range(task["vocab_size"])}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(vocabulary, unk_token="t1")), pad_token="t0", eos_token="t2"
    )
    with tempfile.TemporaryDirectory() as out:
        config = RewardConfig(
            output_dir=out, per_device_train_batch_size=batch, gradient_accumulation_steps=accumulated,
            max_length=None, num_train_epochs=1, report_to="none", save_strategy="no", logging_strategy="no",
            use_cpu=True, disable_tqdm=True, bf16=False, gradient_checkpointing=False, dataloader_pin_memory=False,
        )  # fmt: skip
        trainer = RewardTrainer(
            model=AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32),
            args=config,
            processing_class=tokenizer,
            train_dataset=Dataset.from_list(rows),
        )
        held = resident()
        start = time.process_time()
        trainer.train()
        return round(time.process_time() - start, 3), peak() - held


def main():
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    rows, step = pairs_of(task), task["pairs_a_step"]
    found = {"version": __version__, "num_pairs": len(rows)}
    found["as it comes"], found["peak_memory_mb"] = measured(task, sys.argv[2], rows, step, 1)
    # Its best setting on one thread: a pair at a time pads two rows to each other and nothing else. What this process
    # has kept of its memory hides the peak of a second training, so that none is told.
    found["a pair at a time"], _ = measured(task, sys.argv[2], rows, 1, step)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
