"""Runs of `judge` and `sample` through batch files: the same results as live ones, whatever comes back and when."""

import json
import shutil
import signal
import sqlite3

import msgspec
import pytest

import steelyard as sy
import warm_process
from batch_service import answer_batches, expired, failed_by_vllm, requests_in, result, write_results
from chat_server import chatting, completion, preferring, record
from steelyard.core.errors import (
    ConfigError,
    FailuresError,
    FileError,
    ModelError,
    OutputError,
    RecordError,
    UserError,
    WaitingError,
)
from steelyard.io.cases import write_cases
from steelyard.io.ledger import open_ledger
from steelyard.judging.panel import PanelMember
from steelyard.judging.run_status import JudgeStatus
from steelyard.recipes import run as recipe_run
from steelyard.recipes.recipe import read_recipe
from steelyard.stages.judge import Config, judge
from steelyard.stages.judge import forecast as forecast_judging
from steelyard.stages.judge import status as judging_status
from steelyard.stages.sample import sample
from strategies import case

CASES = [case(f"p{number}", "abc", text=f"问题 {number}：ما هو؟", language="zh") for number in range(4)]
"""Four prompts of three pairs, each in both orders: 24 requests."""


@pytest.fixture
def cases(tmp_path):
    write_cases(tmp_path / "cases.jsonl", CASES)
    return tmp_path / "cases.jsonl"


def at(server, **settings):
    chat = {"base_url": server.url, "model": "m", "num_tries": 1, "workers": 3}
    return Config(chat=chat, **({"judge": {"prompt_language": "en"}, "num_resamples": 20} | settings))


def by_model(question):
    """Prefer the answer c, under the name of the model that was asked."""
    return completion(preferring("answer c")(question), model=question["model"])


def replies_of(out):
    with open_ledger(out / "replies.sqlite") as ledger:
        return {reply.request: reply for reply in ledger.replies()}


def waits(run, *words):
    with pytest.raises(WaitingError) as stopped:
        run()
    for word in words:
        assert word in str(stopped.value)
    return stopped.value


def contents(out, *names):
    return [(out / name).read_bytes() for name in names]


def test_a_batch_run_ends_as_a_live_one(cases, tmp_path):
    folder = tmp_path / "batches"
    with chatting(by_model) as server:
        config = at(server, price=(2.0, 10.0))
        live = judge(cases, tmp_path / "live", config)
        sent = {json.dumps(question, sort_keys=True) for question in server.questions}
        server.questions.clear()
        waits(
            lambda: judge(cases, tmp_path / "out", config, batch=folder), "24 requests wait in 1 batch", "m.jsonl (24"
        )
        assert server.questions == []
        (requests,) = requests_in(folder).values()
        assert {json.dumps(request["body"], sort_keys=True) for request in requests} == sent
        # The same call writes nothing twice.
        waits(lambda: judge(cases, tmp_path / "out", config, batch=folder), "24 requests wait in 1 batch")
        assert len(requests_in(folder)) == 1
        answer_batches(folder, server)
        done = judge(cases, tmp_path / "out", config, batch=folder)
    assert done.summary == live.summary
    assert contents(tmp_path / "out", "cases.jsonl", "unparsed.jsonl") == contents(
        tmp_path / "live", "cases.jsonl", "unparsed.jsonl"
    )
    found, expected = replies_of(tmp_path / "out"), replies_of(tmp_path / "live")
    assert {id_: msgspec.structs.replace(one, batch=None) for id_, one in found.items()} == {
        id_: msgspec.structs.replace(one, seconds=None) for id_, one in expected.items()
    }
    assert {one.batch for one in found.values()} == {"batch-0001-m.jsonl"}
    assert not list(folder.glob(".*"))


def test_requests_without_an_answer_go_into_the_next_batch(cases, tmp_path):
    folder, asked = tmp_path / "batches", []

    def fails(request):
        asked.append(request["custom_id"])
        failures = [expired(request), failed_by_vllm(request), result(request, 429, {"error": {"message": "busy"}})]
        return failures[len(asked) % 3] if len(asked) <= 9 else None

    with chatting(by_model) as server:
        config = at(server)
        straight = judge(cases, tmp_path / "straight", config)
        waits(lambda: judge(cases, tmp_path / "out", config, batch=folder))
        answer_batches(folder, server, fails=fails)
        waits(lambda: judge(cases, tmp_path / "out", config, batch=folder), "9 requests wait in 1 batch", "0002-m")
        with open_ledger(tmp_path / "out" / "replies.sqlite") as ledger:
            assert len(ledger) == 15
            assert ledger.failures() == {"batch_expired": 3, "http_400": 3, "http_429": 3}
        (second,) = requests_in(folder).values()
        assert sorted(request["custom_id"] for request in second) == sorted(asked[:9])
        with (folder / "second.jsonl").open("w", encoding="utf-8", newline="\r\n") as file:
            for request in second:
                body = by_model(request["body"])
                file.write(json.dumps(result(request, 200, body), ensure_ascii=False) + "\n")
        done = judge(cases, tmp_path / "out", config, batch=folder)
    assert done.summary.judges == straight.summary.judges
    assert contents(tmp_path / "out", "cases.jsonl") == contents(tmp_path / "straight", "cases.jsonl")


def test_failures_can_be_left_without_a_verdict(cases, tmp_path):
    folder = tmp_path / "batches"
    with chatting(by_model) as server:
        waits(lambda: judge(cases, tmp_path / "out", at(server), batch=folder))
        ids = [one["custom_id"] for one in next(iter(requests_in(folder).values()))][:2]
        answer_batches(folder, server, fails=lambda one: expired(one) if one["custom_id"] in ids else None)
        done = judge(cases, tmp_path / "out", at(server), batch=folder, allow_failed=True)
    assert done.summary.failed == {"batch_expired": 2}
    assert done.summary.judges["m"].outcomes["failed"] == 1  # one pair, in both orders
    assert [path.name for path in folder.glob("batch-0002*")] == []


def test_a_reply_that_the_model_refused_is_a_reply_and_no_verdict(cases, tmp_path):
    def refusing(question):
        return completion(None, model="m", refusal="I cannot compare these.")

    with chatting(refusing) as server:
        waits(lambda: judge(cases, tmp_path / "out", at(server), batch=tmp_path / "batches"))
        answer_batches(tmp_path / "batches", server)
        done = judge(cases, tmp_path / "out", at(server), batch=tmp_path / "batches")
    assert done.summary.judges["m"].outcomes == {"refused": 12}


def test_a_live_run_asks_nothing_that_waits_until_it_is_released(cases, tmp_path):
    folder, out = tmp_path / "batches", tmp_path / "out"
    with chatting(by_model) as server:
        waits(lambda: judge(cases, out, at(server), batch=folder))
        error = waits(lambda: judge(cases, out, at(server)), "24 requests wait", "batch-0001-m.jsonl (24 since 20")
        assert "release_batch=all" in error.do
        assert server.questions == []
        status = judging_status(out)
        assert isinstance(status, JudgeStatus)
        assert status.status.state == "waiting"
        (batch,) = status.status.batches
        assert (batch.name, batch.num_waiting, batch.num_requests) == ("batch-0001-m.jsonl", 24, 24)
        with pytest.raises(ConfigError, match=r"no batch 'batch-0002'(.|\n)*batch-0001-m.jsonl"):
            judge(cases, out, at(server), release_batch="batch-0002")
        assert server.questions == []
        judge(cases, out, at(server), release_batch="batch-0001-m.jsonl")
        assert len(server.questions) == 24


def test_a_late_result_of_a_released_batch_is_used_where_nothing_else_came(cases, tmp_path):
    folder, out = tmp_path / "batches", tmp_path / "out"
    with chatting(by_model) as server:
        waits(lambda: judge(cases, out, at(server), batch=folder))
        first = requests_in(folder)["batch-0001-m.jsonl"]
        (folder / "batch-0001-m.jsonl").unlink()
        waits(lambda: judge(cases, out, at(server), batch=folder, release_batch="all"), "24 requests", "batch-0002-m")
        second = requests_in(folder)["batch-0002-m.jsonl"]
        assert [one["custom_id"] for one in second] == [one["custom_id"] for one in first]
        late = [result(one, 200, by_model(one["body"])) for one in first]
        write_results(folder / "late.jsonl", late)
        waiting = lambda: judge(cases, out, at(server), batch=folder)  # noqa: E731
        waiting()
        # Those of the second batch, which differ, come after the end: the run is finished, and reads nothing.
        write_results(folder / "second.jsonl", [one | {"id": "other"} for one in late])
        waiting()
    assert len(replies_of(out)) == 24


def test_results_that_come_in_parts_and_again_are_read_once(cases, tmp_path):
    folder, out = tmp_path / "batches", tmp_path / "out"
    with chatting(by_model) as server:
        waits(lambda: judge(cases, out, at(server), batch=folder))
        (requests,) = requests_in(folder).values()
        results = [result(one, 200, by_model(one["body"])) for one in requests]
        write_results(folder / "part.jsonl", results[:10])
        waits(lambda: judge(cases, out, at(server), batch=folder), "14 requests wait")
        write_results(folder / "copy.jsonl", results[:10])
        waits(lambda: judge(cases, out, at(server), batch=folder), "14 requests wait")
        write_results(folder / "part.jsonl", results[:17])
        waits(lambda: judge(cases, out, at(server), batch=folder), "7 requests wait")
        (folder / "part.jsonl").write_bytes(b"\xef\xbb\xbf" + (folder / "part.jsonl").read_bytes())
        write_results(folder / "whole.jsonl", results)
        done = judge(cases, out, at(server), batch=folder)
    assert done.summary.tokens["m"].num_replies == 24


def test_panels_and_repeats_have_files_of_one_model(cases, tmp_path):
    folder = tmp_path / "batches"
    with chatting(by_model) as server:
        members = tuple(
            PanelMember(chat={"base_url": server.url, "model": name}, judge={"orders": "one", "prompt_language": "en"})
            for name in ("org/one", "two", "三")
        )
        config = Config(members=members, repeats=2, num_resamples=20)
        waits(lambda: judge(cases, tmp_path / "out", config, batch=folder), "72 requests wait in 3 batches")
        files = requests_in(folder)
        assert list(files) == ["batch-0001-org-one.jsonl", "batch-0002-two.jsonl", "batch-0003-model.jsonl"]
        assert [{line["body"]["model"] for line in lines} for lines in files.values()] == [{"org/one"}, {"two"}, {"三"}]
        assert [len(lines) for lines in files.values()] == [24, 24, 24]
        answer_batches(folder, server)
        done = judge(cases, tmp_path / "out", config, batch=folder)
        live = judge(cases, tmp_path / "live", config)
    assert done.summary == live.summary


def test_samples_of_several_turns_come_turn_by_turn(tmp_path):
    turns = [case("p0", "", text="问题", language="zh"), case("p1", "", text="另一个", language="zh")]
    turns[0] = msgspec.structs.replace(
        turns[0], prompt=msgspec.structs.replace(turns[0].prompt, meta={"turns": ["再说一遍。"]})
    )
    write_cases(tmp_path / "cases.jsonl", turns)

    def echo(question):
        text = f"{question.get('seed')} {question['messages'][-1]['content']} {len(question['messages'])}"
        return completion(text, model=question["model"])

    with chatting(echo) as server:
        models = [
            {
                "chat": {"base_url": server.url, "model": name},
                "num_responses": 2,
                "price": {"input": 1.0, "output": 1.0},
            }
            for name in ("one", "two")
        ]
        (tmp_path / "plan.json").write_text(json.dumps({"models": models, "temperature": 0.9}))
        plan, folder = tmp_path / "plan.json", tmp_path / "batches"
        live = sample(tmp_path / "cases.jsonl", plan, tmp_path / "live")
        num_calls = 0
        while True:
            num_calls += 1
            try:
                done = sample(tmp_path / "cases.jsonl", plan, tmp_path / "out", batch=folder)
                break
            except WaitingError:
                answer_batches(folder, server)
            assert num_calls < 5
    assert done.summary == live.summary
    assert contents(tmp_path / "out", "cases.jsonl") == contents(tmp_path / "live", "cases.jsonl")
    assert all(len(list(folder.glob(f"batch-*-{name}.jsonl"))) == num_calls - 1 for name in ("one", "two"))


def test_replies_of_batches_cost_their_share(cases, tmp_path):
    (tmp_path / "prices.toml").write_text("[m]\ninput = 2.0\noutput = 10.0\nbatch = 0.5\n")
    with chatting(by_model) as server:
        prices = {"prices": tmp_path / "prices.toml"}
        (forecast,) = forecast_judging(cases, tmp_path / "out", at(server), **prices).models
        assert forecast.cost > 0
        assert forecast.batch_cost == pytest.approx(forecast.cost / 2)
        waits(lambda: judge(cases, tmp_path / "out", at(server), batch=tmp_path / "b", **prices))
        answer_batches(tmp_path / "b", server)
        done = judge(cases, tmp_path / "out", at(server), batch=tmp_path / "b", **prices)
    # 24 replies of 7 and 3 tokens, at half of (168 * 2 + 72 * 10) / 10^6
    assert done.summary.tokens["m"].cost == pytest.approx(0.000528)


@pytest.mark.parametrize(
    ("chat", "message"),
    [({"kind": "recorded"}, "a recorded chat cannot"), ({"kind": "token_probabilities"}, "a token_probabilities chat")],
)
def test_chats_without_batches_say_so(cases, tmp_path, chat, message):
    record(tmp_path / "r.jsonl", {"text": "[[A]]"})
    own = (
        {"path": str(tmp_path / "r.jsonl")} if chat["kind"] == "recorded" else {"base_url": "http://x/v1", "model": "m"}
    )
    with pytest.raises(ConfigError, match=f"{message}(.|\n)*do: leave out batch"):
        judge(cases, tmp_path / "out", Config(chat=chat | own), batch=tmp_path / "b")
    assert not (tmp_path / "b").exists()
    assert not (tmp_path / "out").exists()


def test_options_without_an_effect_are_refused(cases, tmp_path):
    config = Config(chat={"base_url": "http://x/v1", "model": "m"})
    with pytest.raises(ConfigError, match="a ceiling stops requests that are sent"):
        judge(cases, tmp_path / "out", config, batch=tmp_path / "b", max_failed=3)
    with pytest.raises(ConfigError, match="batch files in the folder of the run"):
        judge(cases, tmp_path / "out", config, batch=tmp_path / "x" / ".." / "out")
    with pytest.raises(ConfigError, match="no results without a batch folder"):
        judge(cases, tmp_path / "out", config, any_batch_model=True)


def test_futile_results_write_no_further_batch(cases, tmp_path):
    folder = tmp_path / "b"
    with chatting(lambda question: completion("Well, ", "length", model="m")) as server:
        waits(lambda: judge(cases, tmp_path / "out", at(server), batch=folder))
        answer_batches(folder, server)
        with pytest.raises(ModelError, match="24 of 24 replies were cut off"):
            judge(cases, tmp_path / "out", at(server), batch=folder)
        waits(lambda: judge(cases, tmp_path / "failed", at(server), batch=tmp_path / "f"))
        answer_batches(tmp_path / "f", server, fails=expired)
        with pytest.raises(FailuresError, match="all 24 results are failures"):
            judge(cases, tmp_path / "failed", at(server), batch=tmp_path / "f")
        assert len(list((tmp_path / "f").glob("batch-????-m.jsonl"))) == 1
        waits(lambda: judge(cases, tmp_path / "failed", at(server), batch=tmp_path / "f"), "batch-0002-m")


@pytest.mark.slow
def test_the_command_line_waits_with_exit_code_three(cases, tmp_path):
    with chatting(by_model) as server:
        words = f"judge cases.jsonl --base-url {server.url} --chat-model m --set judge.prompt_language=en --out out"
        waiting = warm_process.command(f"{words} --batch batches", tmp_path).wait()
        assert waiting.returncode == 3
        assert "wrote batches/batch-0001-m.jsonl: 24 requests\nwaiting: batches: 24 requests wait" in waiting.stderr
        refused = warm_process.command(words, tmp_path).wait()
        assert refused.returncode == 3
        assert server.questions == []
        status = warm_process.command(f"{words} --status", tmp_path).wait()
        assert status.returncode == 0
        assert "out is waiting" in status.stdout
        assert "batch-0001-m.jsonl: 24 of 24 requests wait since 20" in status.stdout
        # The remedy, as it is printed.
        assert "release_batch=all" in refused.stderr
        assert warm_process.command(f"{words} --release-batch all", tmp_path).wait().returncode == 0
        assert len(server.questions) == 24


def test_python_takes_the_same_options(cases, tmp_path):
    with chatting(by_model) as server:
        asked = {"chat": {"base_url": server.url, "model": "m"}, "judge": {"prompt_language": "en"}}
        with pytest.raises(ConfigError, match="do: name a folder for the result: out=FOLDER"):
            sy.judge(cases, batch=tmp_path / "b", **asked)
        asked["out"] = tmp_path / "out"
        error = waits(lambda: sy.judge(cases, batch=tmp_path / "b", **asked), "24 requests wait")
        assert 'run the same again; release_batch="all" asks these requests again' in error.do
        answer_batches(tmp_path / "b", server)
        assert sy.judge(cases, batch=tmp_path / "b", **asked).summary.tokens["m"].num_replies == 24
        plan = {"models": [{"chat": asked["chat"]}]}
        waits(lambda: sy.sample(cases, plan=plan, batch=tmp_path / "s", out=tmp_path / "sampled"), "4 requests wait")


def text_of(line):
    return (json.dumps(line, ensure_ascii=False) + "\n").encode()


def changed(line, **fields):
    return text_of(line | fields)


BROKEN = {
    "a line that is cut": (lambda good: text_of(good[0]) + text_of(good[1])[:-30], RecordError, 2, "line is cut off"),
    "an unknown id": (lambda good: changed(good[0], custom_id="0123"), RecordError, 1, "no batch of this run has"),
    "another answer": (
        lambda good: text_of(good[0]) + changed(good[0], id="other"), RecordError, 2, "has another result already"
    ),
    "no body": (
        lambda good: changed(good[0], response={"status_code": 200}), RecordError, 1, "status 200 without a body"
    ),
    "another body": (
        lambda good: changed(good[0], response={"status_code": 200, "body": {"data": []}}), RecordError, 1,
        "no chat completion",
    ),
    "neither": (lambda good: changed(good[0], response=None), RecordError, 1, "neither a response nor an error"),
    "both": (lambda good: changed(good[0], error={"code": "x"}), RecordError, 1, "both an answer and an error"),
    "no status": (lambda good: changed(good[0], response={"body": {}}), RecordError, 1, "status_code"),
    "a list": (lambda good: b"[1]\n", RecordError, 1, "not a result"),
    "a key twice": (lambda good: text_of(good[0])[:-2] + b', "error": 1}\n', RecordError, 1, "given twice"),
    "another model": (
        lambda good: text_of(good[0]) + changed(
            good[1], response={"status_code": 200, "body": completion("[[A]]", model="x")}
        ), RecordError, 2, "a reply of the model 'x', where 'm' was asked",
    ),
    "not UTF-8": (lambda good: text_of(good[0]) + b'{"custom_id": "\xff"}\n', UserError, 2, "UTF-8|utf-8"),
    "empty": (lambda good: b"", FileError, None, "the file is empty"),
    "packed": (lambda good: b"\x1f\x8b123", FileError, None, "the gzip file is cut off"),
    "requests": (
        lambda good: text_of({"custom_id": "1", "method": "POST", "url": "/v1", "body": {}}), RecordError, 1,
        "a file of requests that this run did not write",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_results_change_nothing(name, cases, tmp_path):
    make, kind, line, message = BROKEN[name]
    folder, out = tmp_path / "batches", tmp_path / "out"
    with chatting(by_model) as server:
        waits(lambda: judge(cases, out, at(server), batch=folder))
        (requests,) = requests_in(folder).values()
        good = [result(one, 200, by_model(one["body"])) for one in requests]
        (folder / "results.jsonl").write_bytes(make(good))
        before = rows(out)
        with pytest.raises(kind, match=message) as refused:
            judge(cases, out, at(server), batch=folder)
        where = str(folder / "results.jsonl") + ("" if line is None else f":{line}")
        assert str(refused.value.where) == where
        assert rows(out) == before
        assert sorted(path.name for path in folder.iterdir()) == ["batch-0001-m.jsonl", "results.jsonl"]
        write_results(folder / "results.jsonl", good)
        judge(cases, out, at(server), batch=folder)


def rows(out):
    """Every row of a ledger."""
    with sqlite3.connect(out / "replies.sqlite") as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    connection.close()
    return found


def test_another_name_of_the_model_can_be_accepted(cases, tmp_path):
    folder, out = tmp_path / "batches", tmp_path / "out"
    with chatting(lambda question: completion("[[A]]", model="deployment")) as server:
        waits(lambda: judge(cases, out, at(server), batch=folder))
        answer_batches(folder, server)
        with pytest.raises(RecordError, match="any_batch_model=true"):
            judge(cases, out, at(server), batch=folder)
        done = judge(cases, out, at(server), batch=folder, any_batch_model=True)
    assert done.summary.tokens["m"].other_models == {"deployment": 24}


def test_services_may_add_a_date_to_the_name_of_a_model(cases, tmp_path):
    out, num_answers = tmp_path / "out", 0
    reported = {"org/gpt-4o-mini": ("gpt-4o-mini-2024-07-18", True), "gpt-4": ("gpt-4-0613", True),
                "sonnet-latest": ("sonnet-20241022", True), "gpt-4o": ("gpt-4o-mini", False),
                "gpt-5": ("gpt-5-1", False)}  # fmt: skip
    with chatting(lambda question: completion("[[A]]", model=reported[question["model"]][0])) as server:
        for place, (name, (_, is_same)) in enumerate(reported.items()):
            config = Config(chat={"base_url": server.url, "model": name}, num_resamples=20)
            out, folder = tmp_path / f"out{place}", tmp_path / f"b{place}"
            waits(lambda: judge(cases, out, config, batch=folder))  # noqa: B023
            answer_batches(folder, server)
            if is_same:
                num_answers += judge(cases, out, config, batch=folder).summary.tokens[name].num_replies
            else:
                with pytest.raises(RecordError, match="a reply of the model"):
                    judge(cases, out, config, batch=folder)
    assert num_answers == 3 * 24


def test_folders_that_cannot_serve_are_refused(cases, tmp_path):
    config = Config(chat={"base_url": "http://x/v1", "model": "m"})
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="batch names a file"):
        judge(cases, tmp_path / "out", config, batch=tmp_path / "file")
    with pytest.raises(OutputError, match="cannot be written"):
        judge(cases, tmp_path / "out", config, batch=tmp_path / "file" / "below")
    folder = tmp_path / "batches"
    waits(lambda: judge(cases, tmp_path / "out", config, batch=folder))
    # The folder belongs to one run: another one would read its requests as results.
    with pytest.raises(RecordError, match="a file of requests that this run did not write"):
        judge(cases, tmp_path / "other", config, batch=folder)
    (folder / "results.jsonl.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(FileError, match="packed file"):
        judge(cases, tmp_path / "out", config, batch=folder)
    (folder / "results.jsonl.gz").unlink()
    with (folder / "batch-0001-m.jsonl").open("ab") as file:
        file.write(b"\n")
    with pytest.raises(FileError, match="was changed since it was written"):
        judge(cases, tmp_path / "out", config, batch=folder)


KILLING = """
import os, signal, sys
from pathlib import Path
from steelyard.core.errors import WaitingError
from steelyard.stages.judge import Config, judge

NAMES = ("batches.py", "batch_files.py", "batch_marks.py", "ledger.py", "atomic.py")
done, committed = 0, 0

def count(frame, event, argument):
    global done, committed
    if not frame.f_code.co_filename.endswith(NAMES):
        return None
    if event == "line":
        done += 1
        if done == {goal}:
            os.kill(os.getpid(), signal.SIGKILL)
    if event == "return" and frame.f_code.co_name == "finish":
        committed = done
    return count

config = Config(chat={chat!r}, judge={judge!r}, num_resamples=20)
sys.settrace(count)
try:
    judge(Path({cases!r}), Path({out!r}), config, batch=Path({folder!r}))
except WaitingError:
    pass
finally:
    sys.settrace(None)
print(committed, done)
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False], ids=["writing", "reading and writing"])
def test_a_kill_at_any_line_loses_nothing_and_asks_nothing_twice(is_first, cases, tmp_path):
    before, out, folder = tmp_path / "before", tmp_path / "now" / "out", tmp_path / "now" / "batches"
    (tmp_path / "now").mkdir()
    with chatting(by_model) as server:
        config = at(server)

        def run(goal):
            paths = {"cases": str(cases), "out": str(out), "folder": str(folder)}
            script = KILLING.format(goal=goal, chat=config.chat, judge=config.judge, **paths)
            return warm_process.Process(["-c", script]).wait()

        if not is_first:  # five of the requests failed in a batch, and go into the next one
            waits(lambda: judge(cases, out, config, batch=folder))
            failing = [one["custom_id"] for one in requests_in(folder)["batch-0001-m.jsonl"][:5]]
            answer_batches(folder, server, fails=lambda one: expired(one) if one["custom_id"] in failing else None)
        shutil.copytree(tmp_path / "now", before)
        ended = run(0)
        assert ended.returncode == 0, ended.stderr
        committed, last = map(int, ended.stdout.split())
        assert 0 < committed < last
        straight, names = rows(out), sorted(path.name for path in folder.iterdir())
        # Lines of the whole call, and closer ones from where the requests are marked to its end.
        goals = {*range(1, committed, committed // 6), *range(committed, last, max((last - committed) // 12, 1))}
        for goal in sorted(goals):
            shutil.rmtree(tmp_path / "now")
            shutil.copytree(before, tmp_path / "now")
            assert run(goal).returncode == -signal.SIGKILL
            seen = {name: lines for name, lines in visible(folder).items() if lines}
            assert run(0).returncode == 0
            now = visible(folder)
            assert sorted(path.name for path in folder.iterdir()) == names
            # What could be sent before the next call is what is there after it, and the marks are those of one call.
            assert all(now[name] == lines for name, lines in seen.items())
            assert without_times(rows(out)) == without_times(straight)


def visible(folder):
    """The batch files that a user can send, by name."""
    return {path.name: path.read_bytes() for path in folder.glob("batch-????-m.jsonl")} if folder.exists() else {}


def without_times(found):
    return {**found, "batches": [(name, digest) for name, digest, _ in found["batches"]]}


def test_a_recipe_goes_on_after_its_batch(cases, tmp_path):
    with chatting(by_model) as server:
        chat = {"base_url": server.url, "model": "m"}
        text = f"""
[stages.judged]
verb = "judge"
cases = "cases.jsonl"
batch = "to_send"
[stages.judged.config]
chat = {{base_url = "{chat["base_url"]}", model = "m"}}
judge = {{prompt_language = "en"}}
num_resamples = 20
[stages.resolved]
verb = "resolve"
cases = "judged/cases.jsonl"
"""
        (tmp_path / "recipe.toml").write_text(text)
        recipe, out = read_recipe(tmp_path / "recipe.toml"), tmp_path / "done"
        waits(lambda: recipe_run.run(recipe, out), "24 requests wait")
        judged = {stage.step.name: stage for stage in recipe_run.plan(recipe, out)}["judged"]
        assert (judged.state, judged.num_waiting) == ("waiting", 24)
        assert judged.why.startswith("for batch files: ")
        assert "send each file to the batch service" in judged.do
        answer_batches(out / "to_send", server)
        completed = recipe_run.run(recipe, out)
    assert [stage.name for stage in completed] == ["judged", "resolved"]
    assert server.questions
    for name in ("judged", "a/b", ".x"):
        (tmp_path / "recipe.toml").write_text(text.replace("to_send", name))
        with pytest.raises(ConfigError, match="batch files in a folder"):
            read_recipe(tmp_path / "recipe.toml")
    (tmp_path / "recipe.toml").write_text(text + 'batch = "x"\n')
    with pytest.raises(ConfigError, match="unknown key 'batch'"):
        read_recipe(tmp_path / "recipe.toml")
