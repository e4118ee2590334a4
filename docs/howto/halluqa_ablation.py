"""HalluQA in three files for an ablation: people's pairs, GPT-4's labels of models' answers, people's pairs to test.

    python docs/howto/halluqa_ablation.py HalluQA.json Chinese_LLMs_outputs/open_generation FOLDER

Each question is in one file alone. Of the 24 models' answers six are drawn for each question, so that a CPU is enough.
"""

import random
from pathlib import Path

import typer
from halluqa_models import cases
from msgspec.structs import replace

import steelyard as sy

HUMAN, LLM, TEST, NUM_ANSWERS = 40, 60, 60, 6


def people(case: sy.Case) -> sy.Case:
    """The question with people's answers and judgments alone."""
    judged = {side for judgment in case.judgments for side in (judgment.left, judgment.right)}
    responses = tuple(response for response in case.responses if response.id in judged)
    return replace(case, responses=responses, ratings=())


def models(case: sy.Case, draw: random.Random) -> sy.Case:
    """The question with some models' answers and GPT-4's labels of them."""
    labelled = sorted(rating.response for rating in case.ratings)
    drawn = set(draw.sample(labelled, min(NUM_ANSWERS, len(labelled))))
    return replace(
        case,
        responses=tuple(response for response in case.responses if response.id in drawn),
        judgments=(),
        ratings=tuple(rating for rating in case.ratings if rating.response in drawn),
    )


def main(source: str, answers: str, folder: str, seed: int = 0) -> None:
    """Write human.jsonl, ratings.jsonl and test.jsonl into a folder."""
    draw = random.Random(seed)
    questions = list(cases(source, answers))
    draw.shuffle(questions)
    files = {
        "human.jsonl": [people(case) for case in questions[:HUMAN]],
        "ratings.jsonl": [models(case, draw) for case in questions[HUMAN : HUMAN + LLM]],
        "test.jsonl": [people(case) for case in questions[HUMAN + LLM :][:TEST]],
    }
    for name, chosen in files.items():
        print(f"{sy.write_cases(Path(folder) / name, chosen)} cases in {name}")


if __name__ == "__main__":
    typer.run(main)
