"""The client against a server that fails in every way: no reply is another's, and no connection outlives its use."""

import base64
import os
import signal
import string
import threading
import time
from unittest.mock import patch
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from chat_server import request, sending
from each_value import each
from fault_server import FAULTS, body_of, faulting, response, text_of
from steelyard.core.errors import ModelError
from steelyard.core.plugins import build
from steelyard.io.ledger import open_ledger

HARMLESS = {"slow stream", "sent twice", "sent again later", "chunks that cut characters"}
SLOW = {"hang", "hang in the body"}
QUICK = {"model": "m", "wait_seconds": 0.01, "longest_wait_seconds": 0.1, "num_tries": 20}
SOON = 0.3
"""Seconds of silence that end a try, where the server is silent on purpose: elsewhere it may be as slow as it is."""


def requests(number):
    return [request(f"r{place}", f"question {place}: 哪个更好？") for place in range(number)]


def answers(server, number, **settings):
    chat = build("chats", "openai_compatible", {"base_url": server.url, **QUICK, **settings})
    return {reply.request: reply for reply in chat.ask(requests(number))}


def expected(number):
    return {one.id: text_of({"messages": [{"content": one.question.messages[-1].content}]}) for one in requests(number)}


@pytest.mark.slow
@each("kind", FAULTS)
def test_after_a_fault_the_request_is_answered_with_its_own_reply(kind):
    with faulting(share=0.4, kinds=(kind,)) as server:
        replies = answers(server, 40, **({"timeout_seconds": SOON, "num_tries": 100} if kind in SLOW else {}))
    assert {name: reply.text for name, reply in replies.items()} == expected(40)
    assert {reply.failure for reply in replies.values()} == {None}
    assert server.faults[kind] >= 5
    if kind in ("slow stream", "chunks that cut characters"):
        assert server.num_requests == 40


@pytest.mark.slow
@each("kind", sorted(FAULTS.keys() - HARMLESS))
def test_a_fault_that_stays_is_a_failure_and_no_answer(kind):
    with faulting(share=1.0, kinds=(kind,)) as server:
        limits = {"num_tries": 2} | ({"timeout_seconds": SOON} if kind in SLOW else {})
        chat = build("chats", "openai_compatible", {"base_url": server.url, **QUICK, **limits})
        chat.was_answered = True
        (reply,) = chat.ask(requests(1))
    assert (reply.text, reply.failure) == (None, "failed")
    # The same body twice on one connection may be a copy: it is asked for once more on another.
    assert server.num_requests <= 3


def test_connections_are_kept():
    with faulting() as server:
        replies = answers(server, 200, workers=4)
        assert {name: reply.text for name, reply in replies.items()} == expected(200)
    assert server.num_connections <= 4
    assert {reply.endpoint for reply in replies.values()} == {server.url}
    assert {(reply.cached_tokens, reply.finish_reason) for reply in replies.values()} == {(64, "stop")}
    assert all(reply.seconds >= 0 for reply in replies.values())


KEYS = strategies.text(string.ascii_letters + string.digits + "-_.+/=!$&*", min_size=12, max_size=60)


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(key=KEYS, kinds=strategies.lists(strategies.sampled_from(sorted(set(FAULTS) - SLOW)), min_size=1, max_size=6))
def test_a_key_that_the_server_repeats_is_written_nowhere(key, kinds, tmp_path_factory, capsys):
    folder = tmp_path_factory.mktemp("key")
    with patch.dict(os.environ, JUDGE_KEY=key), faulting(share=0.7, kinds=tuple(kinds), echoes_key=True) as server:
        chat = build(
            "chats", "openai_compatible", {"base_url": server.url, **QUICK, "num_tries": 3, "secret": "JUDGE_KEY"}
        )
        with open_ledger(folder / "l.sqlite") as ledger:
            for reply in chat.ask(requests(12)):
                ledger.add(reply)
                assert not holds(key, repr(reply))
            files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert server.num_requests >= 12
    assert [name for name, content in files.items() if holds(key, content.decode(errors="replace"))] == []
    assert not holds(key, "".join(capsys.readouterr()))
    assert not holds(key, repr(chat.__dict__) + str(chat.protocol()))


def holds(key, text):
    """Whether a text has the key as it is, or as a server may spell it."""
    encoded = base64.b64encode(f"Bearer {key}".encode()).decode().rstrip("=")
    return any(spelling in text for spelling in (key, quote(key, safe=""), encoded))


def test_a_pause_holds_for_every_request():
    """After a refusal with a time nothing is sent before its end."""
    times = []

    def busy():
        times.append(time.monotonic())
        if len(times) == 1:
            yield b"HTTP/1.1 429 Busy\r\nContent-Length: 0\r\nRetry-After: 0.4\r\n\r\n"
        else:
            yield response(body_of(len(times), {"model": "m", "messages": [{"content": "x"}]}))

    with sending(busy) as url:
        replies = list(build("chats", "openai_compatible", {"base_url": url, **QUICK, "workers": 1}).ask(requests(3)))
    assert [reply.failure for reply in replies] == [None] * 3
    assert all(second - times[0] >= 0.4 for second in times[1:])


def test_a_server_that_asks_for_more_time_than_allowed_ends_the_run():
    with (
        sending(lambda: [b"HTTP/1.1 429 Busy\r\nContent-Length: 0\r\nRetry-After: 3600\r\n\r\n"]) as url,
        pytest.raises(ModelError, match="asks to wait 3,600 s"),
    ):
        list(build("chats", "openai_compatible", {"base_url": url, **QUICK}).ask(requests(3)))


def test_a_second_interruption_ends_what_is_under_way_at_once():
    with faulting(share=1.0, kinds=("hang",)) as server:
        chat = build("chats", "openai_compatible", {"base_url": server.url, "model": "m", "timeout_seconds": 600.0})
        replies = chat.ask(iter(requests(30)))
        before, stopped = set(threading.enumerate()), threading.Event()
        threading.Thread(target=interrupt_twice, args=(lambda: server.num_requests == 8, stopped), daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            next(replies)
        stopped.set()
        for thread in set(threading.enumerate()) - before:
            # A thread that waited for the silent server would do so for ten minutes.
            thread.join(300)
            assert not thread.is_alive()
    assert server.num_requests == 8


def interrupt_twice(is_reached, stopped):
    """Send Ctrl-C to the main thread, which waits for a reply by then, until it stops: the first one is awaited."""
    while not is_reached():
        time.sleep(0.01)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    # A signal right after the first is the same one. On a loaded machine the second may seem so too.
    wait = 0.5
    while not stopped.wait(wait):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        wait = 20.0
