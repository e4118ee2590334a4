"""Token ids of a file of pairs as LLaMA-Factory reads it: PYTHON read_llamafactory.py TOKENIZER FILE FORMATTING.

The ``src`` of its repository is on PYTHONPATH. FORMATTING is ``alpaca`` or ``sharegpt``, with the columns of its
documentation. Prints a JSON list with the ids of the better and the worse conversation of each row that it keeps,
written by its template ``chatml``.
"""

import json
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

from datasets import load_dataset
from transformers import AutoTokenizer

TOKENIZER, FILE, FORMATTING = sys.argv[1:]
COLUMNS = {
    "alpaca": {"prompt": "instruction", "query": "input", "history": "history", "system": "system"},
    "sharegpt": {"messages": "conversations"},
}


def main():
    # Its loader imports torchaudio, whose wheels need the libraries of CUDA; texts need none of it.
    sys.modules["torchaudio"] = ModuleType("torchaudio")
    sys.modules["torchaudio"].__spec__ = ModuleSpec("torchaudio", None)
    from llamafactory.data.converter import align_dataset
    from llamafactory.data.parser import DatasetAttr
    from llamafactory.data.processor import PairwiseDatasetProcessor
    from llamafactory.data.template import TEMPLATES

    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    attributes = DatasetAttr("file", FILE, formatting=FORMATTING, ranking=True, chosen="chosen", rejected="rejected")
    for name, column in COLUMNS[FORMATTING].items():
        setattr(attributes, name, column)
    arguments = SimpleNamespace(
        streaming=False, preprocessing_num_workers=1, overwrite_cache=True, media_dir="", cutoff_len=512
    )
    rows = load_dataset("json", data_files=FILE, split="train")
    aligned = align_dataset(rows, attributes, arguments, SimpleNamespace(local_process_index=0))
    processor = PairwiseDatasetProcessor(TEMPLATES["chatml"], tokenizer, None, arguments)
    read = processor.preprocess_dataset(aligned[:])
    pairs = zip(read["chosen_input_ids"], read["rejected_input_ids"], strict=True)
    sys.stdout.write(json.dumps(list(pairs)))


if __name__ == "__main__":
    main()
