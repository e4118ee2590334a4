import json

from typer.testing import CliRunner

from recipe_files import small_recipe
from steelyard.cli.main import build_app
from steelyard.core.errors import WaitingError
from steelyard.io.cases import write_cases
from strategies import case

WAITING = """
[stages.asked]
verb = "annotate"
cases = "cases.jsonl"
config.project = "bench"

[stages.answers]
verb = "annotated"
project = "asked/project.json"
"""


def call(*words):
    return CliRunner().invoke(build_app(), ["run", *map(str, words)])


def test_plan_then_run_then_run_again(tmp_path):
    recipe, out = small_recipe(tmp_path), tmp_path / "out"
    planned = call(recipe, "--out", out, "--dry-run")
    assert planned.stdout.splitlines()[:4] == [
        "made       to run",
        "           simulate",
        "ranked     to run",
        "           resolve of made/cases.jsonl",
    ]
    assert not out.exists()
    brief, _, more = call(recipe, "--out", out, "--verbose").stdout.partition("\n\n")
    assert brief.startswith(f"{out} has all 4 stages of the recipe: 4 ran in ")
    assert brief.splitlines()[-1].startswith(f"next: steelyard view {out}")
    told = more.splitlines()
    assert told[0].startswith("made       simulate, ")
    assert told[3].split() == [str(out / "ranked" / "cases.jsonl")]
    again = json.loads(call(recipe, "--out", out, "--json").stdout)
    assert [one["was_finished"] for one in again["stages"]] == [True] * 4
    rows = json.loads(call(recipe, "--out", out, "--dry-run", "--json", "--set", "scored.model.seed=1").stdout)
    assert {row["name"]: row["state"] for row in rows}["made"] == "finished"


def test_a_stage_that_waits_for_people_is_shown_with_their_number_and_the_next_step(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path / "cases.jsonl", [case(f"q{number}", "abc") for number in range(3)])
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(WAITING, encoding="utf-8")
    stopped = call(recipe, "--out", "out")
    assert isinstance(stopped.exception, WaitingError)
    asked, answers = json.loads(call(recipe, "--out", "out", "--dry-run", "--json").stdout)
    assert (asked["state"], asked["num_waiting"]) == ("waiting", 3)
    assert (answers["state"], answers["num_waiting"], answers["do"]) == ("to run", 0, "")
    # The step is pasted as it stands.
    assert "steelyard workbench serve --database sqlite:///workbench.db" in asked["do"]
    lines = call(recipe, "--out", "out", "--dry-run").stdout.splitlines()
    assert lines[0].startswith("asked    waiting (for people: ")
    assert "3 of 3 items of the project 'bench'" in lines[0]
    assert lines[2].strip() == f"do: {asked['do']}"


def test_from_reruns_a_stage_and_its_dependents(tmp_path):
    recipe, out = small_recipe(tmp_path), tmp_path / "out"
    call(recipe, "--out", out)
    planned = call(recipe, "--out", out, "--dry-run", "--set", "evaluated.num_resamples=30").stdout
    assert "evaluated  differs (other settings: num_resamples)" in planned
    assert planned.splitlines()[-1] == "to replace what differs: --from evaluated"
    told = call(recipe, "--out", out, "--from", "evaluated", "--set", "evaluated.num_resamples=30", "--verbose").stdout
    assert "1 ran in" in told
    assert "; 3 were finished before." in told
    assert "scored     score, finished before" in told
    assert "evaluated  evaluate, finished before" not in told
