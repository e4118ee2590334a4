"""Bring your own data: HalluQA's Chinese questions, with human best and wrong answers, as a case file.

    python docs/howto/halluqa.py HalluQA.json halluqa.jsonl

The whole recipe: a Prompt, its Responses, and a ranking of two tiers, the best answers above the wrong ones.
"""

import json
from pathlib import Path

import typer

import steelyard as sy


def case_of(row: dict) -> sy.Case:
    """One question. An answer text that occurs twice under one question stands once, in the better tier."""
    best = [row[f"Best Answer{number}"] for number in range(1, 5) if row.get(f"Best Answer{number}")]
    wrong = [row[f"Wrong_Answer{number}"] for number in range(1, 5) if row.get(f"Wrong_Answer{number}")]
    texts = list(dict.fromkeys(best + wrong))
    ids = {text: f"{'best' if text in best else 'wrong'}-{number}" for number, text in enumerate(texts, 1)}
    return sy.Case(
        prompt=sy.Prompt(
            id=f"halluqa-{row['question_id']}",
            messages=(sy.Message(role="user", content=row["Question"]),),
            language="zh",
            category=(row["Category"], row["Class"]),
            source="halluqa",
            reference=row["Source"] or None,
        ),
        responses=tuple(sy.Response(id=ids[text], text=text, author="human") for text in texts),
        ranking=tuple(
            tier
            for tier in (
                tuple(ids[text] for text in texts if text in best),
                tuple(ids[text] for text in texts if text not in best),
            )
            if tier
        ),
    )


def main(source: str, out: str) -> None:
    """Read HalluQA's JSON and write a case file."""
    rows = json.loads(Path(source).read_text(encoding="utf-8"))
    number = sy.write_cases(Path(out), (case_of(row) for row in rows))
    print(f"{number} cases in {out}")


if __name__ == "__main__":
    typer.run(main)
