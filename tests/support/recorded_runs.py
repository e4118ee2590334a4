"""Real runs of a small model as their counts of tokens: each request as a text of the same characters by group.

A forecast without a tokenizer sees nothing of a text but these numbers, so that it forecasts the recorded run.
"""

import json
from functools import partial
from pathlib import Path
from typing import NamedTuple

from steelyard.core.comparison import Comparison, Question, Reply
from steelyard.core.types import Message, Prompt
from steelyard.judging.asking import requests_of
from steelyard.judging.forecast import forecast_requests
from steelyard.judging.panel import PanelJudge
from steelyard.judging.prefix_order import requests_by_prompt
from steelyard.judging.token_use import Price

PATH = Path(__file__).parents[1] / "judging" / "recorded_tokens.json"
PRICE = Price(input=1.0, output=4.0)
MAX_TOKENS = 256
_SIGNS = "aé人あ한жعक\u05d05."
"""A character of each group."""


def forecast_member(member, comparisons, known, **settings):
    """The forecast of the requests to one judge."""
    prompts = requests_by_prompt(comparisons, partial(requests_of, member))
    return forecast_requests(member.name, prompts, known, price=member.price, **settings)


class Served(NamedTuple):
    """The counts of one request."""

    prompt_tokens: int
    reply_tokens: int

    def cost(self):
        return (PRICE.input * self.prompt_tokens + PRICE.output * self.reply_tokens) / 1e6


class RecordedRun:
    """A member of a panel that asks the recorded requests, and what the server counted for each."""

    def __init__(self, name):
        rows = json.loads(PATH.read_text(encoding="utf-8"))[name]
        self.member = PanelJudge("smollm2", _Unserved(), _Recorded(rows), PRICE)
        self.comparisons = [
            Comparison(prompt=Prompt(id=str(prompt), messages=()), responses=(), mark=str(place))
            for place, (prompt, *_) in enumerate(rows)
        ]
        # Requests of equal texts and the same prompt are one request.
        self.served, self.messages = {}, {}
        for comparison, (*_, prompt_tokens, reply_tokens) in zip(self.comparisons, rows, strict=True):
            (request,) = requests_of(self.member, comparison)
            self.served[request.id] = Served(prompt_tokens, reply_tokens)
            self.messages[request.id] = request.question.messages

    def forecast(self, known, **settings):
        """The forecast of the other requests when those of these ids are answered."""
        replies = {name: Reply(request=name, text="x", **self.served[name]._asdict()) for name in known}
        return forecast_member(self.member, self.comparisons, replies.get, **settings)

    def rest(self, known):
        """What the other requests came to: their number, tokens in and out, and money."""
        others = [served for name, served in self.served.items() if name not in known]
        prompt, reply = (sum(served[place] for served in others) for place in range(2))
        return len(others), prompt, reply, sum(served.cost() for served in others)


class _Unserved:
    name = "smollm2"

    def protocol(self):
        return {"chat": "none", "model": "smollm2"}


class _Recorded:
    """A judge that asks one recorded request about each comparison; its number keeps equal texts apart."""

    def __init__(self, rows):
        self.rows = rows

    def questions(self, comparison):
        place = int(comparison.mark)
        _, num_messages, groups, *_ = self.rows[place]
        text = "".join(sign * number for sign, number in zip(_SIGNS, groups, strict=True))
        # Spaces cost nothing.
        own = text + " " * (place + 1)
        empty = (Message(role="system", content=""),) * (num_messages - 1)
        return (Question(messages=(*empty, Message(role="user", content=own)), max_tokens=MAX_TOKENS),)
