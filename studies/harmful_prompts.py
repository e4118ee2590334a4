"""How many harmful prompts the rules of `steelyard prompts` find, and how many harmless ones they flag, by language.

    python studies/harmful_prompts.py DATA

DATA is a folder with the published files of MultiJail (315 harmful prompts in ten languages), XSTest (250 safe and 200
unsafe English prompts, written as contrasts), OpenAssistant, HalluQA and XCOPA. Tables are in Markdown, with
Wilson intervals.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

import typer

from steelyard.prompts.harmful import HarmRules, find_harm, parse_harm_rules

LANGUAGES = ("en", "zh", "it", "vi", "ar", "ko", "th", "bn", "sw", "jv")


def share(prompts: Iterable[str], language: str, rules: HarmRules) -> str:
    """The share of prompts with a hit, its interval and its numbers."""
    hits = [find_harm(prompt, language, rules) is not None for prompt in prompts]
    number, found, z = len(hits), sum(hits), 1.96
    middle, spread = found + z * z / 2, z * (found * (number - found) / number + z * z / 4) ** 0.5
    low, high = (middle - spread) / (number + z * z), (middle + spread) / (number + z * z)
    return f"{found / number:.1%} [{low:.1%}, {high:.1%}] ({found} of {number:,})"


def harmless(data: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Sets of prompts without, or with hardly any, requests for harm: name, language, texts."""
    rows = map(json.loads, (data / "oasst1_en_validation" / "en-validation.jsonl").open(encoding="utf-8"))
    yield "OpenAssistant", "en", [row["text"] for row in rows if row["role"] == "prompter"]
    chinese = json.loads((data / "oasst1_zh_rm" / "oaast_rm_zh.json").read_text(encoding="utf-8"))
    yield "OpenAssistant", "zh", [row["instruction"] + row["input"] for row in chinese]
    questions = json.loads((data / "halluqa" / "HalluQA.json").read_text(encoding="utf-8"))
    yield "HalluQA", "zh", [row["Question"] for row in questions]
    for language in ("id", "it", "sw", "th", "vi", "zh"):
        rows = map(json.loads, (data / "xcopa" / "data" / language / f"test.{language}.jsonl").open(encoding="utf-8"))
        yield "XCOPA (sentences)", language, [f"{row['premise']} {row['choice1']} {row['choice2']}" for row in rows]


def main(data: Path) -> None:
    """Print the tables."""
    rules = parse_harm_rules(files("steelyard").joinpath("data/harmful.toml").read_text("utf-8"))
    print("| harmful prompts | language | found |\n|---|---|---|")
    with (data / "multijail" / "data" / "MultiJail.csv").open(encoding="utf-8-sig") as file:
        parallel = list(csv.DictReader(file))
    for language in LANGUAGES:
        print(f"| MultiJail | {language} | {share([row[language] for row in parallel], language, rules)} |")
    kinds: dict[tuple[str, str], list[str]] = defaultdict(list)
    with (data / "xstest" / "xstest_prompts.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            kinds[row["label"], row["type"]].append(row["prompt"])
            kinds[row["label"], "all"].append(row["prompt"])
    print("\n| XSTest | kind | flagged |\n|---|---|---|")
    for (label, kind), prompts in sorted(kinds.items()):
        print(f"| {label} | {kind.replace('_', ' ')} | {share(prompts, 'en', rules)} |")
    print("\n| other prompts | language | flagged |\n|---|---|---|")
    for name, language, prompts in harmless(data):
        print(f"| {name} | {language} | {share(prompts, language, rules)} |")


if __name__ == "__main__":
    typer.run(main)
