"""Add two simulated judges to a case file: one with a bias, one with chance errors. A control for a study of filters.

    python studies/simulated_judges.py judged.jsonl gpt-3.5-turbo simulated.jsonl

Beside each strict verdict of the named judge, ``longer`` prefers the longer answer, and ``flipped`` says the same as
the judge, but for 30 of 100 verdicts, drawn by a seed, which it turns.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import typer
from msgspec.structs import replace

import steelyard as sy

TURNED = {"left": "right", "right": "left"}
SHARE_TURNED = 0.3


def simulated(case: sy.Case, judge: str, draws: random.Random) -> Iterator[sy.Judgment]:
    """What the two would have said where the judge preferred an answer."""
    length = {response.id: len(response.text or "") for response in case.responses}
    for one in case.judgments:
        if one.judge != judge or one.verdict not in TURNED:
            continue
        bare = replace(one, reason=None, meta=None, id=None)
        verdict = TURNED[one.verdict] if draws.random() < SHARE_TURNED else one.verdict
        yield replace(bare, judge="flipped", verdict=verdict)
        if length[one.left] != length[one.right]:
            yield replace(bare, judge="longer", verdict="left" if length[one.left] > length[one.right] else "right")


def main(source: str, judge: str, out: str) -> None:
    """Read the cases and write them with two judges more."""
    draws = random.Random(0)
    cases = sy.read_cases(Path(source))
    more = (replace(case, judgments=(*case.judgments, *simulated(case, judge, draws))) for case in cases)
    print(f"{sy.write_cases(Path(out), more)} cases in {out}")


if __name__ == "__main__":
    typer.run(main)
