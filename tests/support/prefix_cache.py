"""A simulated prefix cache of a server: blocks of tokens, the least recently used block leaves first."""

import re
from collections import OrderedDict, deque

from steelyard.core.types import Case, Message, Prompt, Response

WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "theta", "iota", "kappa", "lambda", "sigma", "tau")

BLOCK = 16
_TOKEN = re.compile(r"\w{1,4}|\W")


def rough_tokens(text):
    """Return pieces of up to four letters and single signs, about as many as a tokenizer gives."""
    return _TOKEN.findall(text)


class BlockCache:
    """Count the tokens that a server computes. A block is cached when ``under_way`` later requests have begun."""

    def __init__(self, num_tokens, *, under_way=0):
        self.num_blocks, self.under_way = num_tokens // BLOCK, under_way
        self.blocks = OrderedDict()
        self.waiting = deque()
        self.computed = 0

    def send(self, tokens):
        """Return the number of tokens of the request that come from the cache."""
        while len(self.waiting) > self.under_way:
            self._keep(self.waiting.popleft())
        chain = list(chained_blocks(tokens))
        hits = 0
        while hits < len(chain) and chain[hits] in self.blocks:
            hits += 1
        self.computed += len(tokens) - hits * BLOCK
        self.waiting.append(chain)
        if not self.under_way:
            self._keep(self.waiting.popleft())
        return hits * BLOCK

    def settle(self):
        """Let every request under way end."""
        while self.waiting:
            self._keep(self.waiting.popleft())

    def _keep(self, chain):
        # The end of a request first: it leaves before its beginning.
        for block in reversed(chain):
            self.blocks[block] = None
            self.blocks.move_to_end(block)
        while len(self.blocks) > self.num_blocks:
            self.blocks.popitem(last=False)


def chained_blocks(tokens):
    """Yield a hash for each whole block, of the block with all before it."""
    before = 0
    for start in range(0, len(tokens) - BLOCK + 1, BLOCK):
        before = hash((before, *tokens[start : start + BLOCK]))
        yield before


def least_blocks(requests):
    """Return the tokens that an unbounded cache of blocks computes: the nodes of the trie of blocks, and the ends."""
    nodes = {block for tokens in requests for block in chained_blocks(tokens)}
    return BLOCK * len(nodes) + sum(len(tokens) % BLOCK for tokens in requests)


def least_tokens(requests):
    """Return the nodes of the trie of single tokens: the least that any cache computes."""
    total, before = 0, []
    for tokens in sorted(requests):
        shared = next((at for at, pair in enumerate(zip(before, tokens, strict=False)) if pair[0] != pair[1]), None)
        total += len(tokens) - (min(len(before), len(tokens)) if shared is None else shared)
        before = tokens
    return total


def long_case(number, rng, *, num_responses=4, **fields):
    def text(length):
        return " ".join(rng.choice(WORDS) for _ in range(length))

    prompt = Prompt(id=str(number), messages=(Message(role="user", content=text(40)),), **fields)
    responses = tuple(Response(id=name, text=text(100)) for name in "abcdefgh"[:num_responses])
    return Case(prompt=prompt, responses=responses)
