"""The verb `clean`: files, counts, a dry run, processes, and what users are told."""

import json

import msgspec
import pytest
from typer.testing import CliRunner

import steelyard as sy
from report_sections import only_section, panels_of
from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.types import Message, Prompt, Response
from steelyard.evaluation.tables import word
from steelyard.io.cases import read_cases, write_cases
from steelyard.stages.clean import Config, clean
from steelyard.stages.clean import preview as preview_cleaning

GOOD = "Mix flour, water, salt and yeast, number {}. Let the dough rise. Bake it for forty minutes in a hot oven."


def case(number, *texts, language="en"):
    question = Message(role="user", content=f"How is bread number {number} baked, with all of its steps?")
    return sy.Case(
        prompt=Prompt(id=f"p{number}", messages=(question,), language=language, category=("cooking",)),
        responses=tuple(
            Response(id=f"r{place}", text=text, author=f"model-{place}") for place, text in enumerate(texts)
        ),
    )


@pytest.fixture
def file(tmp_path):
    cases = [case(number, GOOD.format(number), GOOD.format(number + 0.5)) for number in range(30)]
    cases[3] = case(3, GOOD.format(3), f"As an AI developed by OpenAI, I bake. {GOOD.format(4)}")
    cases[4] = case(4, GOOD.format(4), "")
    cases[5] = case(5, GOOD.format(5), "I'm sorry, but I can't help with that.")
    cases[6] = case(6, GOOD.format(6), " ".join(GOOD.format(number) for number in range(200)))
    write_cases(tmp_path / "cases.jsonl", cases)
    return tmp_path / "cases.jsonl"


def manifest(folder):
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_run_has_what_stays_and_the_manifest_what_does_not(file, tmp_path):
    run = clean(file, tmp_path / "out")
    assert (run.counts.num_in, run.counts.num_used) == (60, 57)
    assert run.counts.dropped == {"empty": 1, "refusal": 1, "repeated_text": 1}
    cases = {case.prompt.id: case for case in read_cases(tmp_path / "out" / "cases.jsonl")}
    assert len(cases) == 30
    assert [len(cases[name].responses) for name in ("p3", "p4", "p5", "p6")] == [2, 1, 1, 1]
    assert "OpenAI" not in (tmp_path / "out" / "cases.jsonl").read_text(encoding="utf-8")
    rows = manifest(tmp_path / "out")
    by_prompt = {(row["prompt"], row["rule"]): row for row in rows}
    assert by_prompt["p3", "names_model"]["original"]["text"].startswith("As an AI developed by OpenAI")
    assert [row["prompt"] for row in rows if row["original"]] == ["p3"]
    # The longest answer is over a bound that comes from the others of its category and language.
    too_long = by_prompt["p6", "too_long"]
    assert 3000 <= too_long["limit"] < too_long["figure"]
    assert run.summary.num_prompts_with_few == 3
    assert run.summary.authors["model-1"].num_dropped == 3
    assert clean(file, tmp_path / "out") == run


def test_processes_and_parquet_give_equal_results(file, tmp_path):
    write_cases(tmp_path / "cases.parquet", read_cases(file))
    alone = clean(file, tmp_path / "alone", workers=1)
    several = clean(file, tmp_path / "several", workers=2)
    columns = clean(tmp_path / "cases.parquet", tmp_path / "columns", workers=1)
    texts = {
        name: (tmp_path / name / "cases.jsonl").read_bytes() + (tmp_path / name / "manifest.jsonl").read_bytes()
        for name in ("alone", "several", "columns")
    }
    assert len(set(texts.values())) == 1
    assert alone.summary == several.summary == columns.summary


def run_cli(*words):
    result = CliRunner().invoke(build_app(), ["clean", *map(str, words)])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_dry_run_counts_alike_and_writes_nothing(file, tmp_path):
    dry = preview_cleaning(file)
    assert not (tmp_path / "dry").exists()
    run = clean(file, tmp_path / "out")
    assert (dry.counts, dry.summary) == (run.counts, run.summary)
    printed = run_cli(file, "--dry-run", "--out", tmp_path / "dry")
    assert "3 of 60 responses would be dropped" in printed
    assert "I'm sorry, but I can't help with that." in printed
    assert not (tmp_path / "dry").exists()


def test_small_prompts_may_be_dropped(file, tmp_path):
    run = clean(file, tmp_path / "out", Config(small_prompts="drop"))
    assert run.counts.dropped["prompts with fewer than 2 responses left"] == 3
    assert run.summary.num_prompts_kept == 27
    assert sum(row["response"] is None for row in manifest(tmp_path / "out")) == 3


def test_actions_and_limits_from_the_command_line(file, tmp_path):
    options = ["--action", "refusal=count", "--limit", "repeated_text=1", "--json"]
    record = json.loads(run_cli(file, *options, "--out", tmp_path / "out"))
    assert record["config"]["actions"] == {"refusal": "count"}
    assert record["counts"]["noted"]["refusal"] == 1
    assert "repeated_text" not in record["counts"]["dropped"]


def test_nothing_is_written_where_nothing_would_stay(tmp_path):
    write_cases(tmp_path / "empty.jsonl", [case(1, "", " ")])
    with pytest.raises(EvidenceError, match="drop every response"):
        clean(tmp_path / "empty.jsonl", tmp_path / "out")
    assert not list((tmp_path / "out").glob("*.jsonl")) if (tmp_path / "out").exists() else True
    write_cases(tmp_path / "none.jsonl", [case(1)])
    with pytest.raises(EvidenceError, match="no case has a response"):
        clean(tmp_path / "none.jsonl", tmp_path / "out")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (Config(actions={"refusals": "drop"}), "refusal"),
        (Config(limits={"too_long": 5}), "length_spread"),
        (Config(length_spread=0), "above 0"),
        (Config(always_fine_from=5000), "smaller"),
    ],
)
def test_settings_that_make_no_sense_are_refused(file, tmp_path, config, words):
    with pytest.raises(ConfigError, match=words):
        clean(file, tmp_path / "out", config)
    assert not (tmp_path / "out").exists()


def test_cleaning_from_python(file):
    cleaned = sy.clean(sy.Cases(str(file)), actions={"refusal": "count"})
    assert cleaned.counts.num_used == 58
    assert {row["rule"] for row in cleaned.rows("manifest")} >= {"empty", "refusal", "names_model"}


def test_the_report_shows_examples_of_each_rule(file, tmp_path):
    clean(file, tmp_path / "out")
    section, sentences = only_section(tmp_path / "out")
    assert sentences[0].key == "say_cleaned"
    assert (sentences[0].values["dropped"], sentences[0].values["responses"]) == ("3", "60")
    panels = panels_of(section)
    bars = panels[word("cleaning_rules")].figure.spec["data"]["values"]
    assert bars[0]["number"] == 57
    refusals = panels[f"{word('examples')} · {word('rule_refusal', 'refusal')}"]
    (example,) = refusals.examples
    assert example.answers[0][1] == "I'm sorry, but I can't help with that."


def test_a_prompt_without_a_language_is_no_reason_to_guess_one(tmp_path):
    chinese = "先把面粉和水混合。然后让面团发酵一个小时。最后放进烤箱烤四十分钟。"
    write_cases(tmp_path / "c.jsonl", [case(1, chinese, GOOD.format(1), language=None)])
    run = clean(tmp_path / "c.jsonl", tmp_path / "out")
    assert run.counts.dropped == {}
    assert msgspec.to_builtins(run.summary.languages) == {"unspecified": {"num_responses": 2, "num_dropped": 0}}


def test_a_group_without_responses_has_no_lengths_and_stays(file, tmp_path):
    write_cases(tmp_path / "more.jsonl", [*read_cases(file), case(99, language="sw")])
    run = clean(tmp_path / "more.jsonl", tmp_path / "out")
    assert run.summary.num_prompts_kept == 31


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_limits_that_are_no_finite_numbers_are_refused(tmp_path, number):
    write_cases(tmp_path / "cases.jsonl", [case("p", "ab")])
    for config in (Config(limits={"repeated_text": number}), Config(length_spread=number)):
        with pytest.raises(ConfigError, match=f"(limit|length_spread) is {number}"):
            clean(tmp_path / "cases.jsonl", tmp_path / "out", config)
    assert not (tmp_path / "out").exists()
