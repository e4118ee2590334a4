"""Token ids of a file as LLaMA-Factory reads it: PYTHON read_llamafactory.py TOKENIZER FILE FORMATTING [STAGE].

The ``src`` of its repository is on PYTHONPATH. FORMATTING is ``alpaca`` or ``sharegpt``, with the columns of its
documentation. STAGE is ``rm`` (pairs), ``sft`` or ``kto``. Prints a JSON list with, for each row that it keeps, the ids
written by its template ``chatml``: of the better and the worse conversation; of the conversation and its labels; of
these two and the tag.
"""

import json
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

from datasets import load_dataset
from transformers import AutoTokenizer

TOKENIZER, FILE, FORMATTING, *STAGE = sys.argv[1:]
COLUMNS = {
    "alpaca": {"prompt": "instruction", "query": "input", "history": "history", "system": "system"},
    "sharegpt": {"messages": "conversations"},
}
STAGES = {
    "rm": ("PairwiseDatasetProcessor", ("chosen_input_ids", "rejected_input_ids"),
           {"ranking": True, "chosen": "chosen", "rejected": "rejected"}),
    "sft": ("SupervisedDatasetProcessor", ("input_ids", "labels"), {}),
    "kto": ("FeedbackDatasetProcessor", ("input_ids", "labels", "kto_tags"), {"kto_tag": "kto_tag"}),
}  # fmt: skip


def main():
    # Its loader imports torchaudio, whose wheels need the libraries of CUDA; texts need none of it.
    sys.modules["torchaudio"] = ModuleType("torchaudio")
    sys.modules["torchaudio"].__spec__ = ModuleSpec("torchaudio", None)
    from llamafactory.data import processor
    from llamafactory.data.converter import align_dataset
    from llamafactory.data.parser import DatasetAttr
    from llamafactory.data.template import TEMPLATES

    name, parts, columns = STAGES[STAGE[0] if STAGE else "rm"]
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    attributes = DatasetAttr("file", FILE, formatting=FORMATTING, **columns)
    for key, column in COLUMNS[FORMATTING].items():
        setattr(attributes, key, column)
    arguments = SimpleNamespace(
        streaming=False, preprocessing_num_workers=1, overwrite_cache=True, media_dir="", cutoff_len=512,
        mask_history=True, train_on_prompt=False,
    )  # fmt: skip
    rows = load_dataset("json", data_files=FILE, split="train")
    aligned = align_dataset(rows, attributes, arguments, SimpleNamespace(local_process_index=0))
    read = getattr(processor, name)(TEMPLATES["chatml"], tokenizer, None, arguments).preprocess_dataset(aligned[:])
    sys.stdout.write(json.dumps(list(zip(*(read[part] for part in parts), strict=True))))


if __name__ == "__main__":
    main()
