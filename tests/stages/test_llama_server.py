"""`sample` and `judge` against a real llama.cpp server: repeats, both orders, kills, keys, prompts that are too long.

The tiny model's verdicts are random but depend on the prompt: what is tested is that all of them are read as the
server gives them, and that none is lost, invented or asked for twice.
"""

import json
import math
import random
import signal
from itertools import chain

import msgspec
import pytest

import warm_process
from llama_server import ALIAS, llama_serving
from steelyard.core.comparison import Request
from steelyard.core.errors import FailuresError, ModelError
from steelyard.core.plugins import build
from steelyard.core.types import Response
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.ledger import open_ledger
from steelyard.io.run_state import STATE_FILE
from steelyard.judging.planning import plan_comparisons
from steelyard.stages.judge import Config, judge
from steelyard.stages.sample import Config as Sampling
from steelyard.stages.sample import sample
from strategies import case

pytestmark = pytest.mark.slow

WORDS = "river stone cloud engine theory garden number violet winter copper 天平 砝码 重量 秤杆".split()  # noqa: SIM905
KEY = "sk-steelyard-test-8f31c0"
JUDGE = {"style": "first_token", "least_odds": 0.001}
SECONDS = 600


def text(place, length):
    return " ".join(random.Random(place).choices(WORDS, k=length))


def pairs(number):
    """Return cases of two responses each."""
    for place in range(number):
        answers = tuple(Response(id=name, text=text(place + shift, 12)) for shift, name in ((1000, "a"), (2000, "b")))
        yield msgspec.structs.replace(case(f"p{place}", "", text=text(place, 8)), responses=answers)


@pytest.fixture
def cases(tmp_path):
    write_cases(tmp_path / "cases.jsonl", pairs(12))
    return tmp_path / "cases.jsonl"


def chat(url, **settings):
    return {"base_url": url, "model": ALIAS, "workers": 2, **settings}


def stored(folder):
    with open_ledger(folder / "replies.sqlite") as ledger:
        return {reply.request: reply for reply in ledger.replies()}


def clear_label(reply):
    """The likelier label of a reply; null where it is not much likelier, since rounding differs from batch to batch."""
    odds = {
        label: sum(math.exp(one.logprob) for one in reply.first_token if one.token.strip().upper() == label)
        for label in "AB"
    }
    first, second = (math.log(odds[label] or 1e-9) for label in "AB")
    return None if abs(first - second) < 0.1 else "A" if first > second else "B"


def verdict_of(first, second):
    """The verdict of two orders' labels, the second for the responses in reverse."""
    unswapped = {"A": "left", "B": "right"}[first]
    return unswapped if {"A": "right", "B": "left"}[second] == unswapped else "tie"


def test_both_orders_give_the_verdicts_of_the_server_s_odds(llama, cases, tmp_path):
    run = judge(cases, tmp_path / "out", Config(chat=chat(llama), judge=JUDGE, num_resamples=50))
    # The likelier label of each question, by a client that asks one after another.
    judging = build("judges", "pairwise", JUDGE)
    comparisons = [one for each in pairs(12) for one in plan_comparisons(each, "pairs", seed=0)]
    questions = [
        Request(id=f"{place}.{order}", question=question)
        for place, comparison in enumerate(comparisons)
        for order, question in enumerate(judging.questions(comparison))
    ]
    asking = build("chats", "openai_compatible", chat(llama, workers=1))
    labels = {reply.request: clear_label(reply) for reply in asking.ask(questions)}
    judged = list(chain.from_iterable(each.judgments for each in read_cases(tmp_path / "out" / "cases.jsonl")))
    found = {}
    for place, (comparison, one) in enumerate(zip(comparisons, judged, strict=True)):
        first, second = (labels[f"{place}.{order}"] for order in range(2))
        if first and second:
            found[place] = (one.left, one.verdict)
            assert found[place] == (comparison.responses[0].id, verdict_of(first, second))
    # The test is about something: nearly all verdicts are clear, and they differ.
    assert len(found) > 8
    assert len({verdict for _, verdict in found.values()}) > 1
    replies = stored(tmp_path / "out").values()
    used = run.summary.tokens[ALIAS]
    assert (used.num_replies, used.uncounted, used.odd_usage) == (24, 0, 0)
    assert used.prompt == sum(reply.prompt_tokens for reply in replies)
    # The instructions are shared by all requests, and cached after the first of each slot.
    assert 0 < used.cached < used.prompt


def plan(folder, url, **settings):
    models = [{"chat": chat(url, **settings), "num_responses": 2}]
    content = {"models": models, "temperature": 1.2, "max_tokens": 20, "num_responses": 2}
    (folder / "plan.json").write_text(json.dumps(content))
    return folder / "plan.json"


def test_two_samples_are_two_requests_with_seeds_of_their_own(llama, cases, tmp_path):
    run = sample(cases, plan(tmp_path, llama), tmp_path / "out", Sampling(cut_off="keep", max_truncated=1.0))
    replies = stored(tmp_path / "out")
    assert len(replies) == len({reply.seed for reply in replies.values()}) == 24
    found = list(read_cases(tmp_path / "out" / "cases.jsonl"))
    written = [one for each in found for response in each.responses for one in (response.meta or {}).get("samples", ())]
    assert {one["request"] for one in written} == {*replies}
    assert {(one["seed"], one["reply_tokens"]) for one in written} == {
        (reply.seed, reply.reply_tokens) for reply in replies.values()
    }
    ends = {"stop": "stop", "length": "length"}
    assert all(one.get("end", "stop") == ends[replies[one["request"]].finish_reason] for one in written)
    # Samples of one prompt differ, but for those that are equal by chance.
    assert sum(len(each.responses) > 3 for each in found) > 6
    assert run.summary.tokens[ALIAS].num_replies == 24


COMMANDS = {
    "judge": "judge cases.jsonl --out {out} --chat openai_compatible --base-url {url} --chat-model tiny --style"
    " first_token --set judge.least_odds=0.001 --set num_resamples=10 --set chat.workers=2",
    "sample": "sample cases.jsonl --plan plan.json --out {out} --cut-off keep --set max_truncated=1.0",
}


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_kill_loses_no_reply_and_repeats_none(verb, llama, tmp_path):
    write_cases(tmp_path / "cases.jsonl", pairs(150))
    plan(tmp_path, llama)
    words = COMMANDS[verb].format(out="out", url=llama)
    process = warm_process.command(words, tmp_path)
    while not process.ends_within(0.02):
        if num_replies(tmp_path / "out") >= 20:
            process.kill(signal.SIGKILL)
            break
    # A machine that is fast enough has ended it before the kill: all that follows holds then, too.
    assert process.wait(SECONDS).returncode in (-signal.SIGKILL, 0)
    # What it had counted and not yet committed is asked for again.
    before = stored(tmp_path / "out")
    ended = warm_process.called(words, tmp_path, seconds=SECONDS)
    assert ended.returncode == 0, ended.stderr
    after = stored(tmp_path / "out")
    assert len(after) == 300
    # A reply that was asked for again would have another time and perhaps another text.
    assert {name: after[name] for name in before} == before
    run = json.loads((tmp_path / "out" / "run.json").read_bytes())
    assert run["summary"]["tokens"][ALIAS]["num_replies"] == 300
    prompts = [each.prompt.id for each in read_cases(tmp_path / "out" / "cases.jsonl")]
    assert prompts == [f"p{place}" for place in range(150)]


def num_replies(folder):
    """The replies of a running process, as it tells others; at least as many are in its ledger."""
    if not (folder / STATE_FILE).is_file():
        return 0
    tasks = json.loads((folder / STATE_FILE).read_bytes()).get("tasks", ())
    return max((task.get("figures", {}).get("replies", 0) for task in tasks), default=0)


def test_a_prompt_over_the_context_ends_the_run_with_what_to_do(llama, tmp_path):
    long = msgspec.structs.replace(case("long", "", text="秤" * 20_000), responses=next(pairs(1)).responses)
    write_cases(tmp_path / "cases.jsonl", [*pairs(2), long])
    config = Config(chat=chat(llama), judge=JUDGE, num_resamples=50)
    with pytest.raises(FailuresError, match=r"2 of 6 requests failed \(too_long 2\)") as refused:
        judge(tmp_path / "cases.jsonl", tmp_path / "out", config)
    assert "start the server with a longer context" in str(refused.value)
    # The remedy works.
    run = judge(tmp_path / "cases.jsonl", tmp_path / "out", config, allow_failed=True)
    assert run.summary.failed == {"too_long": 2}
    (none,) = [each.judgments[0] for each in read_cases(tmp_path / "out" / "cases.jsonl") if each.prompt.id == "long"]
    assert none.verdict == "none"
    assert none.reason.startswith("failed: too_long: ")


def test_a_key_is_in_no_file(tiny_gguf, cases, tmp_path, monkeypatch):
    monkeypatch.setenv("KEY", KEY)
    with llama_serving(tiny_gguf, key=KEY) as url:
        with pytest.raises(ModelError, match="answers 401"):
            judge(cases, tmp_path / "out", Config(chat=chat(url), judge=JUDGE))
        judge(cases, tmp_path / "out", Config(chat=chat(url, secret="KEY"), judge=JUDGE), force=True)
        sample(cases, plan(tmp_path, url, secret="KEY"), tmp_path / "sampled", Sampling(max_truncated=1.0))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
