"""Checks of translations for damage: items of a prompt and two responses of about 1,000 characters, in 23 languages.

Run: python speed/translation_damage.py [--data DATA]   (writes speed/results/translation_damage.json)

Texts are made of the sentences of XCOPA and HumanEval-XL where DATA has them, else of the sentences below. Limits of
lengths, identification of languages and checks are timed apart, on one core; hostile texts of 1 MB follow. With DATA
the whole verb `translate --check-only` is timed, too, on a file of 300 items that are the same in 22 languages:
processor seconds of all its processes.
"""

import argparse
import json
import os
import platform
import resource
import sys
import tempfile
import time
from pathlib import Path

from steelyard.core.numerics import generator
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.io.cases import encode_case
from steelyard.stages.translate import Config, translate
from steelyard.translation.bench_lengths import LengthLimits, length_limits
from steelyard.translation.damage import find_damage
from steelyard.translation.wording import target_languages

RESULTS = Path(__file__).parent / "results" / "translation_damage.json"
NUM_ITEMS, LENGTH = 100, 1000
NUM_OF_BENCH, NUM_SHARED = 300, 25
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


def bench_cases(sentences):
    """The cases of a bench by language: the same random sentences in every language that has them, English first."""
    english = [pair[0] for pair in sentences["de"][:NUM_SHARED]]
    shared = [each[:NUM_SHARED] for each in sentences.values()]
    names = [name for name, pairs in zip(sentences, shared, strict=True) if [pair[0] for pair in pairs] == english]
    texts = {"en": english} | {name: [pair[1] for pair in sentences[name][:NUM_SHARED]] for name in names}
    rng = generator(0, "bench")
    chosen = [[rng.permutation(len(english))[:10].tolist() for _ in range(3)] for _ in range(NUM_OF_BENCH)]
    for language, known in texts.items():
        for number, places in enumerate(chosen):
            prompt, *answers = (" ".join(known[place] for place in each) for each in places)
            message = Message(role="user", content=prompt)
            yield Case(
                prompt=Prompt(id=f"p{number}", messages=(message,), language=language),
                responses=tuple(Response(id=f"r{place}", text=each) for place, each in enumerate(answers)),
            )


def time_verb(sentences):
    """Milliseconds of all processes an item, and seconds that pass, of the whole verb."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Path(folder) / "bench.jsonl"
        cases = list(bench_cases(sentences))
        bench.write_bytes(b"".join(map(encode_case, cases)))
        both = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
        before = [resource.getrusage(each) for each in both]
        start = time.monotonic()
        translate(bench, Path(folder) / "checked", Config(check_only=True))
        wall = time.monotonic() - start
        after = [resource.getrusage(each) for each in both]
    used = sum(
        last.ru_utime + last.ru_stime - first.ru_utime - first.ru_stime
        for first, last in zip(before, after, strict=True)
    )
    num_items = len(cases) - NUM_OF_BENCH
    return {
        "items": num_items,
        "milliseconds_an_item": round(1000 * used / num_items, 2),
        "seconds": round(wall, 1),
        "cores_used": round(used / wall, 2),
    }


def main():
    """Time the three steps for each language, and one hostile text of 1 MB of each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the published files of XCOPA and HumanEval-XL")
    data = parser.parse_args().data
    sentences = read_sentences(data)
    verb = time_verb(sentences) if data else None
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
        "whole_verb": verb,
        "hostile_seconds_a_megabyte": hostile,
    }  # fmt: skip
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
