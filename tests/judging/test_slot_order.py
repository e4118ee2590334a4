"""A server of slots gets one prompt a slot: measured on simulated slots that keep their last prompt and no other."""

import random
from functools import partial
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from chat_server import request
from prefix_cache import least_tokens, long_case, rough_tokens
from steelyard.core.comparison import Reply
from steelyard.core.plugins import build
from steelyard.io.ledger import open_ledger
from steelyard.judging.asking import ask_panel, requests_of
from steelyard.judging.panel import JudgePanel, PanelJudge
from steelyard.judging.planning import plan_comparisons
from steelyard.judging.prefix_order import PromptRequests, SlotOrder, in_prefix_order, requests_by_prompt
from strategies import prompt


def shared(first, second):
    return next((place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), len(first))


class Slots:
    """A server that answers in any order, and has in each slot the prompt it answered last; it picks the best slot."""

    name = "m"

    def __init__(self, number, rng):
        self.number, self.rng = number, rng
        self.cached = [()] * number
        self.num_computed = 0

    def protocol(self):
        return {"chat": "slots", "model": "m"}

    def num_slots(self):
        return self.number

    def ask(self, requests):
        requests, running = iter(requests), {}
        while True:
            free = [slot for slot in range(self.number) if slot not in running]
            while free and (one := next(requests, None)) is not None:
                tokens = rough_tokens("".join(turn.content for turn in one.question.messages))
                slot = max(free, key=lambda slot: shared(self.cached[slot], tokens))
                self.num_computed += len(tokens) - shared(self.cached[slot], tokens)
                self.cached[slot], running[slot] = tokens, one
                free.remove(slot)
            if not running:
                return
            yield Reply(request=running.pop(self.rng.choice(sorted(running))).id, text="[[A]]")


def comparisons(number=24):
    rng = random.Random(3)
    cases = [long_case(place, rng, language="en") for place in range(number)]
    return [pair for case in cases for pair in plan_comparisons(case, "pairs", seed=0)]


def computed(pairs, slots, **settings):
    """Ask a panel of one judge. Returns the tokens that the slots computed, by the fewest that any cache needs."""
    server = Slots(slots, random.Random(1))
    judge = PanelJudge("m", server, build("judges", "pairwise", {"style": "plain"}))
    with open_ledger(None) as ledger:
        counts = ask_panel(JudgePanel("m", "pairs", (judge,)), lambda: iter(pairs), ledger, quietly=True, **settings)
        assert counts["m"] == (2 * len(pairs), 0, 0)
        assert len(ledger) == 2 * len(pairs)
    texts = [
        "".join(turn.content for turn in one.question.messages) for pair in pairs for one in requests_of(judge, pair)
    ]
    return server.num_computed / least_tokens(list(map(rough_tokens, texts)))


def test_slots_compute_little_twice_and_less_than_in_any_other_order():
    pairs = comparisons()
    for slots in (1, 4):
        by_slots = computed(pairs, slots)
        assert by_slots < 1.06, slots
        assert by_slots < min(computed(pairs, slots, prefix_distance=distance) for distance in (1, slots, 32)) + 1e-9


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 9), st.randoms(use_true_random=False))
def test_every_request_is_sent_once_whatever_is_answered_when(sizes, most, rng):
    prompts = [
        PromptRequests("", [request(f"{number}-{place}", f"{number} {place}") for place in range(size)], prompt())
        for number, size in enumerate(sizes)
    ]
    order = SlotOrder(prompts)
    running, sent = [], []
    for one in order:
        sent.append(one.id)
        running.append(one.id)
        while running and (len(running) >= most or rng.random() < 0.3):
            order.done(running.pop(rng.randrange(len(running))))
    assert sorted(sent) == sorted(one.id for prompt in prompts for one in prompt.requests)


def test_one_slot_gets_the_order_of_the_texts_prompt_by_prompt():
    pairs = comparisons(4)
    judge = PanelJudge("m", Slots(1, random.Random(0)), build("judges", "pairwise", {"style": "plain"}))
    prompts = list(requests_by_prompt(pairs, partial(requests_of, judge)))
    order, sent = SlotOrder(prompts), []
    for one in order:
        sent.append(one)
        order.done(one.id)
    texts = [one.question.messages[-1].content for one in sent]
    assert [len(prompt.requests) for prompt in prompts] == [12] * 4
    for place in range(4):
        assert texts[12 * place : 12 * place + 12] == sorted(texts[12 * place : 12 * place + 12])
    assert {one.id for one in sent} == {one.id for one in in_prefix_order(prompts, distance=1).rest} | {sent[0].id}


def test_the_last_prompt_is_shared_by_free_slots():
    long = PromptRequests("", [request(str(place), f"{place:02}") for place in range(16)], prompt())
    order = SlotOrder([long])
    sending = iter(order)
    first = [next(sending).id for _ in range(4)]
    # Halves of what was left: 0, the later half of the others, then half of the largest rest.
    assert len(set(first)) == 4
    assert max(b - a for a, b in pairwise(sorted(map(int, first)))) <= 8
