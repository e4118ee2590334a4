"""The client against a real llama.cpp server: lengths, seeds, odds, cached tokens, contexts that are full, keys.

What is expected comes from the server's own other endpoints: its template, its tokenizer, and its raw answers.
"""

import json
import math
import urllib.request

import pytest

from chat_server import chatting, request
from llama_server import ALIAS, llama_serving
from reward_server import nobody
from steelyard.core.comparison import SERVER_LIMIT
from steelyard.core.errors import ModelError
from steelyard.core.plugins import build
from tiny_gguf import CONTEXT, END

pytestmark = pytest.mark.slow

KEY = "sk-steelyard-test-8f31c0"
LONG = "The scale has two pans, one beam and many weights. "


def chat_of(url, **settings):
    return build("chats", "openai_compatible", {"base_url": url, "model": ALIAS, "workers": 1, **settings})


def asked(url, *requests, **settings):
    return {reply.request: reply for reply in chat_of(url, **settings).ask(requests)}


def posted(url, body):
    sent = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(sent, timeout=60) as response:
        return json.load(response)


def tokens(url, text):
    """The tokens of a question by the server's own template and tokenizer."""
    root = url.removesuffix("/v1")
    rendered = posted(f"{root}/apply-template", {"messages": [{"role": "user", "content": text}]})["prompt"]
    return posted(f"{root}/tokenize", {"content": rendered, "parse_special": True})["tokens"]


def test_a_reply_has_its_end_and_its_counts(llama):
    texts = {"english": "Which is heavier?", "chinese": "天平的两端，哪一边更重？𠮷", "spaces": "  a\n\n\tb  "}
    replies = asked(llama, *(request(name, text, max_tokens=3) for name, text in texts.items()))
    for name, text in texts.items():
        reply = replies[name]
        assert reply.prompt_tokens == len(tokens(llama, text))
        assert (reply.model, reply.odd_usage) == (ALIAS, None)
        assert 1 <= reply.reply_tokens <= 3
        assert reply.text
        # A reply of three tokens is cut off unless its end is the third.
        assert reply.failure == {"stop": None, "length": "cut off"}[reply.finish_reason]
        if reply.finish_reason == "length":
            assert (reply.detail, reply.reply_tokens) == ("at 3 tokens", 3)


def test_an_end_before_the_limit_is_no_failure(llama):
    likely = {"logit_bias": [[END, 3]]}
    reply = asked(llama, request(max_tokens=500, seed=1), temperature=1.0, extra=likely)["r"]
    assert (reply.failure, reply.finish_reason) == (None, "stop")
    assert reply.reply_tokens < 500


def test_a_seed_repeats_a_sample_and_another_seed_does_not(llama):
    seeds = [request(f"{seed}.{place}", max_tokens=12, seed=seed) for seed in range(8) for place in range(2)]
    replies = asked(llama, *seeds, temperature=1.5)
    texts = [[replies[f"{seed}.{place}"].text for seed in range(8)] for place in range(2)]
    assert texts[0] == texts[1]
    assert len({*texts[0]}) > 1


@pytest.mark.parametrize("begin", ["Weigh these. ", "称一称这些。"])
def test_cached_tokens_are_those_of_the_common_beginning(llama, begin):
    texts = [begin + LONG * 20 + end for end in ("First?", "Second, and more?")]
    replies = asked(llama, *(request(str(place), text, max_tokens=1) for place, text in enumerate(texts)))
    ids = [tokens(llama, text) for text in texts]
    common = next(place for place, pair in enumerate(zip(*ids, strict=False)) if pair[0] != pair[1])
    assert replies["1"].prompt_tokens == len(ids[1])
    assert replies["1"].cached_tokens == common
    raw = posted(f"{llama}/chat/completions", {"messages": [{"role": "user", "content": texts[1]}], "max_tokens": 1})
    again = asked(llama, request("again", texts[1], max_tokens=1))["again"]
    # The server computes the last token anew, whatever it has; its two counts agree.
    assert raw["usage"]["prompt_tokens_details"]["cached_tokens"] == raw["timings"]["cache_n"] == again.cached_tokens


def test_odds_are_those_of_the_raw_answer(llama):
    question = request("odds", "Answer A or B.", max_tokens=1, alternatives=8)
    reply = asked(llama, question)["odds"]
    body = {"messages": [{"role": "user", "content": "Answer A or B."}], "max_tokens": 1, "temperature": 0}
    raw = posted(f"{llama}/chat/completions", body | {"logprobs": True, "top_logprobs": 8})
    (first,) = raw["choices"][0]["logprobs"]["content"]
    assert [one.token for one in reply.first_token] == [one["token"] for one in first["top_logprobs"]]
    for one, other in zip(reply.first_token, first["top_logprobs"], strict=True):
        assert one.logprob == pytest.approx(other["logprob"], abs=0.02)
    assert sum(math.exp(one.logprob) for one in reply.first_token) <= 1 + 1e-6


@pytest.mark.parametrize("slots", [1, 3])
def test_a_server_of_slots_says_how_many_and_gets_no_more_requests(tiny_gguf, slots):
    with llama_serving(tiny_gguf, slots=slots, context=slots * CONTEXT) as url:
        chat = chat_of(url, workers=64)
        assert chat.num_slots() == slots
        replies = list(chat.ask([request(f"r{place}", f"Question {place}") for place in range(12)]))
    assert {reply.failure for reply in replies} <= {None, "cut off"}


def test_any_other_server_has_no_slots():
    with chatting() as server:
        assert build("chats", "openai_compatible", {"base_url": server.url, "model": "m"}).num_slots() is None
        assert server.questions == []
    with nobody() as url:
        assert build("chats", "openai_compatible", {"base_url": f"{url}/v1", "model": "m"}).num_slots() is None
    # Services on the internet are not asked at all.
    assert build("chats", "openai_compatible", {"base_url": "https://127.0.0.1:9/v1", "model": "m"}).num_slots() is None


def test_a_prompt_over_the_context_is_refused_by_name_and_at_once(llama):
    replies = asked(llama, request("long", LONG * 2000), request("short"), num_tries=4, wait_seconds=30.0)
    assert replies["long"].failure == "failed"
    assert replies["long"].detail.startswith("too_long: ")
    assert f"({CONTEXT} tokens)" in replies["long"].detail
    assert replies["short"].failure != "failed"


def test_a_reply_that_fills_the_context_is_cut_off_where_it_was(llama):
    sentence = len(tokens(llama, LONG * 2)) - len(tokens(llama, LONG))
    text = LONG * (CONTEXT // sentence - 5)
    room = CONTEXT - len(tokens(llama, text))
    assert sentence < room < 10 * sentence
    # The end of a reply is never written.
    reply = asked(llama, request("full", text, max_tokens=1000), extra={"logit_bias": [[END, False]]})["full"]
    assert (reply.failure, reply.finish_reason) == ("cut off", "length")
    assert abs(reply.reply_tokens - room) <= 1
    assert reply.detail == f"at {reply.reply_tokens} tokens, fewer than the 1000 asked for, {SERVER_LIMIT}"


def test_a_key_is_needed_and_never_shown(tiny_gguf, monkeypatch, capfd):
    with llama_serving(tiny_gguf, key=KEY) as url:
        monkeypatch.setenv("RIGHT", KEY)
        monkeypatch.setenv("WRONG", f"{KEY}-wrong")
        assert asked(url, request(max_tokens=1), secret="RIGHT")["r"].failure != "failed"
        for settings in ({}, {"secret": "WRONG"}):
            with pytest.raises(ModelError, match=r"answers 401 .*\n.*chat\.secret") as refused:
                asked(url, request(), **settings)
            assert KEY not in str(refused.value)
    assert KEY not in "".join(capfd.readouterr())
