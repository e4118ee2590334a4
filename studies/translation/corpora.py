"""Parallel texts as preference cases: XCOPA, HumanEval-XL, WMT and MultiJail, for studies of translations.

The English of XCOPA is a machine translation of each language's text, since the original is not among the files. The
composed cases have the paragraphs, options, lists, numbers and code of real benches, made of the same translated
sentences on both sides.
"""

import csv
import io
import json
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from steelyard.core.types import Case, Message, Prompt, Response

XCOPA = ("et", "ht", "id", "it", "sw", "ta", "th", "tr", "vi", "zh")
HUMANEVAL = {
    "af": "Afrikaans", "ar": "Arabic", "bg": "Bulgarian", "zh": "Chinese", "nl": "Dutch", "et": "Estonian",
    "fi": "Finnish", "fr": "French", "de": "German", "el": "Greek", "he": "Hebrew", "hu": "Hungarian",
    "id": "Indonesian", "it": "Italian", "ms": "Malay", "fa": "Persian", "pt": "Portuguese", "ru": "Russian",
    "es": "Spanish", "tl": "Tagalog", "tr": "Turkish", "vi": "Vietnamese",
}  # fmt: skip
MULTIJAIL = ("zh", "it", "vi", "ar", "ko", "th", "bn", "sw", "jv")
_SERIOUS = ("Major", "Critical")


class Parallel(NamedTuple):
    """A case in its source language and its translation."""

    source: Case
    target: Case


def parallel(
    item: str, languages: tuple[str, str], prompts: tuple[str, str], responses: list[tuple[str, str]]
) -> Parallel:
    """A pair of cases from pairs of texts (source, target)."""
    return Parallel(
        *(
            Case(
                prompt=Prompt(
                    id=item, messages=(Message(role="user", content=prompts[side]),), language=languages[side]
                ),
                responses=tuple(
                    Response(id=f"r{place}", text=texts[side]) for place, texts in enumerate(responses, start=1)
                ),
            )
            for side in (0, 1)
        )
    )


def read_lines(path: Path) -> list[dict]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def xcopa(data: Path) -> Iterator[tuple[str, list[Parallel]]]:
    """XCOPA: a premise and two choices, by language."""
    for language in XCOPA:
        english, native = (
            read_lines(data / "xcopa" / folder / language / f"test.{language}.jsonl") for folder in ("data-gmt", "data")
        )
        yield (
            language,
            [
                parallel(
                    f"xcopa-{row['idx']}",
                    ("en", language),
                    (source["premise"], row["premise"]),
                    [(source[key], row[key]) for key in ("choice1", "choice2")],
                )
                for source, row in zip(english, native, strict=True)
            ],
        )


def humaneval(data: Path) -> Iterator[tuple[str, list[Parallel]]]:
    """HumanEval-XL: a docstring in a signature, with the right and the wrong program as responses."""
    folder = data / "humaneval_xl_python" / "data" / "python"
    pack = next((data / "humanevalpack").glob("evaluation/create/humaneval-x/data/python/data/*.jsonl"), None)
    buggy = {row["entry_point"]: row["buggy_solution"] for row in read_lines(pack)} if pack else {}
    english = {row["task_id"]: row for row in read_lines(folder / "English.jsonl")}
    for language, name in HUMANEVAL.items():
        items = []
        for row in read_lines(folder / f"{name}.jsonl"):
            source = english[row["task_id"]]
            right = source["canonical_solution"]
            wrong = buggy.get(source["entry_point"], right.replace("return", "return not"))
            items.append(
                parallel(
                    row["task_id"],
                    ("en", language),
                    (source["prompt"], row["prompt"]),
                    [(right, right), (wrong, wrong)],
                )
            )
        yield language, items


def sentence(text: str) -> str:
    """The text on one line, with a final mark."""
    line = " ".join(text.split())
    return line if line.endswith((".", "。", "!", "?", '"', "”")) else f"{line}."


def sentences(data: Path) -> dict[str, list[tuple[str, str, str]]]:
    """Translated texts by language: identity, English, translation; of XCOPA and of HumanEval-XL's descriptions."""
    texts = defaultdict[str, list[tuple[str, str, str]]](list)
    folder = data / "humaneval_xl_python" / "data" / "python"
    english = {row["task_id"]: row["description"] for row in read_lines(folder / "English.jsonl")}
    # The translations have no examples of calls: the English loses them, descriptions with other ones are left out.
    plain = {task: text.partition(">>>")[0] for task, text in english.items()}
    plain = {task: text for task, text in plain.items() if not re.search(r"xample|->|=|assert|\[|\(\d", text)}
    for language, name in HUMANEVAL.items():
        texts[language] += [
            (row["task_id"], sentence(plain[row["task_id"]]), sentence(row["description"]))
            for row in read_lines(folder / f"{name}.jsonl")
            if row["task_id"] in plain
        ]
    for language, items in xcopa(data):
        for source, target in items:
            texts[language].append(
                (source.prompt.id, source.prompt.messages[0].content, target.prompt.messages[0].content)
            )
            for left, right in zip(source.responses, target.responses, strict=True):
                texts[language].append((f"{source.prompt.id}-{left.id}", left.text or "", right.text or ""))
    return texts


def composed(data: Path, number: int) -> Iterator[tuple[str, list[Parallel]]]:
    """Cases of the form of a bench: paragraphs, options, a numbered list and a block of code, with figures."""
    program = (
        "```python\ndef mean(values):\n    # {comment}\n    total = sum(values)\n    return total / len(values)\n```"
    )
    for language, texts in sentences(data).items():
        items = []
        for place in range(min(number, len(texts))):
            rows = [texts[(place * 7 + step * 13) % len(texts)] for step in range(9)]

            def side(index: int, rows: list[tuple[str, str, str]] = rows, place: int = place) -> tuple[str, str, str]:
                text = [row[index] for row in rows]
                prompt = f"{text[0]} {text[1]}\n\nA) {text[2]}\nB) {text[3]}"
                first = f"{text[4]} {text[5]} {text[6]} ({1980 + place % 40}; {37 + place} %)\n\n{text[7]}"
                code = program.format(comment=text[0].split(".")[0])
                second = f"1. {text[5]}\n2. {text[6]}\n3. {text[8]}\n\n{code}"
                return prompt, first, second

            english, native = side(1), side(2)
            items.append(
                parallel(
                    f"composed-{place}",
                    ("en", language),
                    (english[0], native[0]),
                    [(english[1], native[1]), (english[2], native[2])],
                )
            )
        yield language, items


def wmt(data: Path) -> Iterator[tuple[str, list[Parallel]]]:
    """WMT 2023 segments, whole: translations in which no rater marked a major error, three segments a case."""
    for pair, languages in (("ende", ("en", "de")), ("zhen", ("zh", "en"))):
        name = f"sxs_mqm_generalMT2023_{pair}.3ratingsPerSegment.tsv"
        with tarfile.open(data / "wmt_mqm" / "generalMT2023" / pair / f"{name}.tar.gz") as archive:
            member = archive.extractfile(next(each for each in archive.getmembers() if each.name.endswith(".tsv")))
            assert member is not None
            rows = list(
                csv.DictReader(io.TextIOWrapper(member, encoding="utf-8"), delimiter="\t", quoting=csv.QUOTE_NONE)
            )
        bad = {(row["system"], row["doc"], row["globalSegId"]) for row in rows if row["severity"] in _SERIOUS}
        texts = dict[tuple[str, str, str], tuple[str, str]]()
        for row in rows:
            key = (row["system"], row["doc"], row["globalSegId"])
            if key not in bad and row["target"] and "HOTW" not in row["severity"]:
                source, target = (
                    row[side].replace("<v>", "").replace("</v>", "").replace('""', '"').strip('"')
                    for side in ("source", "target")
                )
                texts[key] = (source, target)
        by_system = defaultdict[str, list[tuple[str, str]]](list)
        for (system, _, _), each in sorted(texts.items()):
            by_system[system].append(each)
        items = [
            parallel(f"{pair}-{system}-{place}", languages, found[place], found[place + 1 : place + 3])
            for system, found in by_system.items()
            for place in range(0, len(found) - 2, 3)
        ]
        yield languages[1] if languages[0] == "en" else "zh>en", items


def multijail(data: Path) -> Iterator[tuple[str, list[Parallel]]]:
    """MultiJail: prompts by people in nine languages, without responses."""
    with (data / "multijail" / "data" / "MultiJail.csv").open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    for language in MULTIJAIL:
        yield language, [parallel(row["id"], ("en", language), (row["en"], row[language]), []) for row in rows]
