import json

import pytest

from chat_server import completion, request
from steelyard.plugins.chats._completion import read_completion


def read(body, **fields):
    return read_completion(request(**fields), json.dumps(body).encode())


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        (completion("x"), None),
        (completion(""), None),
        (completion("x", None), None),
        (completion("so far", "length"), "cut off"),
        (completion(None, "length"), "cut off"),
        (completion("so far", None, usage=(5, 16)), "cut off"),
        (completion("just so", "stop", usage=(5, 16)), None),
        (completion(None, "stop", refusal="I cannot."), "refused"),
        (completion("x", "content_filter"), "refused"),
        (completion(None, "tool_calls"), "failed"),
    ],
)
def test_how_a_reply_ended(body, failure):
    reply = read(body, max_tokens=16)
    assert reply.failure == failure
    assert reply.text == body["choices"][0]["message"]["content"]


def test_the_first_choice_counts_and_unknown_keys_do_not():
    body = completion("one") | {"system_fingerprint": "f"}
    body["choices"].append(completion("two")["choices"][0])
    assert read(body).text == "one"


def test_the_written_token_stands_among_the_likely_ones():
    body = completion("C", logprobs=[("A", -1.0)])
    body["choices"][0]["logprobs"]["content"][0] |= {"token": "C", "logprob": -3.0}
    assert [(one.token, one.logprob) for one in read(body).first_token] == [("A", -1.0), ("C", -3.0)]


def test_tokens_that_are_not_counted_are_null():
    reply = read(completion("x", usage=None))
    assert (reply.prompt_tokens, reply.reply_tokens) == (None, None)
    assert reply.first_token is None
