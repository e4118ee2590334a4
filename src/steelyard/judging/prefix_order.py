"""The order in which requests are sent: those that begin alike follow one another, and reuse what a server has cached.

A server that caches prefixes (vLLM, SGLang, llama.cpp, hosted models) computes a shared beginning once, if a request
with it came shortly before. A judge's request begins with instructions and criteria, then the prompt, the first answer
and the second: the requests form a trie, and the prefill of its nodes is the least that any order needs. A slot of
llama.cpp has cached the last prompt that it answered and no other: there each slot gets a prompt of its own.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby, pairwise
from typing import NamedTuple

import msgspec

from steelyard.core.comparison import Comparison, Request
from steelyard.core.types import Message, Prompt, Record, Response
from steelyard.io.tempfiles import LineStore
from steelyard.judging.panel import JudgePanel

_LEAST_SHARED = 16
"""Characters by which a shared beginning must be longer to count: a block of a cache, where each is a token."""
USUAL_DISTANCE = 32
"""The distance of requests that begin alike where no other is set: a server may answer as many at once."""
_SPARE_LEVELS = 2
"""Levels of waiting beyond a request's own for which requests are kept back at the end of a run."""


class StoredCase(Record, frozen=True, kw_only=True):
    """A prompt with its comparisons, on disk: each is a list of places in ``responses``."""

    prompt: Prompt
    responses: tuple[Response, ...]
    comparisons: tuple[tuple[int, ...], ...]
    mark: str


_decoder = msgspec.json.Decoder(StoredCase)


def store_comparisons(store: LineStore, panel: JudgePanel, comparisons: Sequence[Comparison]) -> None:
    """Store the comparisons of one prompt under the beginning that all its requests share with those of other prompts.

    That is the text before the mark, with the criteria of its category and its language.
    """
    if not comparisons:
        return
    first = comparisons[0]
    openings = [_opening(member.judge.questions(first)[0].messages, first.mark) for member in panel.members]
    responses = {response.id: response for comparison in comparisons for response in comparison.responses}
    place = {name: number for number, name in enumerate(responses)}
    stored = StoredCase(
        prompt=first.prompt,
        responses=tuple(responses.values()),
        comparisons=tuple(tuple(place[shown.id] for shown in comparison.responses) for comparison in comparisons),
        mark=first.mark,
    )
    key = hashlib.sha256(msgspec.json.encode(openings)).digest()[:8]
    store.add(key, 0, msgspec.json.encode(stored))


def stored_comparisons(store: LineStore) -> Iterator[Comparison]:
    """Yield all stored comparisons, prompts with equal beginnings together, one prompt in memory at a time."""
    for line in store.sorted_lines():
        case = _decoder.decode(line)
        for places in case.comparisons:
            shown = tuple(case.responses[place] for place in places)
            yield Comparison(prompt=case.prompt, responses=shown, mark=case.mark)


class PromptRequests(NamedTuple):
    """All requests about one prompt. ``opening`` is what they share with those about other prompts."""

    opening: str
    requests: list[Request]
    prompt: Prompt

    def shared_shares(self, *, is_new: bool) -> Iterator[tuple[Request, float]]:
        """Yield each request with the share of its text that begins like one before it.

        ``is_new``: no request before these has their opening.
        """
        before = "" if is_new else self.opening
        for request in sorted(self.requests, key=_text):
            text = _text(request)
            yield request, _shared_length(before, text) / max(len(text), 1)
            before = text


def requests_by_prompt(
    comparisons: Iterable[Comparison], requests_of: Callable[[Comparison], Iterable[Request]]
) -> Iterator[PromptRequests]:
    """Yield the requests prompt by prompt; the comparisons of one prompt must follow one another."""
    for _, group in groupby(comparisons, key=lambda comparison: (comparison.prompt.id, comparison.prompt.language)):
        of_prompt = list(group)
        requests = [request for comparison in of_prompt for request in requests_of(comparison)]
        opening = _opening(requests[0].question.messages, of_prompt[0].mark) if requests else ""
        yield PromptRequests(opening, requests, of_prompt[0].prompt)


class SendingOrder(NamedTuple):
    """Requests in the order in which they are sent.

    ``first`` has the first request with each opening of the prompts that come soon: once they are answered, a server
    has every beginning that the ``rest`` needs at the start. ``done`` takes the id of each request that was answered or
    is not sent: the rest may depend on it.
    """

    first: list[Request]
    rest: Iterator[Request]
    done: Callable[[str], object] = lambda request: None


def in_prefix_order(prompts: Iterable[PromptRequests], *, distance: int) -> SendingOrder:
    """Order the requests of each prompt so that every one finds its beginning computed: depth first through the trie.

    A request comes at least ``distance`` places after the first one with the longest beginning that they share, and
    requests of later prompts come in between: as many can be under way at a time without computing a beginning twice.
    Of those that may be sent the oldest prompt comes first, which keeps few prompts in a server's cache and in memory.
    The first request with another opening is sent that much before its turn. Towards the end those for which others
    wait come first, so that something is left to come in between.
    """
    queue = _Queue(distance, enumerate(prompts))
    return SendingOrder(list(queue.read_ahead()), queue.send_all())


class SlotOrder:
    """Requests in the order in which they are sent; the caller says which of them are `done`.

    A slot that becomes free gets the next request of the prompt that it has answered, in the order of their texts: it
    begins as the one before for as long as any does. Where none is left it gets another prompt, and towards the end,
    where there is none, half of what waits for another slot. As many prompts are in memory as requests under way.
    """

    def __init__(self, prompts: Iterable[PromptRequests]) -> None:
        self._prompts = iter(prompts)
        self._free: list[deque[Request]] = []
        self._busy: dict[str, deque[Request]] = {}

    def __iter__(self) -> Iterator[Request]:
        """Yield every request once."""
        while rest := self._next_rest():
            request = rest.popleft()
            self._busy[request.id] = rest
            yield request

    def done(self, request: str) -> None:
        """Free the slot of a request that was answered, or was not sent at all."""
        if (rest := self._busy.pop(request, None)) is not None:
            self._free.append(rest)

    def _next_rest(self) -> deque[Request] | None:
        """Return the requests that follow in a free slot; null where none is left that was not sent."""
        while self._free:
            if rest := self._free.pop():
                return rest
        for prompt in self._prompts:
            if prompt.requests:
                return deque(in_text_order(prompt.requests))
        longest = max(self._busy.values(), key=len, default=None)
        if not longest:
            return longest
        # The later half begins alike among itself, and less so with what the other slot answers next.
        later = [longest.pop() for _ in range((len(longest) + 1) // 2)]
        return deque(reversed(later))


class _Queue:
    """The requests of the prompts under way. A request becomes ready ``distance`` places after its first like it."""

    def __init__(self, distance: int, prompts: Iterator[tuple[int, PromptRequests]]) -> None:
        self.distance = distance
        self.prompts = prompts
        self.opening: str | None = None
        self.position = 0
        self.num_unsent = 0
        self.tries: dict[int, _Trie] = {}
        self.coming: deque[int] = deque()
        self.waiting: list[tuple[int, int, int]] = []
        self.ready: list[tuple[int, int]] = []

    def send_all(self) -> Iterator[Request]:
        """Yield every request that was not sent yet."""
        while True:
            yield from self.read_ahead()
            if (chosen := self._choose()) is not None:
                yield self._send(*chosen)
            elif self.coming:
                self._open(self.coming.popleft())
            elif self.waiting:
                # Nothing is left that could come in between.
                yield self._send(*heappop(self.waiting)[1:])
            else:
                return

    def read_ahead(self) -> Iterator[Request]:
        """Read prompts until ``distance`` of them are to come; yield the first request with each new opening."""
        while len(self.coming) < self.distance and (following := next(self.prompts, None)) is not None:
            number, prompt = following
            if not prompt.requests:
                continue
            self.tries[number] = _Trie.of(prompt.requests)
            self.num_unsent += len(prompt.requests)
            self.coming.append(number)
            if prompt.opening != self.opening:
                yield self._send(number, 0)
            self.opening = prompt.opening

    def _choose(self) -> tuple[int, int] | None:
        """Take the ready request of the oldest prompt, or towards the end one for which most others wait."""
        while self.waiting and self.waiting[0][0] <= self.position:
            heappush(self.ready, heappop(self.waiting)[1:])
        if len(self.coming) < self.distance:
            while self.coming and self._is_late(self.coming[0], 0):
                self._open(self.coming.popleft())
            if late := [item for item in self.ready if self._is_late(*item)]:
                chosen = min(late, key=lambda item: (-self.tries[item[0]].levels[item[1]], item))
                self.ready.remove(chosen)
                heapify(self.ready)
                return chosen
        return heappop(self.ready) if self.ready else None

    def _is_late(self, number: int, place: int) -> bool:
        """Return whether few requests are left to come between this one and those that wait for it, one by one."""
        levels = self.tries[number].levels[place] if number in self.tries else 0
        return levels > 0 and self.num_unsent <= (levels + _SPARE_LEVELS) * self.distance

    def _open(self, number: int) -> None:
        """Make the first request of a prompt ready, unless it was sent before its turn."""
        if number in self.tries and not self.tries[number].sent:
            heappush(self.ready, (number, 0))

    def _send(self, number: int, place: int) -> Request:
        """Return a request; those that begin like it wait for their time."""
        trie = self.tries[number]
        for child in trie.children.get(place, ()):
            heappush(self.waiting, (self.position + self.distance, number, child))
        trie.sent.append(place)
        if len(trie.sent) == len(trie.requests):
            del self.tries[number]
        self.position += 1
        self.num_unsent -= 1
        return trie.requests[place]


class _Trie(NamedTuple):
    """The requests of one prompt in the order of their texts.

    ``children`` has by the place of a request the places of those that share a beginning with it, and with none before.
    ``levels`` has for each how many generations of children follow it, ``sent`` the places of those that were sent.
    """

    requests: list[Request]
    children: dict[int, list[int]]
    levels: list[int]
    sent: list[int]

    @classmethod
    def of(cls, requests: Iterable[Request]) -> "_Trie":
        ordered = in_text_order(requests)
        children: dict[int, list[int]] = {}
        # The inner nodes above the current leaf: the length of the beginning, and the first request that has it.
        nodes: list[tuple[int, int]] = []
        for place, (before, request) in enumerate(pairwise(ordered), 1):
            shared = _shared_length(_text(before), _text(request)) // _LEAST_SHARED
            first = place - 1
            while nodes and nodes[-1][0] > shared:
                first = nodes.pop()[1]
            if not nodes or nodes[-1][0] < shared:
                nodes.append((shared, first))
            children.setdefault(nodes[-1][1], []).append(place)
        levels = [0] * len(ordered)
        for place in sorted(children, reverse=True):
            levels[place] = 1 + max(levels[child] for child in children[place])
        return cls(ordered, children, levels, [])


def in_text_order(requests: Iterable[Request]) -> list[Request]:
    """Return the requests in the order of their texts, depth first through their trie; repeats follow one another."""
    return sorted(requests, key=lambda request: (_text(request), request.repeat))


def _opening(messages: Sequence[Message], mark: str) -> str:
    return "\0".join(message.content for message in messages).partition(mark)[0]


def _text(request: Request) -> str:
    return "\0".join(message.content for message in request.question.messages)


def _shared_length(first: str, second: str) -> int:
    """Return the number of characters with which both texts begin, by bisection."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
