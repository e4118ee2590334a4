"""Parallel items in 23 languages: HumanEval-XL's Python prompts, each with HumanEvalPack's right and buggy solution.

python docs/howto/parallel_code.py humanevalpack.jsonl humaneval-xl/data/python parallel.jsonl
"""

import json
from pathlib import Path

import typer

import steelyard as sy

CODES = {
    "Afrikaans": "afr_Latn", "Arabic": "arb_Arab", "Bulgarian": "bul_Cyrl", "Chinese": "zho_Hans", "Dutch": "nld_Latn",
    "English": "eng_Latn", "Estonian": "est_Latn", "Finnish": "fin_Latn", "French": "fra_Latn", "German": "deu_Latn",
    "Greek": "ell_Grek", "Hebrew": "heb_Hebr", "Hungarian": "hun_Latn", "Indonesian": "ind_Latn",
    "Italian": "ita_Latn", "Malay": "zsm_Latn", "Persian": "pes_Arab", "Portuguese": "por_Latn",
    "Russian": "rus_Cyrl", "Spanish": "spa_Latn", "Tagalog": "tgl_Latn", "Turkish": "tur_Latn",
    "Vietnamese": "vie_Latn",
}  # fmt: skip


def rows(path: Path) -> list[dict]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def case_of(row: dict, solution: dict, code: str) -> sy.Case:
    """One prompt in one language; parallel items share the id, which is the function's name."""
    return sy.Case(
        prompt=sy.Prompt(
            id=row["entry_point"],
            messages=(sy.Message(role="user", content=row["prompt"]),),
            language=code,
            category=("code",),
            source="HumanEval-XL",
        ),
        responses=(
            sy.Response(id="right", text=solution["canonical_solution"]),
            sy.Response(id="buggy", text=solution["buggy_solution"]),
        ),
        ranking=(("right",), ("buggy",)),
    )


def main(pack: str, prompts: str, out: str) -> None:
    """Read the solutions and the folder of prompts, and write a case file."""
    solutions: dict[str, list[dict]] = {}
    for row in rows(Path(pack)):
        solutions.setdefault(row["entry_point"], []).append(row)
    cases, left_out = [], 0
    for name, code in sorted(CODES.items()):
        for row in rows(Path(prompts) / f"{name}.jsonl"):
            found = solutions.get(row["entry_point"], [])
            # Two functions of one name (`solve`): which solution is whose cannot be told by it.
            left_out += len(found) != 1
            cases += [case_of(row, solution, code) for solution in found if len(found) == 1]
    number = sy.write_cases(Path(out), cases)
    print(f"{number} cases in {out}; {left_out} prompts without one solution of their name left out")


if __name__ == "__main__":
    typer.run(main)
