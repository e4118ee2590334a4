"""A real server in the test's own process that speaks OpenAI's chat completions, and recordings in files."""

import json
from contextlib import contextmanager

from reward_server import serving
from steelyard.core.asking import Question, Request
from steelyard.core.types import Message


def completion(text, finish="stop", *, logprobs=None, model="served", usage=(7, 3), **message):
    """The body of a chat completion; ``logprobs`` are pairs of token and log-probability, the written one first."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    if logprobs is not None:
        top = [{"token": token, "logprob": value, "bytes": None} for token, value in logprobs]
        choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]}
    return body | ({"usage": dict(zip(("prompt_tokens", "completion_tokens"), usage, strict=True))} if usage else {})


@contextmanager
def chatting(answer="[[A]]"):
    """A server that answers every question with a text, or with what ``answer(question)`` gives."""

    def reply(path, question):
        said = answer(question) if callable(answer) else answer
        return completion(said) if isinstance(said, str) else said

    with serving(reply) as asked:
        asked.url += "/v1"
        yield asked


def request(id="r", text="Which one?", *, system=None, **fields):
    turns = [("system", system)] if system else []
    messages = tuple(Message(role=role, content=content) for role, content in [*turns, ("user", text)])
    return Request(id=id, question=Question(messages=messages, **{"max_tokens": 16, **fields}))


def record(path, *lines):
    """A file of recorded replies."""
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return {"kind": "recorded", "path": str(path)}


def preferring(word):
    """A judge that prefers the answer that holds the word, wherever it stands; it names neither where both do."""

    def answer(question):
        shown = question["messages"][-1]["content"].split("answer A", 1)[1]
        first, second = shown.split("answer B", 1)
        return "[[A]]" if word in first and word not in second else "[[B]]" if word in second else "Neither."

    return answer
