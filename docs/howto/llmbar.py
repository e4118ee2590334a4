"""LLMBar's five sets as one case file, under the names that RewardBench gave its subsets of them.

python docs/howto/llmbar.py LLMBar/Dataset/LLMBar llmbar.jsonl
"""

import json
from pathlib import Path

import typer

import steelyard as sy

SUBSETS = {
    "Natural": "llmbar-natural",
    "Adversarial/Neighbor": "llmbar-adver-neighbor",
    "Adversarial/GPTInst": "llmbar-adver-GPTInst",
    "Adversarial/GPTOut": "llmbar-adver-GPTOut",
    "Adversarial/Manual": "llmbar-adver-manual",
}


def case_of(row: dict, subset: str, number: int) -> sy.Case:
    """The two outputs in the order of the file, which is no order of quality."""
    better, worse = ("output_1", "output_2") if row["label"] == 1 else ("output_2", "output_1")
    return sy.Case(
        prompt=sy.Prompt(
            id=f"{subset}-{number}",
            messages=(sy.Message(role="user", content=row["input"]),),
            language="en",
            category=("instruction following",),
            source="LLMBar",
            subset=subset,
        ),
        responses=tuple(sy.Response(id=name, text=row[name]) for name in ("output_1", "output_2")),
        ranking=((better,), (worse,)),
    )


def main(folder: str, out: str) -> None:
    """Read the five files and write a case file."""
    cases = [
        case_of(row, subset, number)
        for place, subset in SUBSETS.items()
        for number, row in enumerate(json.loads((Path(folder) / place / "dataset.json").read_text("utf-8")))
    ]
    print(f"{sy.write_cases(Path(out), cases)} cases in {out}")


if __name__ == "__main__":
    typer.run(main)
