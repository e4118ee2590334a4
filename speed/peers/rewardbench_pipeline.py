"""RewardBench's scoring pipeline on the conversations of a task; run by an environment that has it, not by ours.

Run: PYTHON speed/peers/rewardbench_pipeline.py TASK.json MODEL_FOLDER   (one line of JSON: CPU seconds and scores)
Only its file of the pipeline is loaded, and its move of the batch to a GPU is left out, so that it runs on a CPU.
"""

import importlib.util
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForSequenceClassification, BatchEncoding, PreTrainedTokenizerFast

torch.set_num_threads(1)
BatchEncoding.to = lambda batch, device: batch


def pipeline_class():
    package = importlib.util.find_spec("rewardbench").submodule_search_locations[0]
    spec = importlib.util.spec_from_file_location("pipeline", Path(package) / "models" / "pipeline.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.RewardBenchPipeline


def main():
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    vocabulary = {f"t{index}": index for index in range(task["vocab_size"])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="t1"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="t0", padding_side="left")
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    model = AutoModelForSequenceClassification.from_pretrained(sys.argv[2]).float()
    model.config.pad_token_id = 0
    pipeline = pipeline_class()("text-classification", model, tokenizer)
    texts = [" ".join(f"t{one}" for one in row) for rows in task["prompts"] for row in rows]
    found = {"version": version("rewardbench"), "seconds": {}}
    for batch in task["batches"]:
        best, scores = float("inf"), []
        for _ in range(task["rounds"]):
            start, scores = time.process_time(), []
            for place in range(0, len(texts), batch):
                scores += pipeline(texts[place : place + batch], padding=True, max_length=32_768)[:, 0].tolist()
            best = min(best, time.process_time() - start)
        found["seconds"][str(batch)] = round(best, 3)
        found["scores"] = scores
    print(json.dumps(found))


if __name__ == "__main__":
    main()
