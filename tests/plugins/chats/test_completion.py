import pytest

from chat_server import completion, request
from steelyard.plugins.chats.openai_compatible import read_completion


def read(body, **fields):
    return read_completion(request(**fields), body)


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        (completion("x"), None),
        (completion(""), "failed"),
        (completion(" \n"), "failed"),
        (completion("", logprobs=[("A", -0.5)]), None),
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


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, (10, 2)),
        ({"prompt_tokens": -1, "completion_tokens": 2}, (None, 2)),
        ({"prompt_tokens": 10, "completion_tokens": 10**12}, (10, None)),
        ({"prompt_tokens": 10**12, "completion_tokens": 1.5}, (None, None)),
        ({"prompt_tokens": "7", "completion_tokens": True}, (None, None)),
        ("none", (None, None)),
    ],
)
def test_numbers_of_tokens_that_cannot_be_are_left_out_and_the_reply_stays(usage, counted):
    reply = read(completion("[[A]]") | {"usage": usage})
    assert (reply.text, reply.failure) == ("[[A]]", None)
    assert (reply.prompt_tokens, reply.reply_tokens) == counted
    assert (reply.odd_usage is None) == (None not in counted)


def test_a_text_far_beyond_the_tokens_asked_for_is_no_reply():
    assert read(completion("x" * 128 * 17), max_tokens=16).failure is None
    reply = read(completion("x" * (128 * 17 + 1)), max_tokens=16)
    assert (reply.failure, reply.detail) == ("failed", "too_large: 2,177 characters for 16 tokens")
