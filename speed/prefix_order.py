"""Tokens that a server with a prefix cache computes for a judge's requests: in prefix order, and in other orders.

A block cache is simulated (blocks of 16 tokens, the least recently used leaves first, requests under way are cached
when they end). ``python speed/prefix_order.py CASES --tokenizer FOLDER`` counts with a tokenizer, without one pieces of
up to four letters.
"""

import argparse
import random
import sys
import tempfile
from functools import partial
from itertools import chain, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from prefix_cache import BlockCache, least_blocks, least_tokens, rough_tokens
from steelyard.core.plugins import build
from steelyard.io.cases import read_cases
from steelyard.io.tempfiles import open_line_store
from steelyard.judging.asking import requests_of
from steelyard.judging.panel import JudgePanel, PanelJudge
from steelyard.judging.planning import plan_comparisons
from steelyard.judging.prefix_order import (
    in_prefix_order,
    requests_by_prompt,
    store_comparisons,
    stored_comparisons,
)


class Unserved:
    """A chat that is never sent anything."""

    name = "m"

    def protocol(self):
        return {"chat": "none", "model": "m"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--tokenizer")
    parser.add_argument("--num-cases", type=int, default=200)
    parser.add_argument("--num-responses", type=int, default=4)
    parser.add_argument("--under-way", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--cache", type=int, nargs="+", default=[100_000, 400_000])
    options = parser.parse_args()
    tokens_of = counter(options.tokenizer)
    judge = PanelJudge("m", Unserved(), build("judges", "pairwise", {}))
    cases = [
        case.__class__(prompt=case.prompt, responses=case.responses[: options.num_responses])
        for case in islice(read_cases(options.cases), options.num_cases)
    ]
    planned = [plan_comparisons(case, "pairs", seed=0) for case in cases]
    with tempfile.TemporaryDirectory() as folder, open_line_store(Path(folder)) as store:
        for comparisons in planned:
            store_comparisons(store, JudgePanel("m", "pairs", (judge,)), comparisons)
        store.index()
        stored = list(stored_comparisons(store))
    in_file_order = [request for of_case in planned for each in of_case for request in requests_of(judge, each)]
    shuffled = random.Random(0).sample(in_file_order, len(in_file_order))
    token_lists = {request.id: tokens_of(request) for request in in_file_order}
    blocks, least = least_blocks(token_lists.values()), least_tokens(list(token_lists.values()))
    total = sum(map(len, token_lists.values()))
    print(f"{len(token_lists):,} requests, {total:,} tokens; least {least:,}, in blocks of 16 {blocks:,}")
    for under_way in options.under_way:
        order = in_prefix_order(requests_by_prompt(stored, partial(requests_of, judge)), distance=under_way + 1)
        # As before prefix order: the instructions held a hash of what was shown, so that requests shared nothing.
        apart = [[number, *token_lists[request.id]] for number, request in enumerate(in_file_order)]
        orders = {
            "prefix order": [token_lists[request.id] for request in chain(order.first, order.rest)],
            "order of the file": [token_lists[request.id] for request in in_file_order],
            "order of the file, a hash in front": apart,
            "random order": [token_lists[request.id] for request in shuffled],
        }
        for size in options.cache:
            for name, requests in orders.items():
                cache = BlockCache(size, under_way=under_way)
                for number, tokens in enumerate(requests, 1):
                    cache.send(tokens)
                    if number == len(order.first):
                        cache.settle()  # these replies are awaited
                computed = f"{cache.computed:,} computed, {cache.computed / blocks:.4f} of the least in blocks"
                print(
                    f"{under_way} under way, cache {size:,}, {name}: {computed}, {cache.computed / least:.3f} in tokens"
                )


def counter(folder):
    """Return a function from a request to its tokens."""
    if folder is None:
        return lambda request: rough_tokens("".join(turn.content for turn in request.question.messages))
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)

    def tokens(request):
        texts = [turn.content for turn in request.question.messages]
        return [token for row in tokenizer(texts, add_special_tokens=False).input_ids for token in row]

    return tokens


if __name__ == "__main__":
    main()
