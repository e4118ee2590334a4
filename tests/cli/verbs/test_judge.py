import json

import pytest
from typer.testing import CliRunner

from chat_server import chatting, record
from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError
from steelyard.io.cases import read_cases, write_cases
from strategies import case


@pytest.fixture
def judged(tmp_path):
    write_cases(tmp_path / "cases.jsonl", [case("p", "ab"), case("q", "abc", text="另一个")])

    def run(*arguments):
        given = ["judge", str(tmp_path / "cases.jsonl"), "--out", str(tmp_path / "out"), *map(str, arguments)]
        return CliRunner().invoke(build_app(), given, catch_exceptions=False)

    return run


def test_a_server_needs_no_set(judged, monkeypatch):
    monkeypatch.setenv("THE_KEY", "k-1234")
    with chatting("[[A]]") as server:
        found = judged(
            "--chat", "openai_compatible", "--base-url", server.url, "--chat-model", "小模型",
            "--api-key-variable", "THE_KEY", "--json",
        )  # fmt: skip
    assert found.exit_code == 0, found.output
    chat = json.loads(found.stdout)["config"]["chat"]
    assert (chat["model"], chat["secret"]) == ("小模型", "THE_KEY")
    assert len(server.questions) == 8
    assert "k-1234" not in found.output


def test_prints_outcomes_of_each_judge(judged, tmp_path):
    path = record(tmp_path / "r.jsonl", {"text": "[[A]]", "prompt_tokens": 1000, "reply_tokens": 2})["path"]
    found = judged("--chat", "recorded", "--style", "qwen", "--set", f"chat.path={path}", "--set", "price=[1,5]",
                   "--verbose")  # fmt: skip
    assert found.exit_code == 0
    assert found.stdout.startswith("recorded gave 4 verdicts on 4 pairs of answers: 0.0% of the pairs have a strict")
    assert "With the answers in the other order, 100.0% of 4 pairs (" in found.stdout
    assert "The replies cost 0.0081, at the given prices." in found.stdout
    assert "8,000" in found.stdout
    assert "2 in, 2 used" in found.stdout
    assert sum(len(one.judgments) for one in read_cases(tmp_path / "out" / "cases.jsonl")) == 4


def test_the_forecast_says_why_prompts_are_left_out(judged):
    with chatting("[[A]]") as server:
        found = judged("--base-url", server.url, "--chat-model", "m", "--task", "triples", "--dry-run")
    assert found.stdout.splitlines()[:2] == [
        "1 prompt of 2 would be judged; the rest is not sent yet",
        "  not judged: fewer than 3 responses 1",
    ]


def test_json_option_prints_the_run(judged, tmp_path):
    path = record(tmp_path / "r.jsonl", {"text": "[[7]]"})["path"]
    found = judged("--chat", "recorded", "--task", "ratings", "--set", f"chat.path={path}", "--json")
    run = json.loads(found.stdout)
    assert run["stage"] == "judge"
    assert run["config"]["task"] == "ratings"
    assert run["summary"]["judges"]["recorded"]["ratings"] == {"7": 5}


def test_settings_override_panel_file(judged, tmp_path):
    lines = ["seed = 3", 'write = "replies"']
    for name, text in (("one", "[[A]]"), ("two", "[[B]]"), ("three", "[[A]]")):
        path = record(tmp_path / f"{name}.jsonl", {"text": text})["path"]
        lines += [
            "[[members]]",
            f'chat = {{kind = "recorded", path = "{path}", name = "{name}"}}',
            'judge = {orders = "one"}',
        ]
    (tmp_path / "panel.toml").write_text("\n".join(lines))
    found = judged("--config", tmp_path / "panel.toml", "--set", "write=combined", "--json")
    run = json.loads(found.stdout)
    assert (run["config"]["seed"], run["config"]["write"]) == (3, "combined")
    assert list(run["summary"]["judges"]) == ["one", "two", "three", "panel"]


def test_misspelt_settings_are_refused(judged):
    with pytest.raises(ConfigError, match="unknown setting 'chatt'"):
        judged("--set", "chatt.path=x")


def test_pairs_without_a_verdict_are_not_called_verdicts(judged, tmp_path):
    # The first pair of the second case has no verdict: one reply is not understood.
    with chatting(lambda asked: "Hm." if "另一个" in str(asked["messages"]) else "[[A]]") as server:
        found = judged("--base-url", server.url, "--chat-model", "m")
    out = tmp_path / "out"
    lines = found.stdout.splitlines()
    assert lines[0].startswith("m gave 1 verdict on 4 pairs of answers: ")
    assert lines[0].endswith(" 75.0% none.")
    assert f"written: {out / 'cases.jsonl'}, {out / 'unparsed.jsonl'}" in lines
    assert len((out / "unparsed.jsonl").read_text(encoding="utf-8").splitlines()) == 6


def test_a_panel_gives_one_verdict_for_all_its_members(judged, tmp_path):
    lines = []
    for name, text in (("one", "[[A]]"), ("two", "[[A]]"), ("three", "Hm.")):
        path = record(tmp_path / f"{name}.jsonl", {"text": text})["path"]
        lines += ["[[members]]", f'chat = {{kind = "recorded", path = "{path}", name = "{name}"}}']
    (tmp_path / "panel.toml").write_text("\n".join(lines))
    found = judged("--config", tmp_path / "panel.toml")
    assert found.stdout.startswith("panel gave 4 verdicts on 4 pairs of answers: ")


def test_ratings_are_called_ratings(judged, tmp_path):
    path = record(tmp_path / "r.jsonl", {"text": "[[7]]"})["path"]
    found = judged("--chat", "recorded", "--task", "ratings", "--set", f"chat.path={path}")
    assert found.stdout.startswith("recorded gave 5 ratings; ")


def test_the_cost_and_what_may_be_billed_beside_it(judged):
    with chatting("[[A]]") as server:
        server.failures = ["drop"]
        found = judged("--base-url", server.url, "--chat-model", "m", "--set", "price=[1000000,0]",
                       "--set", "chat.wait_seconds=0.01")  # fmt: skip
    lines = found.stdout.splitlines()
    assert "The replies cost 56.0000, at the given prices." in lines  # eight replies of seven tokens
    assert "1 try brought no answer and may be billed too: it is in no count." in lines
