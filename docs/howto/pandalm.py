"""Join PandaLM's test set with the verdicts of its two language models: one file with all of the evidence.

    python docs/howto/pandalm.py PandaLM/data pandalm.json

The published files are joined by ``idx``; the format `pandalm` reads the joined rows.
"""

import json
from pathlib import Path

import typer

VERDICTS = ("gpt-3.5-turbo-testset-v1.json", "pandalm-7b-testset-v1.json")


def main(folder: str, out: str) -> None:
    """Read the test set and its verdicts, and write rows that have both."""
    rows = {row["idx"]: row for row in json.loads((Path(folder) / "testset-v1.json").read_text(encoding="utf-8"))}
    for name in VERDICTS:
        for verdict in json.loads((Path(folder) / name).read_text(encoding="utf-8")):
            rows[verdict["idx"]] |= verdict
    Path(out).write_text(json.dumps(list(rows.values()), ensure_ascii=False), encoding="utf-8")
    print(f"{len(rows)} rows in {out}")


if __name__ == "__main__":
    typer.run(main)
