"""A server can neither hold a worker beyond the time nor make it read more bytes than allowed; failures are named."""

import itertools
import time

import pytest

from chat_server import sending
from reward_server import nobody, serving
from steelyard.io.addresses import Key
from steelyard.io.connections import RequestLimits
from steelyard.io.dispatch import dispatch
from steelyard.io.http import attempt
from steelyard.io.pacing import RequestPace

QUICK = RequestLimits(timeout_seconds=600.0, num_tries=3, wait_seconds=0.01, key=Key())


def post(url, request, limits, *, is_empty=lambda value: False, on_retry=lambda reply, number: None):
    """Send one request until its last try."""

    def send(job, connections, deadline):
        return attempt(url, job, limits, connections, deadline=deadline, is_empty=is_empty)

    return next(dispatch([request], send, limits, RequestPace(1), on_retry)).reply


def test_a_question_of_any_script_arrives_and_its_answer_comes_back():
    with serving(lambda path, question: {"path": path, "question": question}) as asked:
        reply = post(asked.url + "/x", {"text": "你好 שלום 👀"}, QUICK._replace(key=Key("a-key")))
    assert (reply.value, reply.reason) == ({"path": "/x", "question": {"text": "你好 שלום 👀"}}, None)
    assert asked.headers[0]["Authorization"] == "Bearer a-key"


@pytest.mark.parametrize("status", [408, 429, 500, 503, "drop"])
def test_what_may_pass_is_tried_again(status):
    with serving(lambda path, question: 1) as asked:
        asked.failures = [status] * 2
        assert post(asked.url, {}, QUICK).value == 1
        asked.failures = [status] * 3
        assert post(asked.url, {}, QUICK).reason == ("unreachable" if status == "drop" else f"http_{status}")
    assert len(asked.questions) == 6


def test_what_will_not_pass_is_asked_once():
    with serving(lambda path, question: (422, b"zu lang")) as asked:
        reply = post(asked.url, {}, QUICK)
    assert (reply.reason, reply.detail, len(asked.questions)) == ("http_422", "zu lang", 1)


def test_waits_double():
    with serving(lambda path, question: (503, b"")) as asked:
        before = time.monotonic()
        post(asked.url, {}, QUICK._replace(wait_seconds=0.1))
    assert time.monotonic() - before >= 0.3


def test_no_json_no_server_and_no_answer_in_time():
    with serving(lambda path, question: (200, b"<html>")) as asked:
        assert post(asked.url, {}, QUICK).reason == "malformed"
    with nobody() as url:
        assert post(url, {}, QUICK).reason == "unreachable"
    with serving(lambda path, question: 1) as asked, asked.silent():
        assert post(asked.url, {}, QUICK._replace(timeout_seconds=0.05, num_tries=1)).reason == "timeout"


START = b"HTTP/1.1 200 OK\r\n"
MANNER = RequestLimits(timeout_seconds=600.0, num_tries=3, wait_seconds=0.01, key=Key(), max_bytes=50_000)


def slowly(part):
    """Repeat it for a minute: whoever waits for its end learns that there is one."""
    for _ in range(2000):
        time.sleep(0.03)
        yield part


DRIPS = {
    "a body to the end of the connection": lambda: itertools.chain([START + b"\r\n"], slowly(b" ")),
    "a body of a length": lambda: itertools.chain([START + b"Content-Length: 40000\r\n\r\n"], slowly(b"1")),
    "chunks": lambda: itertools.chain([START + b"Transfer-Encoding: chunked\r\n\r\n"], slowly(b"1\r\n \r\n")),
    "headers": lambda: itertools.chain([START], slowly(b"A: b\r\n")),
    "one header": lambda: itertools.chain([START + b"A: "], slowly(b"b")),
    "the status line": lambda: slowly(b"H"),
    "promises to go on": lambda: slowly(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "nothing": lambda: slowly(b""),
}


@pytest.mark.parametrize("kind", DRIPS)
def test_a_drip_ends_with_the_time_of_the_question(kind):
    with sending(DRIPS[kind]) as url:
        reply = post(url, {}, MANNER._replace(total_seconds=0.4, max_bytes=1_000_000))
    assert (reply.value, reply.reason, reply.detail) == (None, "timeout", "no whole answer in 0.4 s")


FLOODS = {
    "a body to the end of the connection": START + b"\r\n",
    "a body of a length": START + b"Content-Length: 14000000000\r\n\r\n",
    "chunks": START + b"Transfer-Encoding: chunked\r\n\r\n",
    "headers": START,
}


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_ends_at_the_size(kind):
    sent = 0

    def flood():
        nonlocal sent
        yield FLOODS[kind]
        part = {"chunks": b"400\r\n" + b"1" * 1024 + b"\r\n", "headers": b"A: b\r\n" * 100}.get(kind, b"1" * 1024)
        for _ in itertools.count():
            sent += len(part)
            yield part

    with sending(flood) as url:
        reply = post(url, {}, MANNER._replace(num_tries=1))
    assert reply.reason == ("unreachable" if kind == "headers" else "too_large")
    assert sent < 100_000_000  # what was read, and the buffers of two sockets: a system may give each 32 MB


def test_a_body_that_ends_early_is_no_answer_and_asked_for_again():
    tries = []

    def short():
        tries.append(1)
        yield START + b"Content-Length: 100\r\n\r\n{}"

    with sending(short) as url:
        assert post(url, {}, MANNER).reason == "unreachable"
    assert len(tries) == 3


def test_a_redirect_is_not_followed():
    asked = []

    def elsewhere():
        asked.append(1)
        yield b"HTTP/1.1 307 Temporary\r\nContent-Length: 0\r\nLocation: " + target.encode() + b"\r\n\r\n"

    def other():
        asked.append("followed")
        yield START + b"Content-Length: 1\r\n\r\n1"

    with sending(other) as target, sending(elsewhere) as url:
        assert post(url, {}, MANNER._replace(key=Key("a-key"))).reason == "http_307"
    assert asked == [1]


def test_a_server_says_how_long_to_wait_and_is_not_waited_for_beyond_the_time():
    tries = []

    def busy():
        tries.append(time.monotonic())
        wait = b"0.2" if len(tries) == 1 else b"60"
        yield b"HTTP/1.1 429 Busy\r\nContent-Length: 0\r\nRetry-After: " + wait + b"\r\n\r\n"

    with sending(busy) as url:
        assert post(url, {}, MANNER._replace(total_seconds=50.0)).reason == "http_429"
    assert len(tries) == 2
    assert tries[1] - tries[0] >= 0.2


def test_an_empty_answer_is_asked_for_again():
    bodies = iter([b"", b" ", b'{"text": ""}', b'{"text": "x"}'])

    def answer():
        body = next(bodies)
        yield START + f"Content-Length: {len(body)}\r\n\r\n".encode() + body

    with sending(answer) as url:
        reply = post(url, {}, MANNER._replace(num_tries=9), is_empty=lambda value: not value["text"])
    assert (reply.value, reply.reason) == ({"text": "x"}, None)


def test_a_nested_body_is_no_answer():
    body = b"[" * 200_000
    with sending(lambda: [START + f"Content-Length: {len(body)}\r\n\r\n".encode() + body]) as url:
        assert post(url, {}, MANNER._replace(max_bytes=1_000_000)).reason == "malformed"


def test_a_retry_is_announced():
    key, told = Key("s3cret"), []
    with serving(lambda path, question: (503, b"s3cret is wrong")) as asked:
        limits = QUICK._replace(key=key)
        post(asked.url, {}, limits, on_retry=lambda reply, number: told.append((reply.reason, reply.detail, number)))
        assert told == [("http_503", "[key] is wrong", 2), ("http_503", "[key] is wrong", 3)]
