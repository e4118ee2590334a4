import json

import pytest

from chat_server import chatting
from steelyard.core.types import Case, Message, Prompt
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.kept import read_kept
from steelyard.io.prepared_prompts import KEPT_FILE
from steelyard.stages.prompts import Config, preview, prompts

PLAIN = "Could you explain to me how a heat pump works in a cold winter?"
RHYME = "Please find three words that rhyme with the word winter."
CHINESE = "你能给我解释一下热泵在寒冷的冬天是怎么工作的吗？"


def written(tmp_path, *rows):
    cases = [
        Case(prompt=Prompt(id=name, messages=(Message(role="user", content=text),), language=language), responses=())
        for name, text, language in rows
    ]
    write_cases(tmp_path / "raw.jsonl", cases)
    return tmp_path / "raw.jsonl"


def manifest(folder):
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]


def test_prompts_that_depend_on_english_stay_unless_asked_for(tmp_path):
    raw = written(tmp_path, ("a", PLAIN, "en"), ("b", RHYME, "en"))
    run = prompts(raw, tmp_path / "out", Config())
    assert run.counts.num_used == 2
    assert manifest(tmp_path / "out") == []


@pytest.mark.parametrize(("action", "num_used"), [("drop", 2), ("count", 3)])
def test_prompts_that_depend_on_english_are_dropped_or_counted_with_an_excerpt(tmp_path, action, num_used):
    raw = written(tmp_path, ("a", PLAIN, "en"), ("b", RHYME, None), ("c", CHINESE, "zh"))
    run = prompts(raw, tmp_path / "out", Config(language_bound=action))
    assert run.counts.num_used == num_used
    (row,) = manifest(tmp_path / "out")
    assert (row["prompt"], row["rule"], row["action"]) == ("b", "language_bound: lexemes", action)
    assert "rhyme" in row["excerpt"]
    assert run.summary.findings == {"language_bound: lexemes": {action: 1}}


def test_an_excerpt_shows_no_private_data(tmp_path):
    raw = written(tmp_path, ("b", f"{RHYME} Write to li.wei@corp.cn", "en"), ("a", PLAIN, "en"))
    prompts(raw, tmp_path / "out", Config(language_bound="count", private_data={"e_mail": "mask"}))
    rows = [row for row in manifest(tmp_path / "out") if row["rule"].startswith("language_bound")]
    assert len(rows) == 1
    assert "li.wei" not in rows[0]["excerpt"]


def test_kept_prompts_are_those_that_stay_in_all_languages(tmp_path):
    rows = [("a", PLAIN, "en"), ("b", RHYME, "en"), ("b", CHINESE, "zh"), ("c", f"{PLAIN} Thanks", "en")]
    raw = written(tmp_path, *rows)
    prompts(raw, tmp_path / "out", Config(language_bound="drop", near_duplicates=0.7))
    assert [case.key for case in read_cases(tmp_path / "out" / "cases.jsonl")] == [("a", "en"), ("b", "zh")]
    kept = read_kept(tmp_path / "out" / KEPT_FILE)
    assert kept.prompts == ("a",)
    assert kept.left_out == {"b": ("language_bound: lexemes",), "c": ("near_duplicate",)}


def test_a_prompt_that_breaks_two_rules_has_both_reasons(tmp_path):
    raw = written(tmp_path, ("a", PLAIN, "en"), ("b", f"{RHYME} Write to li.wei@corp.cn", "en"))
    prompts(raw, tmp_path / "out", Config(language_bound="drop"))
    left_out = read_kept(tmp_path / "out" / KEPT_FILE).left_out
    assert left_out == {"b": ("private_data: e_mail", "language_bound: lexemes")}


def test_a_preview_shows_examples_and_forecasts_both_questions(tmp_path):
    raw = written(tmp_path, ("a", PLAIN, "en"), ("b", RHYME, "en"))
    chat = {"base_url": "http://localhost:9/v1", "model": "m"}
    shown = preview(raw, tmp_path / "out", Config(language_bound="drop", chat=chat))
    assert list(shown.examples) == ["language_bound: lexemes"]
    assert len(shown.forecasts) == 2
    assert len(preview(raw, tmp_path / "out", Config(chat=chat)).forecasts) == 1


def test_a_language_model_is_asked_too_and_its_answer_counts_for_english_only(tmp_path):
    odd = "Explain the joke: why was six afraid of seven? Because seven eight nine."
    raw = written(tmp_path, ("a", PLAIN, "en"), ("b", odd, "en"), ("c", CHINESE, "zh"), ("d", "Odd one here", "en"))

    def answer(question):
        system, prompt = (message["content"] for message in question["messages"])
        if "GRAMMAR" not in system:
            return "HARMLESS"
        return "TRANSLATABLE" if PLAIN in prompt else "unsure" if "Odd one" in prompt else "LEXEMES"

    with chatting(answer) as server:
        chat = {"base_url": server.url, "model": "m", "num_tries": 1}
        run = prompts(raw, tmp_path / "out", Config(language_bound="drop", chat=chat))
        assert len(server.questions) == 8
    assert run.counts.dropped == {"language_bound by model: lexemes": 1}
    assert run.summary.num_unparsed_replies == 1
    assert read_kept(tmp_path / "out" / KEPT_FILE).prompts == ("a", "c", "d")
