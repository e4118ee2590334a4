"""The contract of every chat: one reply a request, whole or with its reason, whatever the others do."""

import json
from contextlib import ExitStack

import msgspec
import pytest

import tiny
import tiny_translators
from chat_server import chatting, completion, record
from chat_server import request as asking
from reward_server import serving
from steelyard.core.plugins import build, kinds

TEXTS = ["Which one?", "数学：√2 ≈ 1.414", "שלום مرحبا", "👩‍👩‍👧‍👦", "\\frac{a}{b}", " ", "<|im_end|></s>", "[[A]]"]


def request(id="r", text="Which one?", **fields):
    """A request of any kind: engines read its languages, and other chats do not."""
    return asking(id, text, **{"languages": ("en", "de"), **fields})


def settings_of(kind, folder, stack):
    if kind == "seq2seq":
        return {"path": tiny_translators.save_nllb(folder / "model"), "num_beams": 1}
    if kind == "apertium":
        return {"program": tiny_translators.save_program(folder / "apertium"), "workers": 2}
    if kind == "google_translate":
        server = stack.enter_context(serving(google))
        return {"base_url": server.url, "num_tries": 1}
    if kind == "local":
        return {"path": tiny.save_base(folder / "model"), "dtype": "float32"}
    if kind == "recorded":
        lines = [{"contains": ["cut"], "text": "so", "failure": "cut off"}, {"text": "[[A]] 中文"}]
        return {key: value for key, value in record(folder / "r.jsonl", *lines).items() if key != "kind"}
    server = stack.enter_context(chatting(answered))
    return {"base_url": server.url, "model": "served", "num_tries": 1}


def answered(question):
    text = question["messages"][-1]["content"]
    return (500, b"busy") if "fail" in text else completion(f"you said {text}")


def google(path, question):
    text = question["q"]
    translations = [{"translatedText": f"{question['target']}: {text}"}]
    return (500, b"busy") if "fail" in text else {"data": {"translations": translations}}


@pytest.fixture(params=kinds("chats"))
def chat(request, tmp_path):
    with ExitStack() as stack:
        yield build("chats", request.param, settings_of(request.param, tmp_path, stack))


def test_one_reply_a_request_with_its_id(chat):
    asked = [request(f"r{number}", text) for number, text in enumerate(TEXTS)]
    replies = list(chat.ask(iter(asked)))
    assert sorted(reply.request for reply in replies) == sorted(one.id for one in asked)
    for reply in replies:
        assert reply.text is not None or reply.failure is not None
        assert reply.failure in (None, "refused", "cut off", "failed")
        assert reply.failure is not None or reply.detail is None


def untimed(reply):
    """The reply without the time that its exchange took."""
    return msgspec.structs.replace(reply, seconds=None)


def test_replies_are_the_same_again_and_alone(chat):
    asked = [request(f"r{number}", text) for number, text in enumerate(TEXTS)]
    together = {reply.request: reply for reply in chat.ask(asked)}
    for one in asked:
        (alone,) = chat.ask([one])
        assert untimed(alone) == untimed(together[one.id])


def test_a_request_that_fails_leaves_the_others_alone(chat):
    long = request("long", "fail " * 20_000, max_tokens=4)
    replies = {reply.request: reply for reply in chat.ask([request("a"), long, request("b")])}
    assert set(replies) == {"a", "long", "b"}
    (plain,) = chat.ask([request("a")])
    assert untimed(replies["a"]) == untimed(plain)


def test_no_requests_give_no_replies(chat):
    assert list(chat.ask([])) == []


def test_requests_are_taken_only_as_there_is_room(chat):
    taken = []

    def requests():
        for number in range(50):
            taken.append(number)
            yield request(f"r{number}")

    replies = chat.ask(requests())
    next(replies)
    replies.close()
    assert len(taken) < 50


def test_the_protocol_is_plain_json_and_names_the_model(chat):
    assert json.loads(json.dumps(chat.protocol())) == chat.protocol()
    assert chat.protocol()["model"]
    assert chat.name
