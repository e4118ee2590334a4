"""TRL's RewardTrainer on real pairs, last layers and head; its weights back as safetensors for one common measure.

Run: PYTHON speed/peers/trl_accuracy.py TASK.json OUT   (one line of JSON: CPU seconds of loop and process, memory)

The pairs are token ids, so that text and start are those of the other side. Batches are sorted by length, TRL's better
setting on a CPU. What is frozen is frozen here too.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import torch
from datasets import Dataset
from memory import peak
from safetensors.torch import save_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from trl import RewardConfig, RewardTrainer, __version__

torch.set_num_threads(1)


def main():
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    model = AutoModelForSequenceClassification.from_pretrained(task["start"], dtype=torch.float32)
    trained = set(task["trained"])
    for name, weight in model.named_parameters():
        weight.requires_grad_(name in trained)
    tokenizer = AutoTokenizer.from_pretrained(task["start"])
    with tempfile.TemporaryDirectory() as out:
        config = RewardConfig(
            output_dir=out, per_device_train_batch_size=task["pairs_a_step"], num_train_epochs=task["epochs"],
            learning_rate=task["rate"], lr_scheduler_type="cosine", warmup_steps=task["warmup_steps"],
            seed=task["seed"],
            max_grad_norm=1.0, weight_decay=0.0, max_length=None, report_to="none", save_strategy="no",
            logging_strategy="no", use_cpu=True, disable_tqdm=True, bf16=task["dtype"] == "bfloat16",
            train_sampling_strategy="group_by_length", remove_unused_columns=False, gradient_checkpointing=False,
            dataloader_pin_memory=False,
        )  # fmt: skip
        trainer = RewardTrainer(
            model=model, args=config, processing_class=tokenizer, train_dataset=Dataset.from_list(task["pairs"])
        )
        start = time.process_time()
        trainer.train()
        loop = time.process_time() - start
    kept = {name: weight.detach().contiguous() for name, weight in model.named_parameters() if name in trained}
    save_file(kept, sys.argv[2])
    print(json.dumps({"version": __version__, "loop_seconds": loop, "peak_mb": peak()}))


if __name__ == "__main__":
    main()
