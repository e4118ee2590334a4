"""The verb that writes answers one by one, and what the exports of kinds with judgments become."""

import json

import pytest
from typer.testing import CliRunner

from steelyard.annotation.pipeline import PipelineRules
from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError, OutputError
from steelyard.io.cases import read_cases
from steelyard.workbench.demo import add_guidelines
from steelyard.workbench.simulated_people import Habits
from steelyard.workbench.simulated_projects import import_batch, start_project
from steelyard.workbench.simulation import work_until_finished
from steelyard.workbench.storage.database import Database
from task_kind_cases import cases_for, rules_for


def worked(template, folder, kind):
    """A database in which simulated people have finished two batches of a kind."""
    path = folder / "workbench.db"
    path.write_bytes(template.read_bytes())
    database = Database(f"sqlite:///{path}")
    cases, rules = cases_for(kind, 16), PipelineRules(gold_share=0.5)
    habits = Habits(stubborn_share=0.5, rejected_share=0.3)
    start = start_project(
        database, cases, seed=3, begun_at=0.0, num_annotators=16, rules=rules, tasks=rules_for(kind), habits=habits
    )
    add_guidelines(start)
    for batch, part in (("first", cases[:8]), ("second", cases[8:])):
        import_batch(start, part, batch)
        work_until_finished(start)
    database.close()
    return f"sqlite:///{path}"


def run(*words):
    return CliRunner().invoke(build_app(), [*map(str, words)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pairwise", "triple", "baseline"])
def test_records_say_all_and_judgments_are_resolved_as_they_are(sqlite_template, tmp_path, kind):
    address = worked(sqlite_template, tmp_path, kind)
    place = ("--project", "Simulated project", "--database", address)
    answers, gold = tmp_path / "answers.jsonl", tmp_path / "gold.jsonl"
    assert run("workbench", "export", *place, "--what", "answers", "--out", answers).exit_code == 0
    printed = run("workbench", "export", *place, "--what", "gold", "--out", gold)
    assert printed.exit_code == 0
    rows = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    given = [row for row in rows if row["stage"] == "annotation"]
    assert {row["batch"] for row in given} == {"first", "second"}
    assert all(row["guideline"]["version"] == 1 for row in given)
    tasks = [json.loads(line) for line in gold.read_text(encoding="utf-8").splitlines()]
    results = [each for task in tasks for each in task["answers"] if each["judged"] and not each["void"]]
    # The table is that of the file: what was given to gold tasks, and the mean of its shares.
    assert len([row for row in given if row["gold"]]) == sum(len(task["answers"]) for task in tasks)
    assert results or kind != "triple"
    if results:
        mean = sum(each["same"] / each["judged"] for each in results) / len(results)
        last = printed.output.strip().splitlines()[-1]
        assert last.split()[:3] == ["all", str(len(results)), f"{mean:.1%}"]
    cases = tmp_path / "cases.jsonl"
    assert run("workbench", "export", *place, "--out", cases).exit_code == 0
    judgments = [judgment for case in read_cases(cases) for judgment in case.judgments]
    assert all(each.meta["guideline_version"] == 1 for each in judgments if each.meta["stage"] == "annotation")
    assert run("resolve", cases, "--out", tmp_path / "resolved").exit_code == 0
    assert all(case.ranking for case in read_cases(tmp_path / "resolved" / "cases.jsonl"))


@pytest.mark.slow
def test_a_file_that_holds_something_else_stays(sqlite_template, tmp_path):
    address, out = worked(sqlite_template, tmp_path, "span_marking"), tmp_path / "answers.jsonl"
    place = ("--project", "Simulated project", "--database", address)
    words = ("workbench", "export", *place, "--what", "answers", "--out")
    out.write_text("mine\n", encoding="utf-8")
    assert isinstance(run(*words, out).exception, OutputError)
    assert out.read_text(encoding="utf-8") == "mine\n"
    assert run(*words, out, "--force").exit_code == 0
    assert "It was there, with equal content." in run(*words, out).output
    assert isinstance(run(*words, tmp_path / "answers.csv").exception, ConfigError)
