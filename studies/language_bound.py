"""English prompts that the rules of translation/screening.py call dependent on English, to be read by a person.

    python studies/language_bound.py own
    python studies/language_bound.py finds DATA
    python studies/language_bound.py others DATA llmbar|pandalm|oasst|xstest

DATA is a folder with the published files of LLMBar, PandaLM, OpenAssistant (English validation) and XSTest. `own`
counts the finds in the prompts of tests/translation; `finds` prints every find in the published prompts with its
excerpt; `others` prints the prompts without one, for recall. Different prompts are counted once.
"""

import csv
import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import typer

from steelyard.translation.screening import find_language_bound

APP = typer.Typer(help=__doc__, add_completion=False)
OWN = Path(__file__).parents[1] / "tests" / "translation" / "language_bound_prompts.toml"


def llmbar(data: Path) -> Iterator[str]:
    """The instructions of all five parts."""
    for path in sorted((data / "llmbar").rglob("dataset.json")):
        yield from (row["input"] for row in json.loads(path.read_text(encoding="utf-8")))


def pandalm(data: Path) -> Iterator[str]:
    """The instructions with their inputs."""
    rows = json.loads((data / "pandalm" / "data" / "testset-v1.json").read_text(encoding="utf-8"))
    yield from (f"{row['instruction']}\n{row['input']}".strip() for row in rows)


def oasst(data: Path) -> Iterator[str]:
    """Every turn of a person."""
    for line in (data / "oasst1_en_validation" / "en-validation.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["role"] == "prompter":
            yield row["text"]


def xstest(data: Path) -> Iterator[str]:
    """Safe and unsafe prompts."""
    with (data / "xstest" / "xstest_prompts.csv").open(encoding="utf-8", newline="") as file:
        yield from (row["prompt"] for row in csv.DictReader(file))


SETS: dict[str, Callable[[Path], Iterator[str]]] = {
    "llmbar": llmbar,
    "pandalm": pandalm,
    "oasst": oasst,
    "xstest": xstest,
}


@APP.command()
def own() -> None:
    """Print how many of our own prompts of each class are found, and how many of those in the same class."""
    for reason, prompts in tomllib.loads(OWN.read_text(encoding="utf-8")).items():
        finds = [find_language_bound(text, "en") for text in prompts]
        reasons = [find.reason for find in finds if find is not None]
        print(f"{reason}: {len(reasons)} of {len(prompts)}, {reasons.count(reason)} in the class")


@APP.command()
def finds(data: Path) -> None:
    """Print the finds in each set."""
    for name, read in SETS.items():
        texts = list(dict.fromkeys(read(data)))
        flagged = [find for text in texts if (find := find_language_bound(text, "en"))]
        print(f"{name}: {len(flagged)} of {len(texts)}")
        for find in flagged:
            print(f"  {find.reason}: {' '.join(find.excerpt.split())}")


@APP.command()
def others(data: Path, name: str) -> None:
    """Print the beginnings of the prompts of one set without a find."""
    for text in dict.fromkeys(SETS[name](data)):
        if find_language_bound(text, "en") is None:
            print(" ".join(text.split())[:200])


if __name__ == "__main__":
    APP()
