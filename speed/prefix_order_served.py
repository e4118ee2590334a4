"""Tokens that a real llama.cpp server reads from its cache for a judge's requests, in prefix order and in others.

A server of its own is started for every order, so that each begins with an empty cache; the counts are the server's
(``usage.prompt_tokens_details.cached_tokens``). A slot of llama.cpp holds the last prompt that it answered. ``python
speed/prefix_order_served.py CASES`` serves a tiny model with random weights, whose speed is no result; ``--model
FILE.gguf`` serves another. Beside the server's counts stands what is possible: the sum over requests of the longest
beginning shared with any earlier request, in the tokens of the server.
"""

import argparse
import json
import random
import sys
import tempfile
import urllib.request
from functools import partial
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from prefix_order import Unserved

from llama_server import ALIAS, llama_serving
from prefix_cache import least_tokens
from steelyard.core.plugins import build
from steelyard.io.cases import read_cases
from steelyard.io.ledger import open_ledger
from steelyard.judging.asking import ask_panel, requests_of
from steelyard.judging.panel import JudgePanel, PanelJudge
from steelyard.judging.planning import plan_comparisons
from steelyard.judging.prefix_order import in_prefix_order, requests_by_prompt
from tiny_gguf import CONTEXT, write_tiny_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--num-cases", type=int, default=100)
    parser.add_argument("--num-responses", type=int, default=4)
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 4])
    options = parser.parse_args()
    judge = PanelJudge("m", Unserved(), build("judges", "pairwise", {"style": "first_token"}))
    comparisons = [
        comparison
        for case in islice(read_cases(options.cases), options.num_cases)
        for comparison in plan_comparisons(
            case.__class__(prompt=case.prompt, responses=case.responses[: options.num_responses]), "pairs", seed=0
        )
    ]
    in_file_order = [request for each in comparisons for request in requests_of(judge, each)]
    orders = {"order of the file": in_file_order}
    orders["random order"] = random.Random(0).sample(in_file_order, len(in_file_order))
    for distance in (1, 4, 32):
        prompts = requests_by_prompt(comparisons, partial(requests_of, judge))
        order = in_prefix_order(prompts, distance=distance)
        orders[f"prefix order, distance {distance}"] = [*order.first, *order.rest]
    default = "one prompt a slot (the default)"
    orders[default] = in_file_order
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or write_tiny_model(Path(folder) / "tiny.gguf")
        possible = None
        for slots in options.slots:
            for name, requests in orders.items():
                with llama_serving(model, slots=slots, context=slots * CONTEXT) as url:
                    possible = possible or possible_tokens(url, in_file_order)
                    if name == default:
                        total, cached, failed = asked_by_panel(url, judge, comparisons)
                    else:
                        total, cached, failed = asked(url, requests, slots)
                most = total - possible
                print(
                    f"{slots} slots, {name}: {cached:,} of {total:,} tokens cached ({cached / total:.1%}), "
                    f"{cached / most:.3f} of the most possible ({most:,}); {failed} of {len(requests):,} failed",
                    flush=True,
                )


def asked(url, requests, slots):
    """Return the prompt tokens, those read from the cache, and the number of failed requests."""
    chat = build("chats", "openai_compatible", {"base_url": url, "model": ALIAS, "workers": slots})
    # The first reply is awaited, as those of `judge` are.
    replies = [*chat.ask(requests[:1]), *chat.ask(requests[1:])]
    return (
        sum(reply.prompt_tokens or 0 for reply in replies),
        sum(reply.cached_tokens or 0 for reply in replies),
        sum(reply.failure == "failed" for reply in replies),
    )


def asked_by_panel(url, judge, comparisons):
    """Return the same of the requests as `judge` sends them with its default settings, up to 64 at a time."""
    chat = build("chats", "openai_compatible", {"base_url": url, "model": ALIAS})
    panel = JudgePanel("m", "pairs", (PanelJudge("m", chat, judge.judge),))
    with open_ledger(None) as ledger:
        counts = ask_panel(panel, lambda: iter(comparisons), ledger, prime=True, max_truncated=1.0, quietly=True)["m"]
        replies = list(ledger.replies())
    return (
        sum(reply.prompt_tokens or 0 for reply in replies),
        sum(reply.cached_tokens or 0 for reply in replies),
        counts.num_failed,
    )


def possible_tokens(url, requests):
    """Return the least tokens that any cache computes: one at least for every request, and no beginning twice."""
    root = url.removesuffix("/v1")

    def posted(path, body):
        sent = urllib.request.Request(f"{root}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(sent, timeout=60) as response:
            return json.load(response)

    def tokens(request):
        messages = [{"role": turn.role, "content": turn.content} for turn in request.question.messages]
        prompt = posted("/apply-template", {"messages": messages})["prompt"]
        return posted("/tokenize", {"content": prompt, "parse_special": True})["tokens"]

    return least_tokens([tokens(request) for request in requests])


if __name__ == "__main__":
    main()
