"""Make the copy of HalluQA that comes with Steelyard, from the published files; the same files give the same bytes.

    python docs/howto/halluqa_package.py HalluQA.json Chinese_LLMs_outputs/open_generation src/steelyard/data/halluqa

One line a question: people's best and wrong answers, and each model's answer with GPT-4's label. Left out: the evidence
for the answers (`Source`), the multiple-choice task, and the 13 answers whose label could not be read.
"""

import json
import lzma
from pathlib import Path

import typer

FILE = "questions.jsonl.xz"


def lines(source: Path, folder: Path) -> list[str]:
    """Return the first line, the models' names, and one line for each question, in the order of the file."""
    answers = {
        path.stem.partition("_output")[0]: {
            str(answer["question_id"]): answer for answer in json.loads(path.read_text(encoding="utf-8"))
        }
        for path in sorted(folder.glob("*.json"))
    }
    rows = [{"models": list(answers)}]
    for row in json.loads(source.read_text(encoding="utf-8")):
        id_ = str(row["question_id"])
        labelled = [
            [number, of_model[id_]["response"], of_model[id_]["is_hallucination"]]
            for number, of_model in enumerate(answers.values())
            if isinstance(of_model[id_]["is_hallucination"], bool)
        ]
        rows.append(
            {
                "id": id_,
                "question": row["Question"],
                "category": [row["Category"], row["Class"]],
                "best": [row[key] for key in (f"Best Answer{number}" for number in range(1, 5)) if row.get(key)],
                "wrong": [row[key] for key in (f"Wrong_Answer{number}" for number in range(1, 5)) if row.get(key)],
                "answers": labelled,
            }
        )
    return [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows]


def main(source: str, folder: str, out: str) -> None:
    """Read the published files and write the compressed copy with its number of bytes."""
    text = "\n".join(lines(Path(source), Path(folder))) + "\n"
    path = Path(out) / FILE
    path.write_bytes(lzma.compress(text.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME))
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    typer.run(main)
