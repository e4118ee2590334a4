"""TRL's RewardTrainer on a GPU, in each variant of a task: seconds of steps and of the loop, and peak memory.

Run: PYTHON speed/peers/trl_gpu.py TASK.json   (one line of JSON; on a CPU where there is no GPU)

A task has a ``model`` folder, a number of ``epochs`` and ``variants`` by name: ``batch``, ``accumulated`` batches,
``checkpointing``, and ``by_length`` for batches of pairs of like length. Its pairs are token ids (``pairs``, all of
them a step) or a ``file`` of text, which is then encoded by the model's tokenizer and ends with a saved model.
``adapter``: LoRA as ours has it. After ``seconds`` no further variant is begun; memory that runs out is recorded.
"""

import gc
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from datasets import Dataset, load_dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedTokenizerFast,
    TrainerCallback,
)
from trl import RewardConfig, RewardTrainer, __version__

IS_GPU = torch.cuda.is_available()


def now():
    if IS_GPU:
        torch.cuda.synchronize()
    return time.perf_counter()


class StepTimes(TrainerCallback):
    """The time at the end of each step."""

    def __init__(self):
        self.ends = []

    def on_step_end(self, args, state, control, **_):
        self.ends.append(now())


def tokenizer_of(task):
    """The model's tokenizer for text; for token ids one that has a token of padding, and is not used."""
    if "file" in task:
        return AutoTokenizer.from_pretrained(task["model"])
    size = AutoConfig.from_pretrained(task["model"]).vocab_size
    vocabulary = {f"t{index}": index for index in range(size)}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="t1"))
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="t0", eos_token="t2")


def rows_of(task, folder, *, by_length):
    if "file" in task:
        return load_dataset("json", data_files=task["file"], split="train", cache_dir=folder)
    rows = [{"chosen_ids": chosen, "rejected_ids": rejected} for chosen, rejected in task["pairs"]]
    if by_length:
        rows = [row | {"length": max(map(len, row.values()))} for row in rows]
    return Dataset.from_list(rows)


def measured(task, folder, variant):
    lora = LoraConfig(
        r=16, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear", task_type="SEQ_CLS",
        modules_to_save=["score"],
    )  # fmt: skip
    by_length = variant["by_length"]
    sampling = {}
    if by_length:  # renamed between versions of transformers
        fields = RewardConfig.__dataclass_fields__
        is_new = "train_sampling_strategy" in fields
        sampling = {"train_sampling_strategy": "group_by_length"} if is_new else {"group_by_length": True}
    config = RewardConfig(
        output_dir=folder, per_device_train_batch_size=variant["batch"], max_length=None,
        num_train_epochs=task["epochs"],
        gradient_accumulation_steps=variant["accumulated"], gradient_checkpointing=variant["checkpointing"],
        bf16=IS_GPU, use_cpu=not IS_GPU, report_to="none", save_strategy="no", logging_strategy="steps",
        logging_steps=1, disable_tqdm=True, remove_unused_columns=not by_length, **sampling,
    )  # fmt: skip
    dtype = torch.bfloat16 if task["adapter"] else torch.float32
    times = StepTimes()
    trainer = RewardTrainer(
        model=AutoModelForSequenceClassification.from_pretrained(task["model"], num_labels=1, dtype=dtype),
        args=config,
        processing_class=tokenizer_of(task),
        train_dataset=rows_of(task, folder, by_length=by_length),
        peft_config=lora if task["adapter"] else None,
        callbacks=[times],
    )
    if IS_GPU:
        torch.cuda.reset_peak_memory_stats()
    start = now()
    trainer.train()
    loop = now() - start
    if "file" in task:
        trainer.save_model(f"{folder}/model")
    later = [end - begun for begun, end in zip(times.ends, times.ends[1:], strict=False)]
    return {
        "first_seconds": round(times.ends[0] - start, 3),
        "seconds": round(statistics.median(later), 4),
        "loop_seconds": round(loop, 3),
        "num_steps": len(times.ends),
        "first_loss": trainer.state.log_history[0]["loss"],
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2),
    }


def main():
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    end = time.monotonic() + task["seconds"]
    found = {}
    for name, variant in task["variants"].items():
        if time.monotonic() > end:
            found[name] = {"seconds": None, "why": "no time was left"}
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                found[name] = measured(task, folder, variant)
            except torch.OutOfMemoryError:
                found[name] = {"seconds": None, "why": "out of memory"}
        gc.collect()
        torch.cuda.empty_cache()
        print(name, found[name], file=sys.stderr, flush=True)
    print(json.dumps({"version": __version__, "sides": found}))


if __name__ == "__main__":
    main()
