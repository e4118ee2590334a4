import time

import pytest

from reward_server import serving
from steelyard.io.credentials import Key
from steelyard.io.exchange import Manner, post

QUICK = Manner(timeout_seconds=5.0, num_tries=3, wait_seconds=0.01, key=Key())


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
    assert 0.3 <= time.monotonic() - before < 3


def test_no_json_no_server_and_no_answer_in_time():
    with serving(lambda path, question: (200, b"<html>")) as asked:
        assert post(asked.url, {}, QUICK).reason == "malformed"
    assert post(asked.url, {}, QUICK).reason == "unreachable"

    def slow(path, question):
        time.sleep(0.4)
        return 1

    with serving(slow) as asked:
        assert post(asked.url, {}, QUICK._replace(timeout_seconds=0.05, num_tries=1)).reason == "timeout"
