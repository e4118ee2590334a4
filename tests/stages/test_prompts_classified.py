"""Categories by a language model: what is asked and written, agreement with people, forecasts, kills, hostility."""

import json
import os
import signal
import threading

import pytest

import warm_process
from chat_server import chatting, completion, record
from steelyard.core.errors import ConfigError, EvidenceError, FailuresError, FileError, KindError, RecordError
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.io.cases import read_cases, write_cases
from steelyard.stages.prompts import Config, prompts
from steelyard.stages.prompts import preview as preview_prompts

TEXTS = {
    "a": "Solve x + 3 = 8 for x, please.",
    "b": "Write a poem about the autumn rain.",
    "c": "写一段 Python 代码，把一个列表倒序排列。",
    "d": "What did the Romans eat for breakfast on workdays?",
}
RIGHT = {"a": "mathematics/algebra", "b": "language/poetry", "c": "code/code_generation", "d": "knowledge/history"}
MINE = """
[categories.work]
en = "Work"
zh = "工作"
[categories.work.below]
letters = { en = "Letters", zh = "书信" }
[categories.play]
en = "Play"
zh = "游戏"
[sources.alignbench]
"文本写作" = "work/letters"
"""


def made(name, category=(), text=None, **fields):
    message = Message(role="user", content=text or TEXTS[name])
    return Case(prompt=Prompt(id=name, messages=(message,), category=category), responses=(), **fields)


def written(tmp_path, *cases, name="raw.jsonl"):
    write_cases(tmp_path / name, cases or [made(name) for name in TEXTS])
    return tmp_path / name


def replying(replies=RIGHT):
    """Return a model that knows the replies by the text of the prompt."""
    by_text = {f"=====\n{TEXTS[name]}\n=====": reply for name, reply in replies.items()}
    return lambda question: by_text[question["messages"][-1]["content"]]


def at(server, **settings):
    return Config(classify={"base_url": server.url, "model": "m", "num_tries": 1, "workers": 1}, **settings)


def categories(folder):
    return {case.prompt.id: "/".join(case.prompt.category) for case in read_cases(folder / "cases.jsonl")}


def test_prompts_without_a_category_are_classified_and_the_others_stay(tmp_path):
    raw = written(tmp_path, made("a", ("mine",)), *map(made, "bcd"))
    with chatting(replying()) as server:
        run = prompts(raw, tmp_path / "out", at(server))
        assert len(server.questions) == 3
        # Equal requests again: the run is there, and nothing is asked.
        assert prompts(raw, tmp_path / "out", at(server)) == run
        assert len(server.questions) == 3
    assert categories(tmp_path / "out") == RIGHT | {"a": "mine"}
    of_chat = run.summary.classification
    assert (of_chat.chat, of_chat.num_asked, of_chat.num_assigned, of_chat.agreement) == ("m", 3, 3, None)
    metas = {case.prompt.id: case.meta for case in read_cases(tmp_path / "out" / "cases.jsonl")}
    assert metas["b"]["category_from"] == {"by": "chat", "chat": "m"}
    assert not metas["a"]
    assert {share.name for share in run.summary.shares if share.kind == "category"} == {
        "mine", "language", "code", "knowledge",
    }  # fmt: skip


def test_unknown_or_all_prompts_are_classified_where_told(tmp_path):
    raw = written(tmp_path, made("a", ("mine",)), made("b", ("language",)))
    with chatting(replying()) as server:
        prompts(raw, tmp_path / "unknown", at(server, classified="unknown"))
        prompts(raw, tmp_path / "all", at(server, classified="all"))
        assert len(server.questions) == 3
    assert categories(tmp_path / "unknown") == {"a": "mathematics/algebra", "b": "language"}
    assert categories(tmp_path / "all") == {"a": "mathematics/algebra", "b": "language/poetry"}
    first, _ = read_cases(tmp_path / "all" / "cases.jsonl")
    assert first.meta["category_from"] == {"by": "chat", "chat": "m", "before": ["mine"]}


def test_prompts_that_a_rule_drops_are_not_asked_about(tmp_path):
    raw = written(tmp_path, made("a"), made("copy", text=TEXTS["a"]), made("mail", text="Write to li.wei@corp.cn now"))
    with chatting(replying()) as server:
        assert prompts(raw, tmp_path / "out", at(server)).counts.num_used == 1
        assert len(server.questions) == 1


def test_the_balance_uses_the_categories(tmp_path):
    with chatting(lambda question: "code" if "Romans" in question["messages"][-1]["content"] else "safety") as server:
        config = at(server, category_shares={"code": 0.5, "safety": 0.5})
        run = prompts(written(tmp_path), tmp_path / "out", config)
    assert (run.counts.num_used, run.counts.dropped) == (2, {"balance": 2})
    assert sorted(categories(tmp_path / "out").values()) == ["code", "safety"]


@pytest.mark.parametrize(
    "reply",
    [
        "I would say code or safety.", "", "\x00\x1b[31m", "code\nsafety", "🙂" * 5000,
        "<think>code", "No idea", completion("code", finish="length"), completion(None),
        completion("code", finish="content_filter"),
    ],
)  # fmt: skip
def test_an_unparsed_reply_leaves_the_prompt_without_a_category_and_is_counted(tmp_path, reply):
    raw = written(tmp_path, made("a"), *(made(f"n{n}", ("code",), text=f"{n} {'z' * n}") for n in range(5)))
    with chatting(reply) as server:
        run = prompts(raw, tmp_path / "out", at(server, near_duplicates="off"), allow_failed=True)
    assert categories(tmp_path / "out")["a"] == ""
    assert (run.summary.classification.num_asked, run.summary.classification.num_unparsed) == (1, 1)
    assert run.summary.findings["category_unparsed"] == {"count": 1}
    rows = [json.loads(line) for line in (tmp_path / "out" / "manifest.jsonl").read_text("utf-8").splitlines()]
    assert [row["prompt"] for row in rows if row["rule"] == "category_unparsed"] == ["a"]


def test_thinking_is_not_the_reply(tmp_path):
    with chatting("<think>code? safety?</think>\nmathematics") as server:
        prompts(written(tmp_path, made("a")), tmp_path / "out", at(server))
    assert categories(tmp_path / "out") == {"a": "mathematics"}


def test_a_prompt_that_fits_no_category_is_counted(tmp_path):
    with chatting(replying(RIGHT | {"a": "NONE", "c": "无"})) as server:
        run = prompts(written(tmp_path), tmp_path / "out", at(server))
    assert run.summary.classification.num_none == 2
    assert categories(tmp_path / "out")["a"] == ""


def test_agreement_with_people_is_measured_on_their_sample_alone(tmp_path):
    people = written(
        tmp_path,
        made("a", ("数学", "代数与函数")),
        made("b", ("knowledge",)),
        made("c", ("code", "code_review")),
        made("d"),
        name="people.jsonl",
    )
    raw = written(tmp_path, made("a"), made("d"), made("b", ("language",)))
    with chatting(replying()) as server:
        run = prompts(raw, tmp_path / "out", at(server), human=people)
        # a and d of the cases, and b and c of the sample, whose a is the same question.
        assert len(server.questions) == 4
    agreement = run.summary.classification.agreement
    assert (agreement.num_prompts, agreement.num_unlabelled, agreement.num_unparsed) == (3, 1, 0)
    assert (agreement.accuracy.value, agreement.accuracy.n) == (2 / 3, 3)
    assert (agreement.whole_path.value, agreement.whole_path.n) == (1 / 2, 2)
    assert [(one.people, one.model, one.number) for one in agreement.confusions] == [("knowledge", "language", 1)]


def test_a_taxonomy_of_the_user_maps_sources_and_is_what_the_model_chooses_from(tmp_path):
    (tmp_path / "mine.toml").write_text(MINE, encoding="utf-8")
    source = {"category_from": {"by": "source", "source": "alignbench", "category": ["文本写作", "实用文体写作"]}}
    raw = written(
        tmp_path, made("a", ("language", "practical_writing"), meta=source), made("b", ("play",)), *map(made, "cd")
    )
    with chatting("工作/书信") as server:
        run = prompts(raw, tmp_path / "out", at(server), taxonomy=tmp_path / "mine.toml")
        assert len(server.questions) == 2
        assert "work/letters" in server.questions[0]["messages"][0]["content"]
    assert categories(tmp_path / "out") == {"a": "work/letters", "b": "play", "c": "work/letters", "d": "work/letters"}
    assert (run.summary.mapping.num_known, run.summary.mapping.num_unknown) == (2, 0)
    assert run.inputs["taxonomy"].path == str(tmp_path / "mine.toml")
    alone = prompts(raw, tmp_path / "alone", Config(), taxonomy=tmp_path / "mine.toml")
    assert (alone.summary.mapping.num_known, alone.summary.classification) == (2, None)


def test_a_dry_run_forecasts_the_requests_and_asks_nothing(tmp_path):
    people = written(tmp_path, made("a", ("mathematics",)), name="people.jsonl")
    raw = written(tmp_path, made("a"), made("b"), made("copy", text=TEXTS["b"]), made("c", ("code",)))
    with chatting(replying()) as server:
        config = at(server, chat={"base_url": server.url, "model": "screen"})
        preview = preview_prompts(raw, tmp_path / "out", config, human=people)
        assert not server.questions
        assert not (tmp_path / "out").exists()
    assert [(one.model, one.num_requests) for one in preview.forecasts] == [("screen", 3), ("m", 2)]
    assert all(one.prompt_tokens > 100 and one.reply_tokens > 0 for one in preview.forecasts)


@pytest.mark.slow
def test_after_a_kill_the_rest_is_asked_and_the_result_is_the_same(tmp_path):
    raw = written(tmp_path, *(made(f"p{n}", text=f"Tell me about the number {n}, {n * n} times.") for n in range(12)))
    is_killed = threading.Event()

    def holding(question):
        if len(server.questions) > 5:
            is_killed.wait()
        return "mathematics" if "1" in question["messages"][-1]["content"] else "knowledge"

    with chatting(holding) as server:
        config = at(server, near_duplicates="off")
        script = f"""
from pathlib import Path
from steelyard.stages.prompts import Config, prompts
prompts(Path({str(raw)!r}), Path({str(tmp_path / "killed")!r}), Config(
    classify={config.classify!r}, near_duplicates="off"))
"""
        running = warm_process.Process(["-c", script])
        while len(server.questions) < 6:
            assert not running.ends_within(0.01)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        is_killed.set()
        assert not (tmp_path / "killed" / "run.json").exists()
        preview = preview_prompts(raw, tmp_path / "killed", config)
        # At most the one request that was under way is asked a second time.
        assert preview.forecasts[0].num_answered in (5, 6)
        killed = prompts(raw, tmp_path / "killed", config)
        assert 12 <= len(server.questions) <= 13
        straight = prompts(raw, tmp_path / "straight", config)
    assert killed.summary == straight.summary
    assert (tmp_path / "killed" / "cases.jsonl").read_bytes() == (tmp_path / "straight" / "cases.jsonl").read_bytes()


def test_failed_requests_end_the_run_and_are_asked_again(tmp_path):
    raw = written(tmp_path)
    config = Config(classify=record(tmp_path / "none.jsonl", {"text": ""}) | {"name": "m"})
    with chatting(lambda question: {"broken": True}) as server, pytest.raises(FailuresError):
        prompts(raw, tmp_path / "out", at(server))
    assert not (tmp_path / "out" / "cases.jsonl").exists()
    assert prompts(raw, tmp_path / "other", config).summary.classification.num_unparsed == 4


@pytest.mark.parametrize(
    ("files", "settings", "error", "words"),
    [
        ({"human": '{"prompt": {"id": "a", "messages": []}}\n'}, {}, RecordError, "people.jsonl:1"),
        ({"human": "{\n"}, {}, RecordError, "people.jsonl:1"),
        ({"human": ""}, {}, FileError, "people.jsonl"),
        (
            {"human": '{"prompt": {"id": "a", "messages": [{"role": "user", "content": "q"}]}, "responses": []}\n'},
            {},
            EvidenceError,
            "category",
        ),
        ({"taxonomy": "[categories"}, {}, ConfigError, "mine.toml"),
        ({"taxonomy": "[categories.A]\nen = 'a'\nzh = 'b'\n"}, {}, ConfigError, "mine.toml"),
        ({"taxonomy": "[sources.x]\n'*' = 'a'\n"}, {}, ConfigError, "mine.toml"),
        ({}, {"classify": {"kind": "nonsense"}}, KindError, "nonsense"),
        ({}, {"classify": {"modle": "m"}}, ConfigError, "model"),
    ],
)
def test_broken_inputs_are_refused_before_anything_is_asked_or_written(tmp_path, files, settings, error, words):
    names = {"human": "people.jsonl", "taxonomy": "mine.toml"}
    paths = {name: tmp_path / names[name] for name in files}
    for name, text in files.items():
        paths[name].write_text(text, encoding="utf-8")
    raw = written(tmp_path)
    with chatting(replying()) as server:
        config = Config(**({"classify": at(server).classify} | settings))
        with pytest.raises(error, match=words):
            prompts(raw, tmp_path / "out", config, **paths)
    assert not server.questions
    assert not (tmp_path / "out").exists()


def test_people_without_a_model_to_compare_are_refused(tmp_path):
    people = written(tmp_path, made("a", ("code",)), name="people.jsonl")
    with pytest.raises(ConfigError, match="sets each of its model"):
        prompts(people, tmp_path / "out", Config(), human=people)


def test_masked_data_are_masked_in_the_responses_too(tmp_path):
    question = Message(role="user", content="Whom do I write to?")
    answer = Response(id="r", text="Write to li.wei@corp.cn.")
    raw = written(tmp_path, Case(prompt=Prompt(id="a", messages=(question,), language="en"), responses=(answer,)))
    run = prompts(raw, tmp_path / "out", Config(private_data={"e_mail": "mask"}))
    (case,) = read_cases(tmp_path / "out" / "cases.jsonl")
    assert case.responses[0].text == "Write to [E_MAIL]."
    assert run.counts.noted == {"responses with masked data": 1}
    assert prompts(raw, tmp_path / "kept", Config()).counts.noted == {}
