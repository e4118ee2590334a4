import json
import os
import signal
import threading
from pathlib import Path

import msgspec
import pytest

import warm_process
from chat_server import chatting, completion, record
from steelyard.core.errors import (
    ConfigError,
    EvidenceError,
    FailuresError,
    FileError,
    ModelError,
    RecordError,
    UserError,
)
from steelyard.core.types import Message, Response
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.lines import read_toml
from steelyard.judging.sampling import choose_models
from steelyard.judging.sampling_plans import find_plan
from steelyard.responses.plan import parse_plan, planned_samples
from steelyard.stages.sample import Config, sample
from steelyard.stages.sample import forecast as forecast_sampling
from strategies import case, prompt

SHIPPED = sorted((Path(__file__).parents[2] / "recipes" / "plans").glob("*.toml"))
CASES = [case(f"p{number}", "", text=f"问题 {number}", language="zh") for number in range(6)]


@pytest.fixture
def cases(tmp_path):
    write_cases(tmp_path / "cases.jsonl", CASES)
    return tmp_path / "cases.jsonl"


def planned(tmp_path, *models, name="plan.json", **settings):
    (tmp_path / name).write_text(json.dumps({"models": models, **settings}), encoding="utf-8")
    return tmp_path / name


def served(server, name="m", **settings):
    chat = {"base_url": server.url, "model": name, "num_tries": 1, "workers": settings.pop("workers", 3)}
    return {"chat": chat, **settings}


def echo(question):
    """Answer with model, seed and last turn, so that every request has an answer of its own."""
    return f"{question['model']} {question.get('seed')} {question['messages'][-1]['content']}"


def responses(folder):
    return {found.prompt.id: found.responses for found in read_cases(folder / "cases.jsonl")}


def counts_of(run, name="m"):
    return msgspec.to_builtins(run.summary.models[name])


def test_responses_have_author_seed_tokens_and_end(cases, tmp_path):
    with chatting(echo) as server:
        plan = planned(
            tmp_path, served(server, system="Be brief.", price=(2.0, 10.0), num_responses=2), temperature=0.9, top_p=0.8
        )
        run = sample(cases, plan, tmp_path / "out")
    assert len(server.questions) == 12
    for question in server.questions:
        assert [message["role"] for message in question["messages"]] == ["system", "user"]
        assert (question["temperature"], question["top_p"], question["max_tokens"]) == (0.9, 0.8, 2048)
    for name, (first, second) in responses(tmp_path / "out").items():
        assert first.author == second.author == "m"
        for place, response in enumerate((first, second)):
            (about,) = response.meta["samples"]
            assert response.text == f"m {about['seed']} 问题 {name[1:]}"
            assert (about.get("repeat", 0), about["prompt_tokens"], about["reply_tokens"]) == (place, 7, 3)
            assert about["served_by"] == "served"
    assert counts_of(run)["num_planned"] == counts_of(run)["num_responses"] == 12
    # 12 replies of 7 and 3 tokens: (84 * 2 + 36 * 10) / 10^6
    assert run.summary.tokens["m"].cost == pytest.approx(0.000528)
    assert run.summary.responses_per_prompt == {"2": 6}


def test_responses_of_the_case_stay_and_nothing_is_asked_twice(tmp_path):
    before = msgspec.structs.replace(CASES[0], responses=(Response(id="x", text="old", author="person"),))
    write_cases(tmp_path / "cases.jsonl", [before])
    with chatting(echo) as server:
        one = planned(tmp_path, served(server, "a"), name="one.json")
        sample(tmp_path / "cases.jsonl", one, tmp_path / "out")
        assert len(server.questions) == 1
        # One more model: the case file has the responses of the others, and only its own are asked for.
        two = planned(tmp_path, served(server, "a"), served(server, "b"), name="two.json")
        run = sample(tmp_path / "out" / "cases.jsonl", two, tmp_path / "more")
    assert [question["model"] for question in server.questions] == ["a", "b"]
    (found,) = responses(tmp_path / "more").values()
    assert [response.author for response in found] == ["person", "a", "b"]
    assert found[0] == before.responses[0]
    assert counts_of(run, "a")["num_planned"] == 0


def test_equal_texts_are_one_response_with_every_author(cases, tmp_path):
    with chatting("the same") as server:
        plan = planned(tmp_path, served(server, "a", num_responses=2), served(server, "b"))
        run = sample(cases, plan, tmp_path / "out")
    # Two samples of one model are two requests, although every word of theirs is equal.
    assert len(server.questions) == 18
    for (response,) in responses(tmp_path / "out").values():
        assert response.author == "a"
        assert [about["author"] for about in response.meta["samples"]] == ["a", "a", "b"]
    assert (counts_of(run, "a")["num_repeated"], counts_of(run, "b")["num_repeated"]) == (6, 6)
    assert run.counts.noted["identical to another response"] == 12


def test_two_samples_without_seeds_are_two_requests(cases, tmp_path):
    with chatting(echo) as server:
        sample(cases, planned(tmp_path, served(server, num_responses=3, send_seed=False)), tmp_path / "out")
    assert len(server.questions) == 18
    assert not any("seed" in question for question in server.questions)


def ending(question):
    number = question["messages"][-1]["content"].split()[-1]
    return {
        "0": completion("whole"),
        "1": completion("half a", "length"),
        "2": completion(None, refusal="I will not."),
        "3": completion(None, "content_filter"),
        "4": completion("  "),
        "5": completion("also whole"),
    }[number]


@pytest.mark.parametrize(
    ("settings", "texts"),
    [
        ({}, {"p0": "whole", "p2": "I will not.", "p5": "also whole"}),
        ({"refused": "drop"}, {"p0": "whole", "p5": "also whole"}),
        ({"cut_off": "keep"}, {"p0": "whole", "p1": "half a", "p2": "I will not.", "p5": "also whole"}),
    ],
)
def test_refusals_and_cut_offs_are_counted_and_kept_as_the_settings_say(settings, texts, cases, tmp_path):
    with chatting(ending) as server:
        run = sample(cases, planned(tmp_path, served(server)), tmp_path / "out", Config(**settings))
    found = {name: each for name, each in responses(tmp_path / "out").items() if each}
    assert {name: response.text for name, (response,) in found.items()} == texts
    ends = {name: response.meta["samples"][0].get("end", "stop") for name, (response,) in found.items()}
    every = {"p0": "stop", "p1": "length", "p2": "refusal", "p5": "stop"}
    assert ends == {name: every[name] for name in texts}
    counts = counts_of(run)
    assert (counts["refused"], counts["cut_off"], counts["empty"], counts["failed"]) == (2, 1, 1, 0)
    assert counts["num_responses"] == len(texts)
    assert run.counts.num_in == 6 == run.counts.num_used + sum(run.counts.dropped.values())


def test_failed_requests_are_asked_again(cases, tmp_path):
    is_down = threading.Event()
    is_down.set()

    def answer(question):
        is_failing = is_down.is_set() and question["messages"][-1]["content"].endswith("3")
        return (500, b"broken") if is_failing else echo(question)

    with chatting(answer) as server:
        plan = planned(tmp_path, served(server))
        with pytest.raises(FailuresError, match="what was answered is kept"):
            sample(cases, plan, tmp_path / "out")
        assert not (tmp_path / "out" / "cases.jsonl").exists()
        is_down.clear()
        sample(cases, plan, tmp_path / "out")
    assert len(server.questions) == 7
    assert all(len(each) == 1 for each in responses(tmp_path / "out").values())


REFUSED = {
    "max_tokens": ("Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
                   "set chat.token_limit to max_completion_tokens"),
    "temperature": ("Unsupported value: 'temperature' does not support 0.5 with this model.", "set temperature to"),
    "seed": ("extra inputs are not permitted: seed", "set send_seed of the model to false"),
    None: ("messages[0] has no role", "change the settings of the chat"),
}  # fmt: skip


@pytest.mark.parametrize("parameter", REFUSED)
@pytest.mark.parametrize("num_cases", [3, 24])
def test_a_refused_parameter_is_named_with_the_setting_that_makes_it(tmp_path, parameter, num_cases):
    message, remedy = REFUSED[parameter]
    body = json.dumps({"error": {"message": message, "param": parameter}}).encode()
    write_cases(tmp_path / "cases.jsonl", [case(f"p{number}", "", text=f"q {number}") for number in range(num_cases)])
    with chatting(lambda _: (400, body)) as server:
        plan = planned(tmp_path, served(server))
        with pytest.raises(FailuresError) as refused:
            sample(tmp_path / "cases.jsonl", plan, tmp_path / "out")
        assert message in refused.value.problem
        assert remedy in refused.value.do
        assert "run the same again" not in refused.value.do
        assert "allow_failed=true" in refused.value.do
        # The remedy works: the run ends, although nothing was answered.
        run = sample(tmp_path / "cases.jsonl", plan, tmp_path / "out", allow_failed=True)
    assert run.counts.dropped == {"no new response": num_cases}


@pytest.mark.parametrize("text", ["", " \n "])
def test_a_model_that_says_nothing_is_asked_once_and_counted_as_empty(cases, tmp_path, text):
    is_down = True

    def answer(question):
        prompt = question["messages"][-1]["content"]
        if is_down and prompt.endswith("3"):
            return (400, b"broken")
        return text if prompt.endswith("2") else echo(question)

    with chatting(answer) as server:
        model = served(server)
        model["chat"] |= {"num_tries": 5, "wait_seconds": 0.01}
        plan = planned(tmp_path, model)
        with pytest.raises(FailuresError, match="1 of 6 requests failed"):
            sample(cases, plan, tmp_path / "out")
        is_down = False
        run = sample(cases, plan, tmp_path / "out")
    # The same command sends what failed again, and not what was empty.
    assert len(server.questions) == 6 + 1
    counts = counts_of(run)
    assert (counts["num_planned"], counts["num_responses"], counts["empty"], counts["failed"]) == (6, 5, 1, 0)
    assert [len(found) for found in responses(tmp_path / "out").values()] == [1, 1, 0, 1, 1, 1]


def test_thinking_is_no_part_of_a_response(cases, tmp_path):
    texts = {
        "0": "<think>\n巴黎？\n</think>\n\n巴黎。",
        "1": "so\n</think>\n巴黎。",  # a template that begins the thinking itself
        "2": "<think>without an end",
        "3": "The tags <think> and </think> enclose it.",
        "4": "◁think▷so◁/think▷巴黎。",
        "5": "<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>final<|message|>巴黎。",
    }
    with chatting(lambda question: texts[question["messages"][-1]["content"][-1]]) as server:
        run = sample(cases, planned(tmp_path, served(server)), tmp_path / "out")
    found = {name: [each.text for each in answers] for name, answers in responses(tmp_path / "out").items()}
    paris = ["巴黎。"]
    assert found == {"p0": paris, "p1": paris, "p2": [], "p3": [texts["3"]], "p4": paris, "p5": paris}
    assert counts_of(run)["empty"] == 1


@pytest.mark.slow
def test_after_a_kill_the_rest_is_asked_and_the_result_is_the_same(cases, tmp_path):
    with chatting(echo) as server:
        plan = planned(tmp_path, served(server, "a", workers=1), served(server, "b", workers=1), served(server, "c"))
        script = f"""
from pathlib import Path
from steelyard.stages.sample import sample
sample(Path({str(cases)!r}), Path({str(plan)!r}), Path({str(tmp_path / "killed")!r}))
"""
        with server.silent(after=8):
            running = warm_process.Process(["-c", script])
            while len(server.questions) < 9:
                assert not running.ends_within(0.01)
            os.kill(running.pid, signal.SIGKILL)
            running.wait()
        killed = sample(cases, plan, tmp_path / "killed")
        # The one request that had no answer is asked a second time.
        assert len(server.questions) == 19
        straight = sample(cases, plan, tmp_path / "straight")
    assert killed.summary == straight.summary
    assert (tmp_path / "killed" / "cases.jsonl").read_bytes() == (tmp_path / "straight" / "cases.jsonl").read_bytes()


def test_failures_of_a_later_turn_alone_do_not_end_a_run_early(tmp_path):
    """The model has answered the first turn: 25 failures of the second are counted, all of them."""
    prompts = [
        prompt(f"p{number}", text=f"q {number}", meta={"turns": [f"q {number}", "long"]}) for number in range(25)
    ]
    write_cases(tmp_path / "cases.jsonl", [msgspec.structs.replace(CASES[0], prompt=each) for each in prompts])

    def answer(question):
        return (500, b"broken") if question["messages"][-1]["content"] == "long" else echo(question)

    with chatting(answer) as server:
        model = served(server)
        model["chat"] |= {"num_tries": 1}
        with pytest.raises(FailuresError, match="25 of 50 requests failed"):
            sample(tmp_path / "cases.jsonl", planned(tmp_path, model), tmp_path / "out")


def test_prompts_are_answered_in_context_and_turn_by_turn(tmp_path):
    turns = [prompt("mt", text="first", meta={"turns": ["first", "second", "third"]}), prompt("plain", text="only")]
    write_cases(tmp_path / "cases.jsonl", [msgspec.structs.replace(CASES[0], prompt=each) for each in turns])
    with chatting(lambda question: f"to {question['messages'][-1]['content']}") as server:
        run = sample(tmp_path / "cases.jsonl", planned(tmp_path, served(server, workers=1)), tmp_path / "out")
    asked = [[message["content"] for message in question["messages"]] for question in server.questions]
    assert sorted(asked, key=len) == [
        ["first"], ["only"], ["first", "to first", "second"], ["first", "to first", "second", "to second", "third"],
    ]  # fmt: skip
    (several,), (single,) = responses(tmp_path / "out").values()
    assert [(message.role, message.content) for message in several.messages] == [
        ("assistant", "to first"), ("user", "second"), ("assistant", "to second"), ("user", "third"),
        ("assistant", "to third"),
    ]  # fmt: skip
    assert single.text == "to only"
    assert several.meta["samples"][0]["reply_tokens"] == 9
    # "to first", "to second" and "to third" have 8, 9 and 8 characters, "to only" has 7: the user's turns do not count.
    assert counts_of(run)["characters"] == {"n": 2, "low": 7, "median": 7, "high": 25}
    assert run.summary.tokens["m"].num_replies == 4


def test_no_turn_follows_a_refusal(tmp_path):
    write_cases(
        tmp_path / "cases.jsonl",
        [msgspec.structs.replace(CASES[0], prompt=prompt("mt", text="first", meta={"turns": ["first", "second"]}))],
    )
    with chatting(lambda _: completion(None, refusal="No.")) as server:
        run = sample(tmp_path / "cases.jsonl", planned(tmp_path, served(server)), tmp_path / "out")
    assert len(server.questions) == 1
    assert counts_of(run)["refused"] == 1


def test_every_number_of_models_that_meet_is_shown(cases, tmp_path):
    recordings = record(tmp_path / "r.jsonl", {"text": "yes"})
    models = [{"name": name, "chat": recordings} for name in "abc"]
    run = sample(cases, planned(tmp_path, *models, num_responses=2), tmp_path / "out")
    numbers = [counts_of(run, name)["num_prompts"] for name in "abc"]
    assert sum(numbers) == 12
    # Of three models each prompt has one pair: its number is that of the prompts without the third model.
    assert (run.summary.meetings.fewest, run.summary.meetings.most) == (6 - max(numbers), 6 - min(numbers))


def test_cut_replies_end_the_run(tmp_path):
    write_cases(tmp_path / "many.jsonl", [case(f"p{number}", "", text=str(number)) for number in range(30)])
    with chatting(lambda _: completion("Well, ", "length", usage=(7, 2048))) as server:
        with pytest.raises(ModelError, match=r"(?s)cut off before their end.*max_truncated=1.0"):
            sample(tmp_path / "many.jsonl", planned(tmp_path, served(server)), tmp_path / "out")
        # The remedy of the error, with the same folder: what was answered and paid for is not asked again.
        config = Config(max_truncated=1.0)
        run = sample(tmp_path / "many.jsonl", planned(tmp_path, served(server)), tmp_path / "out", config)
        assert len(server.questions) == 30
    assert counts_of(run)["cut_off"] == 30
    assert run.counts.dropped == {"no new response": 30}


REPLIES = {"kind": "recorded", "path": "r.jsonl"}
SERVER = {"base_url": "http://x/v1", "model": "m"}


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"chat": {"kind": "recorded"}}, ConfigError, "path"),
        ({"chat": {"kind": "recorded", "path": "absent.jsonl"}}, FileError, "no such file"),
        ({"chat": REPLIES, "temperature": 1.0}, ConfigError, "a recorded chat has no temp"),
        ({"chat": SERVER | {"temperature": 1.0}, "temperature": 1.0}, ConfigError, "set twice"),
        ({"chat": SERVER | {"base_url": "x/v1"}}, ConfigError, "base_url"),
        ({"chat": REPLIES, "languages": ["en"]}, EvidenceError, r"(?s)answers none of 6.*zh"),
    ],
)  # fmt: skip
def test_wrong_plans_leave_nothing_behind(settings, error, message, cases, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "r.jsonl", {"text": "yes"})
    with pytest.raises(error, match=message):
        sample(cases, planned(tmp_path, settings), tmp_path / "out")
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").glob("*.*"))


def test_a_prompt_that_ends_with_an_answer_is_refused(tmp_path):
    asked = prompt("p", text="Hello")
    asked = msgspec.structs.replace(asked, messages=(*asked.messages, Message(role="assistant", content="Hi")))
    write_cases(tmp_path / "cases.jsonl", [msgspec.structs.replace(CASES[0], prompt=asked)])
    plan = planned(tmp_path, {"chat": record(tmp_path / "r.jsonl", {"text": "yes"})})
    with pytest.raises(EvidenceError, match="does not end with a turn to answer"):
        sample(tmp_path / "cases.jsonl", plan, tmp_path / "out")


def test_plans_that_are_no_files(cases, tmp_path):
    with pytest.raises(FileError, match=r"(?s)no such plan.*did you mean 'cheems'"):
        sample(cases, Path("cheem"), tmp_path / "out")
    (tmp_path / "broken.toml").write_text("[[models]\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="not valid TOML"):
        sample(cases, tmp_path / "broken.toml", tmp_path / "out")
    (tmp_path / "broken.json").write_text("[1", encoding="utf-8")
    with pytest.raises(FileError, match="not a plan in JSON"):
        sample(cases, tmp_path / "broken.json", tmp_path / "out")
    (tmp_path / "bad.jsonl").write_text("{\n", encoding="utf-8")
    plan = planned(tmp_path, {"chat": record(tmp_path / "r.jsonl", {"text": "yes"})})
    with pytest.raises(RecordError):
        sample(tmp_path / "bad.jsonl", plan, tmp_path / "out")


@pytest.mark.parametrize("plan", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_shipped_plans_are_valid(plan):
    parsed = parse_plan(read_toml(find_plan(Path(plan.stem))), where=plan.stem)
    assert parsed.about
    if plan.stem == "local":  # its folder is the user's
        with pytest.raises(FileError, match="no such file or folder"):
            choose_models(parsed, where=plan.stem)
    else:
        assert len(choose_models(parsed, where=plan.stem).chats) == len(parsed.models)


def test_the_plan_of_the_paper_has_its_twelve_models():
    parsed = parse_plan(read_toml(find_plan(Path("cheems"))), where="cheems")
    assert len(parsed.models) == 12
    samples = planned_samples(parsed, prompt(language="zh"), seed=0)
    assert len(samples) == len({sample.model for sample in samples}) == 5


def test_a_dry_run_counts_requests_and_tokens_and_sends_nothing(tmp_path):
    several = prompt("c", meta={"turns": ["What is it?", "x" * 8]})
    asked = [prompt("a", text="abcdefgh"), prompt("b", text="问题一二三"), several]
    about = {"author": "two", "request": "q", "repeat": 1}
    # Another seed, another program's words and another repeat are other samples, or none.
    strange = [
        {**about, "repeat": 0, "seed": 8},
        "two",
        {"author": 2},
        {**about, "repeat": "0"},
        {**about, "repeat": 5},
    ]
    written = Response(id="r", text="t", author="two", meta={"samples": [about, *strange]})
    held = [(), (written,), ()]
    write_cases(
        tmp_path / "cases.jsonl",
        [msgspec.structs.replace(CASES[0], prompt=each, responses=had) for each, had in zip(asked, held, strict=True)],
    )
    with chatting("never") as server:
        one = served(server, "one", max_tokens=100, price={"input": 1.0, "output": 10.0})
        plan = planned(tmp_path, one, served(server, "two", num_responses=2, send_seed=False), max_tokens=50)
        forecast = forecast_sampling(tmp_path / "cases.jsonl", plan, tmp_path / "out")
    assert server.questions == []
    assert not (tmp_path / "out").exists()
    # A Latin letter is 0.25 tokens, a Chinese character 0.65, a sign 0.55; a message adds 4, a request 3 more:
    # 8 letters 9, 5 characters 10.25, "What is it?" 9.55 (8 letters, a sign), and with 8 letters behind it 15.55.
    assert forecast.num_prompts == 3
    # The first answer, at most as long as its limit, is in the prompt of the second turn.
    assert msgspec.to_builtins(forecast.models["one"]) == {
        "num_prompts": 3, "num_requests": 4, "num_answered": 0,
        "prompt_tokens": round(44.35 + 100), "reply_tokens": 400, "cost": pytest.approx(4144e-6), "batch_cost": None,
        "prompt_from": "characters", "reply_from": "their limit",
    }  # fmt: skip
    # Of the second prompt one of its two samples is there.
    assert msgspec.to_builtins(forecast.models["two"]) == {
        "num_prompts": 3, "num_requests": 7, "num_answered": 0,
        "prompt_tokens": round(78.45 + 100), "reply_tokens": 350, "cost": None, "batch_cost": None,
        "prompt_from": "characters", "reply_from": "their limit",
    }  # fmt: skip


def test_prices_have_known_names(cases, tmp_path):
    settings = {"chat": record(tmp_path / "r.jsonl", {"text": "yes"}), "price": {"inputs": 1.0, "output": 2.0}}
    with pytest.raises(ConfigError, match=r"(?s)price: unknown setting 'inputs'.*'input'"):
        sample(cases, planned(tmp_path, settings), tmp_path / "out")


@pytest.mark.parametrize(
    "price", [[-1.0, 2.0], [1e308, 1.0], [True, 1.0], [1.0], {"input": 1.0, "output": -2.0}, {"input": 1.0}, "1"]
)
def test_prices_are_numbers_that_can_be_added(cases, tmp_path, price):
    settings = {"chat": record(tmp_path / "r.jsonl", {"text": "yes"}), "price": price}
    with pytest.raises(ConfigError, match="price"):
        sample(cases, planned(tmp_path, settings), tmp_path / "out")


@pytest.mark.parametrize(
    ("chat", "problem"),
    [
        ({"kind": "recordd", "path": "r"}, r"there is no 'recordd' in chats\n  allowed: did you mean 'recorded'\?"),
        ({"kind": "../x"}, "fails when it is imported"),
        ({"kind": "recorded"}, "path is missing"),
        ({"base_url": "nowhere", "model": "m"}, "chat.base_url: this is no address of a server"),
        ({"base_url": "http://127.0.0.1:1/v1", "model": "m", "worker": 1}, "unknown setting 'worker'"),
    ],
)
def test_an_error_of_a_chat_names_the_plan_and_the_model(cases, tmp_path, chat, problem):
    plan = planned(tmp_path, {"name": "second", "chat": chat})
    with pytest.raises(UserError, match=rf"(?s)plan\.json at second.*{problem}"):
        forecast_sampling(cases, plan, tmp_path / "out")


def test_an_error_of_building_a_chat_names_the_model(cases, tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    chat = {"base_url": "http://127.0.0.1:1/v1", "model": "m", "secret": "NO_SUCH_KEY"}
    with pytest.raises(ConfigError, match=r"model m, chat\.secret: there is no environment variable 'NO_SUCH_KEY'"):
        sample(cases, planned(tmp_path, {"chat": chat}), tmp_path / "out")
    assert not (tmp_path / "out" / "cases.jsonl").exists()
