"""Cleaning from file to file: 100,000 responses of about 350 characters, in five languages, by one and two processes.

Run: python speed/clean.py   (writes speed/results/clean.json)
"""

import argparse
import json
import os
import platform
import resource
import tempfile
import time
from pathlib import Path

from steelyard.core.numerics import generator
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.io.cases import write_cases
from steelyard.stages.clean import clean

RESULTS = Path(__file__).parent / "results" / "clean.json"
NUM_PROMPTS, NUM_RESPONSES = 20_000, 5
SENTENCES = {
    "en": ("The beam hangs from a cord.", "A weight slides along it until both sides balance.", "It is an old scale."),
    "de": ("Der Balken hängt an einer Schnur.", "Ein Gewicht wird verschoben, bis er ruht.", "Die Waage ist alt."),
    "fr": ("La barre pend à une corde.", "Un poids glisse le long de celle-ci.", "C'est une balance ancienne."),
    "ru": ("Балка висит на шнуре.", "По ней двигают груз, пока она не уравновесится.", "Это старые весы."),
    "zh": ("杆秤是一种古老的衡器。", "它用提纽、秤杆和秤砣称量物品。", "秤砣沿着秤杆移动，直到两边平衡。"),
}


def write_responses(path):
    """Write the cases: sentences in random order, each with a number of its own, so that they do not repeat."""
    rng = generator(0, "responses")
    languages = list(SENTENCES)

    def text(language):
        own = SENTENCES[language]
        pieces = [f"{own[rng.integers(len(own))]} {rng.integers(10**9)}." for _ in range(10)]
        return " ".join(pieces)

    def case(number):
        language = languages[number % len(languages)]
        question = Message(role="user", content=SENTENCES[language][0])
        return Case(
            prompt=Prompt(id=f"p{number}", messages=(question,), language=language, category=(str(number % 4),)),
            responses=tuple(Response(id=str(place), text=text(language)) for place in range(NUM_RESPONSES)),
        )

    write_cases(path, (case(number) for number in range(NUM_PROMPTS)))


def cpu_seconds():
    """CPU time of this process and of those that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main():
    """Clean the file by one and by two processes, and write the seconds and the CPU time."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    results = {"responses": NUM_PROMPTS * NUM_RESPONSES, "machine": platform.machine(), "cores": os.cpu_count()}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cases.jsonl"
        write_responses(file)
        results["megabytes"] = round(file.stat().st_size / 1e6, 1)
        results["load"] = os.getloadavg()[0]
        for workers in (1, 2):
            start, cpu = time.perf_counter(), cpu_seconds()
            run = clean(file, Path(folder) / f"by-{workers}", workers=workers)
            results[f"seconds_{workers}"] = round(time.perf_counter() - start, 1)
            results[f"cpu_seconds_{workers}"] = round(cpu_seconds() - cpu, 1)
            results["kept"] = run.counts.num_used
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
