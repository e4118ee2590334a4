"""Requests that begin alike follow one another: measured on a simulated block cache, with requests under way."""

import random
from collections import Counter
from functools import partial
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_server import request
from prefix_cache import BlockCache, least_blocks, least_tokens, long_case, rough_tokens
from steelyard.core.plugins import build
from steelyard.io.tempfiles import open_line_store
from steelyard.judging.asking import requests_of
from steelyard.judging.panel import JudgePanel, PanelJudge
from steelyard.judging.planning import plan_comparisons
from steelyard.judging.prefix_order import (
    PromptRequests,
    in_prefix_order,
    requests_by_prompt,
    store_comparisons,
    stored_comparisons,
)
from strategies import prompt

NUM_CASES = 90
CACHE = 40_000
"""Tokens of the simulated cache: a twentieth of all requests."""


class _Named:
    name = "m"

    def protocol(self):
        return {"chat": "none", "model": "m"}


def member(**settings):
    return PanelJudge("m", _Named(), build("judges", "pairwise", settings))


def mixed_cases(num_cases=60):
    """Cases of six criteria and languages in turn, as a merged file has them."""
    rng = random.Random(0)
    kinds = [("en", "code"), ("de", "code"), ("fr", "math"), ("zh", "safety"), ("en", "writing"), ("es", "knowledge")]
    for number in range(num_cases):
        language, category = kinds[number % len(kinds)]
        yield long_case(number, rng, language=language, category=(category,))


def requests_in_order(comparisons, judge, *, distance):
    order = in_prefix_order(requests_by_prompt(comparisons, partial(requests_of, judge)), distance=distance)
    return [*order.first, *order.rest]


def ids_in_order(prompts, *, distance):
    order = in_prefix_order(prompts, distance=distance)
    return [one.id for one in (*order.first, *order.rest)]


def tokens_of(one):
    return rough_tokens("".join(turn.content for turn in one.question.messages))


def planned(cases):
    return [plan_comparisons(one, "pairs", seed=0) for one in cases]


def stored(comparisons_of_cases, judge, folder):
    with open_line_store(folder) as store:
        for comparisons in comparisons_of_cases:
            store_comparisons(store, JudgePanel("m", "pairs", (judge,)), comparisons)
        store.index()
        yield from stored_comparisons(store)


def test_the_simulated_cache_by_hand():
    cache = BlockCache(64)
    assert cache.send(list(range(40))) == 0
    assert cache.send(list(range(40))) == 32  # two whole blocks
    assert cache.send([*range(20), *range(50, 70)]) == 16
    assert cache.computed == 40 + 8 + 24
    for start in (100, 200):
        cache.send(list(range(start, start + 32)))  # four other blocks fill the cache
    assert cache.send(list(range(40))) == 0
    slow = BlockCache(1024, under_way=2)
    assert [slow.send(list(range(16))) for _ in range(4)] == [0, 0, 0, 16]
    assert least_blocks([list(range(40)), [*range(20), *range(50, 70)]]) == 3 * 16 + 16
    assert least_tokens([list(range(40)), [*range(20), *range(50, 70)]]) == 40 + 20


@pytest.mark.parametrize("under_way", [0, 8])
@pytest.mark.parametrize("style", ["plain", "gemma"])
def test_a_server_computes_hardly_more_than_the_trie(tmp_path, under_way, style):
    judge = member(style=style)
    comparisons = stored(planned(mixed_cases(NUM_CASES)), judge, tmp_path)
    requests = [tokens_of(one) for one in requests_in_order(comparisons, judge, distance=under_way + 1)]
    assert len(requests) == NUM_CASES * 12
    cache = BlockCache(CACHE, under_way=under_way)
    for number, tokens in enumerate(requests):
        cache.send(tokens)
        if not number:
            cache.settle()  # the first reply is awaited
    assert sum(map(len, requests)) > 15 * CACHE
    assert cache.computed <= 1.025 * least_blocks(requests)
    # In the order of the file, and as a judge is asked that hashes what it shows into its instructions.
    in_file_order = BlockCache(CACHE, under_way=under_way)
    for comparison in (each for of_case in planned(mixed_cases(NUM_CASES)) for each in of_case):
        for number, shown in enumerate((comparison, comparison)):
            apart = msgspec.structs.replace(shown, mark=f"{hash(str(shown)) + number:x}")
            one = requests_of(judge, apart)[number]
            whole = "".join(turn.content for turn in one.question.messages)
            head, tail = whole.split("The lines marked", 1) if "The lines marked" in whole else whole.split("标有", 1)
            in_file_order.send(rough_tokens(f"{tail[:20]}{head}{tail}"))
    assert in_file_order.computed > 1.5 * cache.computed


def test_all_comparisons_are_read_back_with_equal_openings_together(tmp_path):
    judge, given_cases = member(), list(mixed_cases(18))
    comparisons = planned(given_cases)
    found = list(stored(comparisons, judge, tmp_path))
    assert Counter(str(one) for one in found) == Counter(str(one) for of_case in comparisons for one in of_case)
    kinds = [(one.prompt.language, one.prompt.category) for one in found]
    changes = sum(first != second for first, second in pairwise(kinds))
    assert changes == 5  # six kinds, each once


def test_a_prompt_without_comparisons_is_not_stored(tmp_path):
    assert list(stored([()], member(), tmp_path)) == []


@given(st.lists(st.lists(st.text("ab", max_size=100), max_size=8), max_size=5), st.integers(1, 9))
def test_each_request_comes_after_the_first_that_begins_like_it(prompts, distance):
    named = [[request(f"{n}-{k}", text) for k, text in enumerate(texts)] for n, texts in enumerate(prompts)]
    order = ids_in_order([PromptRequests("", own, prompt()) for own in named], distance=distance)
    assert sorted(order) == sorted(one.id for own in named for one in own)
    for own in named:
        for one in own:
            earlier = [other for other in own if order.index(other.id) < order.index(one.id)]
            longest = max((common(one, other) for other in own if other is not one), default=0)
            # Whatever beginning it shares with a later request, it has with an earlier one, or is the first with it.
            later = [other for other in own if other is not one and other not in earlier]
            assert (
                not earlier
                or max(common(one, other) for other in earlier) // 16
                >= min(longest // 16, max((common(one, other) for other in later), default=0) // 16)
                or all(common(one, other) // 16 < longest // 16 for other in earlier)
            )


@pytest.mark.parametrize(
    ("num_cases", "num_responses", "under_way"), [(24, 4, 32), (60, 4, 32), (60, 3, 32), (90, 2, 16)]
)
def test_short_runs_compute_hardly_more_than_the_trie(tmp_path, num_cases, num_responses, under_way):
    judge, rng = member(), random.Random(1)
    kinds = [("en", "code"), ("de", "math")]
    cases = [
        long_case(
            number, rng, num_responses=num_responses, language=kinds[number % 2][0], category=kinds[number % 2][1:]
        )
        for number in range(num_cases)
    ]
    comparisons = stored(planned(cases), judge, tmp_path)
    order = in_prefix_order(requests_by_prompt(comparisons, partial(requests_of, judge)), distance=under_way + 1)
    cache = BlockCache(400_000, under_way=under_way)
    first = [tokens_of(one) for one in order.first]
    for tokens in first:
        cache.send(tokens)
    cache.settle()  # the first replies are awaited
    rest = [tokens_of(one) for one in order.rest]
    for tokens in rest:
        cache.send(tokens)
    assert cache.computed <= 1.025 * least_blocks([*first, *rest])


def test_the_first_requests_have_each_opening_that_comes_soon():
    prompts = [
        PromptRequests(f"opening {n // 3}", [request(f"{n}{k}", f"{n}{k}") for k in range(2)], prompt())
        for n in range(12)
    ]
    order = in_prefix_order(prompts, distance=7)
    assert [one.id for one in order.first] == ["00", "30", "60"]  # of prompts 0 to 6
    assert sorted(one.id for one in order.rest) == sorted(
        one.id for prompt in prompts for one in prompt.requests if one not in order.first
    )


def test_requests_that_begin_alike_are_apart_while_others_can_come_in_between():
    question, answers = "q" * 100, ["a" * 100, "b" * 100, "c" * 100]
    prompts = [
        [request(f"{n}{x}{y}", f"{n}{question}{first}{second}")
         for x, first in enumerate(answers) for y, second in enumerate(answers) if x != y]
        for n in range(40)
    ]  # fmt: skip
    order = ids_in_order([PromptRequests("", own, prompt()) for own in prompts], distance=10)
    place = {name: number for number, name in enumerate(order)}
    for number in map(str, range(30)):
        opening = place[f"{number}01"]  # the first of its prompt
        assert all(place[f"{number}{rest}"] >= opening + 10 for rest in ("02", "10", "12", "20", "21"))
        assert place[f"{number}12"] >= place[f"{number}10"] + 10
        assert place[f"{number}21"] >= place[f"{number}20"] + 10
        # Few prompts are open at a time.
        assert max(place[f"{number}{rest}"] for rest in ("02", "12", "21")) < opening + 60


def common(one, other):
    first, second = (each.question.messages[0].content for each in (one, other))
    return next((at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]),
                min(len(first), len(second)))  # fmt: skip
