"""The demo on real data, whole, with a random backbone of two layers on a part of the packaged questions."""

import re
import shlex

import pytest
from typer.testing import CliRunner

import tiny
from steelyard.cli.main import build_app
from steelyard.core.errors import MissingPartError
from steelyard.io.cases import read_cases
from steelyard.io.hashing import file_hash
from steelyard.io.run_folder import read_run
from steelyard.recipes.demo import real_demo
from steelyard.stages import gemma

pytestmark = pytest.mark.slow

SMALL = {
    "halluqa": {"num_questions": 60, "num_answers": 5},
    "human_model": {"epochs": 1, "trainable": "last:1"},
    "model": {"epochs": 1, "trainable": "last:1"},
    "evaluated": {"num_resamples": 20},
    "human_evaluated": {"num_resamples": 20},
    "compared": {"num_resamples": 20},
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    base = tiny.save_base(folder / "base")
    words = [f"{stage}.{key}={value}" for stage, own in SMALL.items() for key, value in own.items()]
    settings = [word for setting in words for word in ("--set", setting)]
    result = CliRunner().invoke(
        build_app(), ["demo", "--real", "--model", str(base), "--out", str(folder / "out"), *settings]
    )
    assert result.exit_code == 0, (result.output, result.exception)
    return folder, base, result.stdout


def prompts(path):
    return {case.prompt.id for case in read_cases(path)}


def test_people_gpt4_and_test_have_different_questions(done):
    out = done[0] / "out"
    people, test = (prompts(out / "parts" / f"{name}.jsonl") for name in ("people", "test"))
    labelled = prompts(out / "gpt4" / "gpt4.jsonl")
    assert labelled == prompts(out / "parts" / "gpt4.jsonl")
    assert len(people | labelled | test) == len(people) + len(labelled) + len(test) == 60
    assert prompts(out / "combined" / "cases.jsonl") == people | labelled


def test_the_n_grams_learn_from_labels_that_no_network_chose(done):
    out = done[0] / "out"
    learned = read_run(out / "evaluated").inputs["train_cases"]
    assert learned.sha256 == file_hash(out / "labels" / "cases.jsonl")
    assert prompts(out / "labels" / "cases.jsonl") == prompts(out / "combined" / "cases.jsonl")
    labels = {case.key: case.judgments for case in read_cases(out / "labels" / "cases.jsonl")}
    assert all(labels[case.key] == case.judgments for case in read_cases(out / "gpt4" / "gpt4.jsonl"))


def test_test_holds_people_s_judgments_alone(done):
    for case in read_cases(done[0] / "out" / "parts" / "test.jsonl"):
        assert {judgment.kind for judgment in case.judgments} == {"human"}
        assert {response.author for response in case.responses} == {"human"}


def test_output_leads_with_the_result_and_its_limits(done):
    lines = done[2].strip().splitlines()
    assert lines[0].startswith("result     model scores the better answer higher in ")
    assert "The best baseline" in lines[0]
    assert len(lines) <= 12
    assert any("no claim about other questions" in line for line in lines)
    assert any(line.startswith("model      ") and "human_model" in line for line in lines)


def test_commands_that_it_names_run_when_pasted(done):
    commands = re.findall(r"^(?:Try next)?\s+(steelyard .*?)  # ", done[2], flags=re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        result = CliRunner().invoke(build_app(), shlex.split(command)[1:])
        assert result.exit_code == 0, (command, result.output)


def test_finished_stages_are_skipped_and_the_report_is_not_simulated(done):
    folder, base, _ = done
    again = real_demo(folder / "out", SMALL, model=str(base))
    assert again.page.is_file()
    assert "Simulated data." not in again.page.read_text("utf-8").split("<script")[0]
    assert {run.stage for run in again.runs.values()} >= {"halluqa", "supervise", "debias", "train", "evaluate"}
    assert "backbone" not in again.runs


def test_without_gemma_the_demo_stops_before_it_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(gemma, "_PACKAGES", ("a package that nobody has",))
    with pytest.raises(MissingPartError, match="Gemma Terms of Use"):
        real_demo(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_model_belongs_to_real_data(tmp_path):
    result = CliRunner().invoke(build_app(), ["demo", "--model", "x", "--out", str(tmp_path / "out")])
    assert result.exit_code != 0
    assert "--model without --real" in str(result.exception)
