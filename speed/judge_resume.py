"""Seconds from the start of `judge` to its first request where most replies are stored, and memory of whole runs.

    python speed/judge_resume.py [--prompts 11112] [--answered 0.9]
    python speed/judge_resume.py --whole 100000 300000 1000000

Each prompt has ten responses, so that it has 45 pairs in two orders: 90 requests. The ledger has the replies of the
first prompts in the order in which `judge` asks; the first request ends the run. ``--whole`` runs through so many pairs
in one order each, in a process of its own, with a chat that answers at once: from the cases to their verdicts. The peak
of memory is that of the whole process. Each figure has its CPU seconds and the machine's load.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path

from steelyard.core.comparison import Reply
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.io.cases import write_cases
from steelyard.io.ledger import Ledger, open_ledger
from steelyard.judging.asking import requests_of
from steelyard.judging.panel import build_panel, choose_panel
from steelyard.judging.planning import plan_comparisons
from steelyard.judging.prefix_order import in_prefix_order, requests_by_prompt
from steelyard.stages.judge import Config, judge

CHAT = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}


class FirstRequest(Exception):  # noqa: N818 - ends the run that is measured
    """The first request has come."""


class Counting:
    """A chat that ends the run at its first request."""

    name = "m"

    def __init__(self) -> None:
        self.asked_at = 0.0

    def ask(self, requests):
        for _ in requests:
            self.asked_at = time.perf_counter()
            raise FirstRequest
        yield from ()

    def protocol(self):
        return {"chat": "counting", "model": "m"}


class Instant(Counting):
    """A chat that answers every request at once."""

    def ask(self, requests):
        for request in requests:
            yield Reply(
                request=request.id, text="The first is better. [[A]]", prompt_tokens=400, reply_tokens=9, model="m"
            )


def made_up_case(number: int) -> Case:
    text = f"Question {number}: " + "why is the sky blue, and how would you explain that to a child? " * 3
    responses = (
        Response(id=f"r{place}", text=f"Answer {place} to {number}. " + "Because. " * 30) for place in range(10)
    )
    prompt = Prompt(id=f"p{number}", messages=(Message(role="user", content=text),), language="en")
    return Case(prompt=prompt, responses=tuple(responses))


def fill(ledger: Ledger, num_prompts: int) -> int:
    """Store a reply to every request about the first prompts. Returns their number."""
    panel = build_panel(choose_panel("pairs", chat={}, judge={}, built=Counting()))
    comparisons = (
        pair for number in range(num_prompts) for pair in plan_comparisons(made_up_case(number), "pairs", seed=0)
    )
    prompts = requests_by_prompt(comparisons, partial(requests_of, panel.members[0]))
    order = in_prefix_order(prompts, distance=32)
    for request in chain(order.first, order.rest):
        ledger.add(
            Reply(request=request.id, text="The first is better. [[A]]", prompt_tokens=400, reply_tokens=9, model="m")
        )
    return len(ledger)


def first_request(folder: Path) -> float:
    """Start the run, or go on with it, until the first request. Returns the seconds that took."""
    chat, started = Counting(), time.perf_counter()
    with suppress(FirstRequest):
        judge(folder / "cases.jsonl", folder / "out", Config(), chat=chat)
    return chat.asked_at - started


def whole_run(num_pairs: int) -> dict[str, float]:
    """Judge so many pairs in one order each, from the cases to their verdicts."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_cases(folder / "cases.jsonl", map(made_up_case, range(-(-num_pairs // 45))))
        before, started, cpu = peak_memory(), time.perf_counter(), time.process_time()
        config = Config(judge={"orders": "one"}, num_resamples=100)
        run = judge(folder / "cases.jsonl", folder / "out", config, chat=Instant())
        return {
            "pairs": run.summary.judges["m"].num_given,
            "peak MiB": peak_memory(),
            "MiB before": before,
            "seconds": round(time.perf_counter() - started, 1),
            "CPU seconds": round(time.process_time() - cpu, 1),
            "load": round(os.getloadavg()[0], 1),
        }


def peak_memory() -> int:
    """Return the largest resident memory of this process so far, in MiB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    """Measure and print lines of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=11_112)
    parser.add_argument("--answered", type=float, default=0.9)
    parser.add_argument("--whole", type=int, nargs="+", default=[])
    chosen = parser.parse_args()
    if len(chosen.whole) == 1:
        sys.stdout.write(json.dumps(whole_run(chosen.whole[0])) + "\n")
        return
    for num_pairs in chosen.whole:
        subprocess.run([sys.executable, __file__, "--whole", str(num_pairs)], check=True)
    if chosen.whole:
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_cases(folder / "cases.jsonl", map(made_up_case, range(chosen.prompts)))
        first_request(folder)
        with open_ledger(folder / "out" / "replies.sqlite") as ledger, ledger.together():
            num_replies = fill(ledger, int(chosen.answered * chosen.prompts))
        before = peak_memory()
        cpu = time.process_time()
        seconds = first_request(folder)
        measured = {"requests": chosen.prompts * 90, "replies": num_replies}
        measured["seconds to the first request"] = round(seconds, 2)
        measured["CPU seconds"] = round(time.process_time() - cpu, 2)
        measured["peak MiB"] = peak_memory()
        measured["MiB before"] = before
        measured["load"] = round(os.getloadavg()[0], 1)
        sys.stdout.write(json.dumps(measured) + "\n")


if __name__ == "__main__":
    main()
