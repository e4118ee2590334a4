"""HalluQA with both of its kinds of evidence: people's best and wrong answers, and GPT-4's labels of models' answers.

    python docs/howto/halluqa_models.py HalluQA.json Chinese_LLMs_outputs/open_generation both.jsonl

People prefer each best answer to each wrong one: judgments of the kind human. GPT-4 said of each model's answer
whether it hallucinates: ratings of the kind llm, 1 where it does not. A label that could not be read gives none.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import typer
from halluqa import case_of
from msgspec.structs import replace

import steelyard as sy

TRUTHFUL = {False: 1.0, True: 0.0}


def both(row: dict, answers: dict[str, dict]) -> sy.Case:
    """The question with what people preferred, and each model's answer with GPT-4's label."""
    case = case_of(row)
    best, *wrong = case.ranking
    said = {"judge": "authors", "kind": "human"}
    pairs = [(left, right) for left in best for tier in wrong for right in tier]
    labelled = {name: TRUTHFUL.get(answer["is_hallucination"]) for name, answer in answers.items()}
    scale = {"rater": "gpt-4", "kind": "llm", "dimension": "truthful", "range": (0.0, 1.0)}
    return replace(
        case,
        responses=(
            *case.responses,
            *(sy.Response(id=name, text=answer["response"], author=name) for name, answer in answers.items()),
        ),
        judgments=tuple(sy.Judgment(left=left, right=right, verdict="left", **said) for left, right in pairs),
        ratings=tuple(
            sy.Rating(response=name, value=value, **scale) for name, value in labelled.items() if value is not None
        ),
        ranking=None,
    )


def cases(source: str, folder: str) -> Iterator[sy.Case]:
    """Every question with the answers of all models that have a file in the folder."""
    by_model = {
        path.stem.partition("_output")[0]: {
            str(answer["question_id"]): answer for answer in json.loads(path.read_text(encoding="utf-8"))
        }
        for path in sorted(Path(folder).glob("*.json"))
    }
    for row in json.loads(Path(source).read_text(encoding="utf-8")):
        yield both(row, {name: answers[str(row["question_id"])] for name, answers in by_model.items()})


def main(source: str, folder: str, out: str) -> None:
    """Read HalluQA's questions and the models' answers, and write one case file."""
    print(f"{sy.write_cases(Path(out), cases(source, folder))} cases in {out}")


if __name__ == "__main__":
    typer.run(main)
