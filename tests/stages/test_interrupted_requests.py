"""A first stop signal sends nothing more and loses no reply under way; a second one stops at once."""

import json
import signal
from collections import Counter

import pytest

import warm_process
from chat_server import chatting
from reward_server import serving, worth
from steelyard.io.cases import write_cases
from strategies import case

CHAT = "--set chat.model=m --set num_resamples=10 --set judge.prompt_language=en"
# The requests of a whole run, all different, and those of them that its first chat is sent.
NUM_REQUESTS = {"judge": (48, 48), "panel": (96, 48), "sample": (24, 12), "score": (48, 48)}


@pytest.fixture(params=NUM_REQUESTS)
def verb(request, tmp_path):
    cases = [case(f"p{number}", "ab", text=f"问题 {number}", language="zh") for number in range(24)]
    write_cases(tmp_path / "cases.jsonl", cases[:12] if request.param == "sample" else cases)
    return request.param


def answering(verb):
    """A chat server, or a reward server that gets the answers one by one."""
    if verb != "score":
        return chatting("[[A]]")
    return serving(lambda path, question: {"data": [{"index": 0, "probs": [worth(question["messages"])]}]})


def started(verb, folder, url):
    """Start the verb. The server of the panel's members and of the models is one, under two names."""
    names = ("one", "two")
    if verb == "judge":
        words = f"judge cases.jsonl --out out --chat openai_compatible --set chat.base_url={url} {CHAT}"
        return warm_process.command(words, folder)
    if verb == "score":
        model = f"--model remote --set model.url={url} --set model.dialect=vllm_classify --set model.model=rm"
        words = f"score cases.jsonl {model} --set model.workers=8 --set self_test=false --out out"
        return warm_process.command(words, folder)
    if verb == "panel":
        members = [f'[[members]]\nchat = {{base_url = "{url}", model = "{name}"}}\n' for name in names]
        (folder / "panel.toml").write_text("num_resamples = 10\nallow_even = true\n" + "".join(members))
        return warm_process.command("judge cases.jsonl --out out --config panel.toml", folder)
    models = [{"chat": {"base_url": url, "model": name}} for name in names]
    (folder / "plan.json").write_text(json.dumps({"models": models}))
    return warm_process.command("sample cases.jsonl --plan plan.json --out out", folder)


def until(process, is_met):
    while not is_met():
        assert not process.ends_within(0.01), process.wait()


def questions(server):
    return Counter(json.dumps(question, sort_keys=True) for question in server.questions)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_replies_under_way_are_awaited_and_asked_for_once(verb, number, tmp_path):
    num_requests, num_first = NUM_REQUESTS[verb]
    with answering(verb) as server:
        with server.silent(after=3):
            process = started(verb, tmp_path, server.url)
            # Eight at a time, of which three are answered, so that three more are sent.
            until(process, lambda: len(server.questions) == 11)
            process.kill(number)
            until(process, lambda: "under way" in process.stderr())
        ended = process.wait()
        assert ended.returncode == 128 + number, ended.stderr
        assert "waiting for 8 replies under way (Ctrl-C again stops at once)" in ended.stderr
        assert "the same command continues from there" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert len(server.questions) == 11 < num_first
        assert started(verb, tmp_path, server.url).wait().returncode == 0
    assert set(questions(server).values()) == {1}
    assert len(server.questions) == num_requests
    if verb == "score":
        lines = [json.loads(line) for line in (tmp_path / "out/scores.jsonl").read_text("utf-8").splitlines()]
        assert [line["prompt"] for line in lines] == [f"p{number}" for number in range(24)]
        assert all(list(line["scores"]) == ["a", "b"] and not line["unscored"] for line in lines)
        rewards = [score for line in lines for score in line["scores"].values()]
        assert sorted(rewards) == sorted(worth(question["messages"]) for question in server.questions)


@pytest.mark.slow
def test_a_second_signal_stops_at_once(verb, tmp_path):
    num_requests, _ = NUM_REQUESTS[verb]
    with answering(verb) as server:
        with server.silent(after=3):
            process = started(verb, tmp_path, server.url)
            until(process, lambda: len(server.questions) == 11)
            process.kill(signal.SIGINT)
            until(process, lambda: "under way" in process.stderr())
            # A signal right after the first is the same one.
            while not process.ends_within(0.5):
                process.kill(signal.SIGINT)
            ended = process.wait()
        assert ended.returncode == 130, ended.stderr
        assert "the same command continues from there" in ended.stderr
        assert started(verb, tmp_path, server.url).wait().returncode == 0
    # The eight that were under way are asked for again.
    assert Counter(questions(server).values()) == {1: num_requests - 8, 2: 8}
