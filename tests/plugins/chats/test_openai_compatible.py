import json
import threading
import time

import pytest

from chat_server import chatting, completion, request, sending
from reward_server import nobody
from steelyard.core.errors import ConfigError, ModelError
from steelyard.core.plugins import build


def chat(server, **settings):
    return build("chats", "openai_compatible", {"base_url": server.url, "model": "m", **settings})


def ask(server, *requests, **settings):
    return list(chat(server, **settings).ask(requests or [request()]))


def test_what_is_sent_and_what_comes_back():
    with chatting("好 [[A]]") as server:
        (reply,) = ask(server, request("r7", "哪个？", system="Judge.", max_tokens=9), extra={"top_k": 1})
    assert server.paths == ["/v1/chat/completions"]
    assert server.questions == [
        {
            "model": "m",
            "messages": [{"role": "system", "content": "Judge."}, {"role": "user", "content": "哪个？"}],
            "max_tokens": 9,
            "temperature": 0.0,
            "top_k": 1,
        }
    ]
    assert (reply.request, reply.text, reply.failure, reply.model) == ("r7", "好 [[A]]", None, "served")
    assert (reply.prompt_tokens, reply.reply_tokens) == (7, 3)


def test_newer_words_for_newer_servers():
    with chatting() as server:
        ask(server, token_limit="max_completion_tokens", temperature=None)
    assert set(server.questions[0]) == {"model", "messages", "max_completion_tokens"}


def test_first_tokens_are_asked_for_and_read():
    body = completion("A", "length", logprobs=[("A", -0.25), ("B", -1.5)], usage=(5, 1))
    with chatting(lambda _: body) as server:
        (reply,) = ask(server, request(alternatives=5, max_tokens=1))
    assert (server.questions[0]["logprobs"], server.questions[0]["top_logprobs"]) == (True, 5)
    assert [(one.token, one.logprob) for one in reply.first_token] == [("A", -0.25), ("B", -1.5)]
    assert reply.failure == "cut off"


@pytest.mark.parametrize("failure", [429, 500, 503, "drop"])
def test_what_may_pass_is_tried_again(failure):
    with chatting() as server:
        server.failures = [failure]
        (reply,) = ask(server, num_tries=2)
    assert (reply.text, reply.failure, len(server.questions)) == ("[[A]]", None, 2)


@pytest.mark.parametrize("status", [429, 500, 400, 422])
def test_what_does_not_pass_has_failed_with_its_status(status):
    with chatting(lambda _: (status, b'{"error": {"message": "no room"}}')) as server:
        (reply,) = ask(server, num_tries=1)
    assert (reply.text, reply.failure) == (None, "failed")
    assert reply.detail.startswith(f"http_{status}: ")
    assert "no room" in reply.detail


def test_what_cannot_pass_is_not_tried_again():
    with chatting(lambda _: (400, b"{}")) as server:
        ask(server, num_tries=3)
    assert len(server.questions) == 1


def test_one_failure_among_many():
    def answer(question):
        return (500, b"") if question["messages"][-1]["content"] == "bad" else "[[B]]"

    with chatting(answer) as server:
        replies = ask(server, request("a"), request("b", "bad"), request("c"), num_tries=1)
    assert {one.request: one.failure for one in replies} == {"a": None, "b": "failed", "c": None}


def test_no_answer_in_time_has_failed():
    with chatting() as server, server.silent():
        (reply,) = ask(server, timeout_seconds=0.1, num_tries=1)
    assert (reply.failure, reply.detail) == ("failed", "timeout: no answer in 0.1 s")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>busy</html>", "malformed"),
        (b'{"choices": [', "malformed"),
        (b'"text"', "malformed"),
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"\xff\xfe", "malformed"),
        (b'{"choices": []}', "empty"),
        (b'{"choices": null}', "malformed"),
        (b'{"object": "error", "message": "x"}', "malformed"),
        (b'{"choices": [{"message": {"content": null}, "finish_reason": "stop"}]}', "empty"),
        (b'{"choices": [{"message": {"content": ["A"]}}]}', "malformed"),
    ],
)
def test_bodies_that_are_no_completion_have_failed(body, said):
    with chatting(lambda _: (200, body)) as server:
        (reply,) = ask(server, num_tries=1)
    assert reply.failure == "failed"
    assert reply.detail.startswith(said)


def test_a_body_that_is_no_json_is_shown():
    with chatting(lambda _: (200, b"<html>Just a moment")) as server:
        (reply,) = ask(server, num_tries=1)
    assert "begins '<html>Just a moment'" in reply.detail
    with chatting(lambda _: (200, b"\xef\xbb\xbf" + json.dumps(completion("[[A]]")).encode())) as server:
        assert ask(server)[0].text == "[[A]]"


def test_a_query_of_the_address_stays_behind_the_path():
    with chatting() as server:
        server.url = f"{server.url}/?api-version=2024-10-21"
        assert ask(server)[0].text == "[[A]]"
    assert server.paths == ["/v1/chat/completions?api-version=2024-10-21"]


@pytest.mark.parametrize("status", [401, 402, 403, 404, 308])
def test_a_server_that_is_asked_wrongly_ends_the_run(status):
    with (
        chatting(lambda _: (status, b'{"error": {"message": "no such model"}}')) as server,
        pytest.raises(ModelError, match=rf"answers {status}.*no such model"),
    ):
        ask(server)


def test_a_server_that_is_not_there_ends_the_run():
    with nobody() as url, pytest.raises(ModelError, match="no server answers"):
        list(build("chats", "openai_compatible", {"base_url": url, "model": "m", "num_tries": 1}).ask([request()]))


def test_a_server_that_goes_away_fails_what_is_left():
    with chatting() as server:
        chatter = chat(server, num_tries=1, workers=1)
        replies = chatter.ask([request("a"), request("b")])
        assert next(replies).text == "[[A]]"
        replies.close()
    assert [one.detail.partition(":")[0] for one in chatter.ask([request("c")])] == ["unreachable"]


def test_what_the_provider_declines_is_a_refusal():
    declined = (400, b'{"error": {"code": "content_filter", "message": "no"}}')
    with chatting(lambda _: declined) as server:
        (reply,) = ask(server)
    assert (reply.failure, reply.text) == ("refused", None)


def test_no_more_requests_at_once_than_workers():
    running, most, lock, together = 0, 0, threading.Lock(), threading.Barrier(3)

    def answer(_):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        # None is answered before three are there.
        together.wait(300)
        with lock:
            running -= 1
        return "x"

    with chatting(answer) as server:
        replies = ask(server, *(request(f"r{number}") for number in range(12)), workers=3)
    assert [reply.failure for reply in replies] == [None] * 12
    assert most == 3


def test_the_key_is_the_value_of_the_variable_and_goes_nowhere_else(monkeypatch):
    monkeypatch.setenv("MY_JUDGE_KEY", "s3cret")
    monkeypatch.setenv("OPENAI_ORG_ID", "org")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere.invalid")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:1")
    with chatting() as server:
        chatter = chat(server, secret="MY_JUDGE_KEY")
        list(chatter.ask([request()]))
    headers = {name.lower(): value for name, value in server.headers[0].items()}
    assert headers["authorization"] == "Bearer s3cret"
    assert not headers.get("openai-organization")
    assert "s3cret" not in str(chatter.protocol())


def test_a_key_that_is_not_set_is_an_error(monkeypatch):
    monkeypatch.delenv("MY_JUDGE_KEY", raising=False)
    with chatting() as server, pytest.raises(ConfigError, match="MY_JUDGE_KEY"):
        chat(server, secret="MY_JUDGE_KEY")


def test_the_name_signs():
    with chatting() as server:
        assert chat(server).name == "m"
        assert chat(server, name="judge-1").name == "judge-1"


def test_another_server_or_temperature_is_another_protocol():
    with chatting() as one, chatting() as two:
        protocols = [chat(one), chat(two), chat(one, temperature=0.5), chat(one, extra={"seed": 1})]
        assert len({str(own.protocol()) for own in protocols}) == 4
        assert chat(one).protocol() == chat(one, workers=1, num_tries=9, timeout_seconds=1.0).protocol()


def test_another_model_and_impossible_numbers_are_told_once(capsys):
    def answer(question):
        return completion("[[A]]", model="other-7b", usage=(-3, 1))

    with chatting(answer) as server:
        replies = ask(server, request("a"), request("b"), request("c"))
    assert {(one.model, one.prompt_tokens, one.reply_tokens) for one in replies} == {("other-7b", None, 1)}
    written = capsys.readouterr().err
    assert written.count("asked for 'm' and answers as 'other-7b'") == 1
    assert written.count("impossible numbers of tokens") == 1


def test_an_empty_answer_of_a_good_status_is_asked_for_again():
    texts = iter(["", "  ", "[[B]]"])
    with chatting(lambda _: next(texts)) as server:
        (reply,) = ask(server, num_tries=3, wait_seconds=0.01)
    assert (reply.text, len(server.questions)) == ("[[B]]", 3)
    with chatting("") as server:
        (reply,) = ask(server, num_tries=2, wait_seconds=0.01)
    assert (reply.failure, reply.detail, len(server.questions)) == ("failed", "empty: no text (stop)", 2)


def test_a_dripping_server_holds_no_worker_beyond_the_time():
    def drip():
        yield b"HTTP/1.1 200 OK\r\n\r\n"
        for _ in range(2000):
            time.sleep(0.03)
            yield b" "

    with sending(drip) as url:
        settings = {"base_url": url, "model": "m", "total_seconds": 0.4, "workers": 2}
        replies = list(build("chats", "openai_compatible", settings).ask([request("a"), request("b")]))
    # Whoever waits for the end gets an answer without a text.
    assert {one.detail for one in replies} == {"timeout: no whole answer in 0.4 s"}


def test_tries_without_an_answer_are_counted():
    empty = completion("")
    answers = iter(["[[A]]", empty, (503, b"full"), "[[A]]", empty, empty])
    with chatting(lambda _: next(answers)) as server:
        server.failures = ["drop"]
        asked = chat(server, num_tries=3, wait_seconds=0.01, workers=1)
        (dropped,) = asked.ask([request("a")])
        (resent,) = asked.ask([request("b")])
        server.failures = ["drop"]
        (failed,) = asked.ask([request("c")])
    assert (dropped.text, dropped.unanswered_tries) == ("[[A]]", 1)
    # The empty answer of a try that was repeated counts; a server that says that it is full computed nothing.
    assert (resent.text, resent.unanswered_tries) == ("[[A]]", 1)
    # The last empty answer has token counts, which are billed as those of a failed reply; the two before have none.
    assert (failed.failure, failed.prompt_tokens, failed.unanswered_tries) == ("failed", 7, 2)


def test_a_server_that_refuses_connections_bills_nothing():
    with nobody() as url:
        chatter = build(
            "chats", "openai_compatible", {"base_url": url, "model": "m", "num_tries": 2, "wait_seconds": 0.01}
        )
        chatter.was_answered = True  # as if the server had gone away
        (reply,) = chatter.ask([request("b")])
    assert (reply.failure, reply.unanswered_tries) == ("failed", 0)


def test_the_first_retry_and_the_first_failure_of_each_reason_are_told_once(capsys):
    with chatting(lambda _: (503, b"overloaded")) as server:
        ask(server, request("a"), request("b"), num_tries=3, wait_seconds=0.01)
    written = capsys.readouterr().err
    assert written.count("m: http_503, asking again (try 2 of 3; overloaded)") == 1
    assert written.count("asking again") == 1
    assert written.count("m: a request failed (http_503: overloaded); further ones are counted") == 1


def test_a_stop_waits_for_no_silent_server_and_sends_nothing_more():
    """Ctrl-C during a run of `judge` closes the iterator of the replies."""
    asked, free, waits = threading.Semaphore(0), threading.Event(), []

    def answer(question):
        if question["messages"][-1]["content"] == "silent":
            asked.release()
            waits.append(free.wait(300))
            return 503, b""
        return "[[A]]"

    with chatting(answer) as server:
        replies = chat(server, wait_seconds=0.01).ask([request("a"), request("b", "silent"), request("c", "silent")])
        assert next(replies).request == "a"
        assert asked.acquire(timeout=300)
        assert asked.acquire(timeout=300)
        replies.close()
        free.set()
        before = len(server.questions)
    assert len(server.questions) == before
    # The server was still silent when the iterator was closed.
    assert all(waits)


@pytest.mark.parametrize("setting", ["workers", "num_tries"])
def test_a_number_below_one_is_refused(setting):
    with chatting() as server, pytest.raises(ConfigError, match=setting):
        ask(server, **{setting: 0})
