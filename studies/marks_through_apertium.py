"""How often marks of several forms survive Apertium, exactly once and unchanged.

    python studies/marks_through_apertium.py DATA

DATA is a folder with the published files of XSTest, OpenAssistant (English) and HumanEval-XL. One to three marks stand
at random places between the words of each text: bare, in parentheses, in quotation marks or before a comma. Apertium
translates a text a line, without its marks of unknown words (`-u`). Tables are in Markdown, with Wilson intervals.
"""

import csv
import json
import random
import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import typer

from steelyard.translation.marks import BRACKETS, WORDS

HINDI = (
    "यह फ़ाइल खोलें और पहली पंक्ति पढ़ें।", "मैं कल दिल्ली जाऊँगा क्योंकि वहाँ मेरा घर है।", "इस फलन का मान शून्य से अधिक है।",
    "कृपया सूची में सभी नाम लिखें।", "भारत की राजधानी क्या है?", "लड़का पुस्तक पढ़ रहा है।", "यह उत्तर सही नहीं है।",
    "दो संख्याओं का योग बताइए।", "पानी सौ डिग्री पर उबलता है।", "मुझे एक कविता लिखकर दीजिए।",
)  # fmt: skip
FORMS: dict[str, Callable[[int], str]] = {
    "⟦1⟧": BRACKETS.mark, "XQ1Z": WORDS.mark, "XQ1": "XQ{}".format, "xq1z": "xq{}z".format,
    "XQBZ (letters)": lambda number: "XQ" + "".join("BCDFGHJLMN"[int(digit)] for digit in str(number)) + "Z",
    "PLACEHOLDER1": "PLACEHOLDER{}".format, "__PLACEHOLDER_1__": "__PLACEHOLDER_{}__".format, "[1]": "[{}]".format,
    "{1}": "{{{}}}".format, "<1>": "<{}>".format, "@1@": "@{}@".format, "code1": "code{}".format,
}  # fmt: skip
CONTEXTS = ("{}", "{}", "({})", '"{}"', "{},")
LONGEST = 300


def sentences(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Pairs of Apertium with texts in their first language."""
    with (data / "xstest" / "xstest_prompts.csv").open(encoding="utf-8") as file:
        english = [row["prompt"] for row in csv.DictReader(file)]
    rows = map(json.loads, (data / "oasst1_en_validation" / "en-validation.jsonl").open(encoding="utf-8"))
    english += [row["text"] for row in rows if len(row["text"]) < LONGEST and row["text"].isprintable()]
    yield "eng-spa", english
    yield "hin-urd", list(HINDI) * 8
    for pair, language, number in (("spa-eng", "Spanish", 80), ("rus-ukr", "Russian", 20)):
        path = data / "humaneval_xl_python" / "data" / "python" / f"{language}.jsonl"
        prompts = [json.loads(line)["prompt"] for line in path.open(encoding="utf-8")]
        quoted = [prompt.split('"""')[1].split(">>>")[0] for prompt in prompts if prompt.count('"""') > 1]
        yield pair, [" ".join(text.split()) for text in quoted][:number]


def translate(pair: str, texts: list[str]) -> list[str]:
    """The translations of texts, a line each; by processes of their own where the engine does not come to the end."""

    def one(text: str) -> str:
        command = ["apertium", "-u", pair]
        return subprocess.run(command, input=f"{text}\n", capture_output=True, text=True, check=False).stdout

    lines = one("\n".join(texts)).rstrip("\n").split("\n")
    if len(lines) == len(texts):
        return lines
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, texts))


def share(found: int, number: int) -> str:
    """A share with its interval and its numbers."""
    z = 1.96
    middle, spread = found + z * z / 2, z * (found * (number - found) / number + z * z / 4) ** 0.5
    low, high = (middle - spread) / (number + z * z), (middle + spread) / (number + z * z)
    return f"{found / number:.1%} [{low:.1%}, {high:.1%}] ({found:,} of {number:,})"


def main(data: Path, most_texts: int = 400) -> None:
    """Print the table."""
    print("| pair | mark | intact, exactly once | texts without a translation |\n|---|---|---|--:|")
    for pair, texts in sentences(data):
        drawn = random.Random(pair)
        chosen = drawn.sample(texts, min(most_texts, len(texts)))
        for name, mark in FORMS.items():
            drawn = random.Random(f"{pair} places")
            marked, marks = [], []
            for text in chosen:
                words = text.split()
                numbers = drawn.sample(range(1, 40), drawn.randint(1, 3))
                for number in numbers:
                    words.insert(drawn.randint(0, len(words)), drawn.choice(CONTEXTS).format(mark(number)))
                marked.append(" ".join(words))
                marks.append([mark(number) for number in numbers])
            translated = translate(pair, marked)
            answered = [(text, own) for text, own in zip(translated, marks, strict=True) if text.strip()]
            intact = sum(
                len(re.findall(rf"(?<!\d){re.escape(one)}(?!\d)", text)) == 1 for text, own in answered for one in own
            )
            number = sum(len(own) for _, own in answered)
            print(f"| {pair} | {name} | {share(intact, number)} | {len(marked) - len(answered)} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
