import pytest

from chat_server import completion, request
from steelyard.plugins.chats._completion import is_empty, read_completion


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
        # What Anthropic, Mistral, Zhipu, Gemini, DeepSeek, OpenRouter and vLLM call the same.
        (completion("so far", "max_tokens"), "cut off"),
        (completion("so far", "MAX_TOKENS"), "cut off"),
        (completion("so far", "model_length"), "cut off"),
        (completion("x", "sensitive"), "refused"),
        (completion(None, "SAFETY"), "refused"),
        (completion("so far", "insufficient_system_resource"), "failed"),
        (completion("so far", "error"), "failed"),
        (completion("so far", "abort"), "failed"),
        (completion("x", "end_turn"), None),
    ],
)
def test_how_a_reply_ended(body, failure):
    reply = read(body, max_tokens=16)
    assert reply.failure == failure
    text = body["choices"][0]["message"]["content"]
    # A text of spaces alone is none.
    assert reply.text == (None if reply.detail and reply.detail.startswith("empty") else text)


def test_a_content_of_parts_is_the_text_of_its_text_parts():
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "[[B]]"}]}
    parts = [thinking, {"type": "text", "text": "So "}, {"type": "text", "text": "[[A]]"}]
    assert read(completion(parts)).text == "So [[A]]"
    # Reasoning alone would end so again.
    assert read(completion([thinking])).detail == "empty: reasoning without a reply (stop)"
    assert not is_empty(completion([thinking]))


def test_a_body_without_a_completion_is_shown_and_an_error_is_asked_for_again():
    error = {"error": {"message": "配额已用完", "code": 429}}
    assert read(error).detail == 'error: {"error": {"message": "配额已用完", "code": 429}}'
    assert is_empty(error)
    assert is_empty(completion("so far", "abort"))
    assert not is_empty({"detail": "no such field"})


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
        ({"prompt_tokens": 0, "completion_tokens": 0}, (None, None)),
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


CACHED = {"cache_creation_input_tokens": 1880, "cache_read_input_tokens": 50}
USAGES = {
    "OpenAI": ({"prompt_tokens": 2006, "prompt_tokens_details": {"cached_tokens": 1920}}, (2006, 1920, None)),
    "vLLM without a count": ({"prompt_tokens": 20, "prompt_tokens_details": {"cached_tokens": None}}, (20, None, None)),
    "no details": ({"prompt_tokens": 20, "prompt_tokens_details": None}, (20, None, None)),
    "DeepSeek": (
        {"prompt_tokens": 100, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}, (100, 64, None)
    ),
    "DeepSeek's parts": ({"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}, (100, 64, None)),
    # The input tokens are those that were neither read from a cache nor written to it.
    "Anthropic": ({"input_tokens": 21, **CACHED}, (1951, 50, 1880)),
    "Anthropic without a cache": ({"input_tokens": 21, **dict.fromkeys(CACHED, 0)}, (21, 0, 0)),
    "OpenAI's responses": ({"input_tokens": 75, "input_tokens_details": {"cached_tokens": 32}}, (75, 32, None)),
    "Anthropic's counts beside OpenAI's": ({"prompt_tokens": 1951, **CACHED}, (1951, 50, 1880)),
    "Moonshot": ({"prompt_tokens": 20, "cached_tokens": 8}, (20, 8, None)),
}  # fmt: skip


@pytest.mark.parametrize(("usage", "counted"), USAGES.values(), ids=USAGES)
def test_cached_tokens_in_the_forms_of_their_providers(usage, counted):
    written = "output_tokens" if "input_tokens" in usage else "completion_tokens"
    reply = read(completion("[[A]]") | {"usage": usage | {written: 3}})
    assert (reply.prompt_tokens, reply.cached_tokens, reply.cache_write_tokens) == counted
    assert (reply.reply_tokens, reply.odd_usage) == (3, None)


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 11}}, (10, None, None)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": "4"}}, (10, None, None)),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 6, "cache_creation_input_tokens": 5}, (10, 6, None)),
        ({"prompt_tokens": 10**12, "prompt_cache_hit_tokens": 6}, (None, None, None)),
        ({"input_tokens": "9", "cache_read_input_tokens": 6}, (None, None, None)),
    ],
)
def test_more_cached_tokens_than_the_prompt_has_are_left_out(usage, counted):
    reply = read(completion("[[A]]") | {"usage": usage | {"completion_tokens": 1}})
    assert (reply.prompt_tokens, reply.cached_tokens, reply.cache_write_tokens) == counted
    assert reply.odd_usage is not None


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_without_a_reply_is_no_answer_and_not_asked_again(key):
    body = completion(None, **{key: "The first is better. [[A]]"})
    reply = read(body)
    assert (reply.text, reply.failure, reply.detail) == (None, "failed", "empty: reasoning without a reply (stop)")
    assert not is_empty(body)
    assert is_empty(completion(None))
    # A sampled model may say nothing; one whose reply has no choice said nothing that can be read.
    assert not is_empty(completion(None), keeps_empty=True)
    assert is_empty({"choices": []}, keeps_empty=True)
    assert read(completion("[[B]]", **{key: "[[A]]"})).text == "[[B]]"


def test_the_reason_of_the_end_is_kept():
    assert read(completion("x", "length")).finish_reason == "length"
    assert read(completion("x", None)).finish_reason is None
