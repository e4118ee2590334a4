"""Checks of translations for damage: items of a prompt and two responses of about 1,000 characters, in 23 languages.

Run: python speed/translation_damage.py [--data DATA]   (writes speed/results/translation_damage.json)

Texts are made of the sentences of XCOPA and HumanEval-XL where DATA has them, else of the sentences below. Limits of
lengths, identification of languages and checks are timed apart, on one core; hostile texts of 1 MB follow.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

from steelyard.core.numerics import generator
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.translation.bench_lengths import LengthLimits, length_limits
from steelyard.translation.damage import find_damage
from steelyard.translation.wording import target_languages

RESULTS = Path(__file__).parent / "results" / "translation_damage.json"
NUM_ITEMS, LENGTH = 100, 1000
SENTENCES = {
    "de": [
        ("The beam hangs from a cord.", "Der Balken hängt an einer Schnur."),
        ("It is 3 m long.", "Er ist 3 m lang."),
    ],
    "zh": [("The beam hangs from a cord.", "秤杆挂在绳子上。"), ("It is 3 m long.", "它长3米。")],
}
HOSTILE = (
    "a",
    ".",
    "! ",
    "1,",
    "12 345 ",
    "/* ",
    "<!--",
    "```\n",
    "`",
    "(",
    "不",
    "a b. ",
    "x = y\n",
    "1. a\n",
    "[[A]]",
)


def read_sentences(data):
    """The translated sentences of each language: (English, translation)."""
    if data is None:
        return SENTENCES
    sys.path.insert(0, str(Path(__file__).parents[1] / "studies" / "translation"))
    from corpora import sentences

    return {language: [texts[1:] for texts in each] for language, each in sentences(Path(data)).items()}


def make_items(language, sentences):
    """Items of texts of about 1,000 English characters, of sentences in random order."""
    rng = generator(0, language)

    def text():
        pairs, size = [], 0
        while size < LENGTH:
            pairs.append(sentences[rng.integers(len(sentences))])
            size += len(pairs[-1][0]) + 1
        return [" ".join(pair[side] for pair in pairs) for side in (0, 1)]

    def case(number, texts, side):
        message = Message(role="user", content=texts[0][side])
        return Case(
            prompt=Prompt(id=f"p{number}", messages=(message,), language=("en", language)[side]),
            responses=tuple(Response(id=f"r{place}", text=each[side]) for place, each in enumerate(texts[1:])),
        )

    items = []
    for number in range(NUM_ITEMS):
        texts = [text() for _ in range(3)]
        items.append((case(number, texts, 0), case(number, texts, 1)))
    return items


def main():
    """Time the three steps for each language, and one hostile text of 1 MB of each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the published files of XCOPA and HumanEval-XL")
    sentences = read_sentences(parser.parse_args().data)
    seconds, num_items = {"limits": 0.0, "languages": 0.0, "checks": 0.0}, 0
    target_languages([each[1] for each in make_items("zh", sentences["zh"])[:1]])  # loads the models
    for language, each in sentences.items():
        items = make_items(language, each)
        num_items += len(items)
        start = time.process_time()
        limits = length_limits(items)
        after_limits = time.process_time()
        languages = target_languages([target for _, target in items])
        after_languages = time.process_time()
        for (source, target), names in zip(items, languages, strict=True):
            find_damage(source, target, limits=limits, languages=names)
        seconds["limits"] += after_limits - start
        seconds["languages"] += after_languages - after_limits
        seconds["checks"] += time.process_time() - after_languages
    hostile = {}
    for unit in HOSTILE:
        text = unit * (1_000_000 // len(unit))
        cases = [
            Case(prompt=Prompt(id="p", messages=(Message(role="user", content=text),), language=name), responses=())
            for name in ("en", "de")
        ]
        start = time.process_time()
        find_damage(*cases, limits=LengthLimits(pairs={}), languages=None)
        hostile[unit] = round(time.process_time() - start, 2)
    total = sum(seconds.values())
    results = {
        "machine": platform.machine(), "load": os.getloadavg()[0], "languages": len(sentences), "items": num_items,
        "milliseconds_an_item": {step: round(1000 * value / num_items, 2) for step, value in seconds.items()},
        "items_a_second_and_core": round(num_items / total, 1),
        "minutes_of_3000_items_in_23_languages_on_2_cores": round(3000 * 23 * total / num_items / 2 / 60, 2),
        "hostile_seconds_a_megabyte": hostile,
    }  # fmt: skip
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
