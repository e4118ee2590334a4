import json
import signal
import subprocess
import sys

import pytest

from recipe_files import SMALL, small_recipe
from steelyard.core.errors import ConfigError, FileError, OutputError
from steelyard.io.cases import write_cases
from steelyard.io.run_folder import read_run
from steelyard.recipes.recipe import find_recipe, read_recipe
from steelyard.recipes.run import _threads, check_files, plan, run
from strategies import case

TINY = {
    "simulated": {"num_prompts": 48, "test_share": 0.34, "llm_share": 0.5},
    "backbone": {"hidden_size": 32, "num_layers": 1, "vocabulary": 400},
    "human_model": {"epochs": 1},
    "model": {"epochs": 3},
    "evaluated": {"num_resamples": 20},
    "by_kind": {"num_resamples": 20},
    "human_by_kind": {"num_resamples": 20},
    "compared": {"num_resamples": 20},
}


def outputs(out, names):
    return {name: read_run(out / name).outputs for name in names if name != "report"}


def test_finished_stages_are_skipped_and_recorded(tmp_path):
    recipe = read_recipe(small_recipe(tmp_path))
    first = run(recipe, tmp_path / "out")
    assert [one.was_finished for one in first] == [False] * 4
    before = {
        path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.json*") if path.parent.name != "out"
    }
    again = run(recipe, tmp_path / "out")
    assert [(one.was_finished, one.seconds) for one in again] == [(True, 0.0)] * 4
    assert {path: path.stat().st_mtime_ns for path in before} == before
    told = json.loads((tmp_path / "out" / "overview.json").read_text("utf-8"))
    assert [one["name"] for one in told["stages"]] == ["made", "ranked", "scored", "evaluated"]
    wrote = told["stages"][1]["wrote"]
    assert wrote == {"cases.jsonl": (tmp_path / "out" / "ranked" / "cases.jsonl").stat().st_size}


def test_changed_settings_need_from(tmp_path, capsys):
    path = small_recipe(tmp_path)
    run(read_recipe(path), tmp_path / "out")
    changed = read_recipe(path, {"ranked": {"only": {"kind": ["human"]}}})
    with pytest.raises(OutputError, match="holds another run"):
        run(changed, tmp_path / "out")
    said = capsys.readouterr().err
    assert "stopped at ranked" in said
    assert "redo_from=ranked" in said
    redone = run(changed, tmp_path / "out", redo_from="ranked")
    assert [one.was_finished for one in redone] == [True, False, False, False]


STOPPED = """
import os, signal, sys
from pathlib import Path
from steelyard.core.errors import EvidenceError
from steelyard.recipes import recipe as recipes
from steelyard.recipes.run import run

path, out, event_name, ending = sys.argv[1:]


def stop(event, args):
    # The record of the second stage is about to take its name.
    if event == "os.rename" and str(args[1]).endswith(event_name):
        if ending == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise EvidenceError("the second stage failed")


sys.addaudithook(stop)
run(recipes.read_recipe(Path(path)), Path(out))
"""


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["failed", "killed"])
def test_an_unfinished_stage_starts_anew_with_other_settings(tmp_path, capsys, ending):
    path, out = small_recipe(tmp_path), tmp_path / "out"
    words = [sys.executable, "-c", STOPPED, str(path), str(out), "ranked/run.json", ending]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == (-signal.SIGKILL if ending == "killed" else 1), done.stderr
    assert (out / "ranked" / "started.json").is_file()
    finished = contents(out / "made")
    assert states(path, out)["ranked"] == "to go on"
    changed = read_recipe(path, {"ranked": {"only": {"kind": ["human"]}}})
    ended = "failed" if ending == "failed" else "interrupted"
    planned = plan(changed, out)[1]
    assert (planned.state, planned.why) == ("to restart", f"{ended}; other settings: only")
    completed = run(changed, out)
    assert f"{out / 'ranked'} is unfinished ({ended}; other settings: only): this stage starts anew" in (
        capsys.readouterr().err
    )
    assert [one.was_finished for one in completed] == [True, False, False, False]
    assert contents(out / "made") == finished
    assert not (out / "ranked" / "started.json").exists()
    run(changed, tmp_path / "whole")
    assert outputs(out, ["made", "ranked", "scored"]) == outputs(tmp_path / "whole", ["made", "ranked", "scored"])


@pytest.mark.slow
def test_an_unfinished_stage_of_other_inputs_starts_anew(tmp_path, capsys):
    path, out = small_recipe(tmp_path), tmp_path / "out"
    words = [sys.executable, "-c", STOPPED, str(path), str(out), "ranked/run.json", "killed"]
    subprocess.run(words, capture_output=True, check=False)
    completed = run(read_recipe(path, {"made": {"num_prompts": 40}}), out, redo_from="made")
    assert [one.was_finished for one in completed] == [False] * 4
    (out / "ranked" / "run.json").rename(out / "ranked" / "started.json")
    started = json.loads((out / "ranked" / "started.json").read_text("utf-8"))
    started["inputs"]["cases"]["sha256"] = "0" * 64
    wanted = {key: started[key] for key in ("stage", "config", "inputs")}
    (out / "ranked" / "started.json").write_text(json.dumps(wanted), encoding="utf-8")
    capsys.readouterr()
    run(read_recipe(path, {"made": {"num_prompts": 40}}), out)
    assert "another content of cases: made/cases.jsonl): this stage starts anew" in capsys.readouterr().err


@pytest.mark.slow
def test_replies_of_a_chat_model_are_not_replaced_without_from(tmp_path, capsys):
    path, out = small_recipe(tmp_path), tmp_path / "out"
    words = [sys.executable, "-c", STOPPED, str(path), str(out), "ranked/run.json", "killed"]
    subprocess.run(words, capture_output=True, check=False)
    (out / "ranked" / "replies.sqlite").write_bytes(b"paid for")
    changed = read_recipe(path, {"ranked": {"only": {"kind": ["human"]}}})
    assert plan(changed, out)[1].state == "differs"
    with pytest.raises(OutputError, match="holds an unfinished run"):
        run(changed, out)
    assert "redo_from=ranked" in capsys.readouterr().err
    assert (out / "ranked" / "replies.sqlite").read_bytes() == b"paid for"


PATTERNS = """
[stages.merged]
verb = "merge"
files = "parts"

[stages.scored]
verb = "score"
cases = "parts/*.jsonl"
model = "longer"

[stages.evaluated]
verb = "evaluate"
benches = "parts/?.jsonl"
model = "longer"
config.num_resamples = 20
config.baselines = ["shorter"]
"""


def test_folders_and_patterns_are_inputs_and_a_new_file_in_them_is_seen(tmp_path, monkeypatch):
    (tmp_path / "recipes" / "parts").mkdir(parents=True)
    for name in "ab":
        one = case(f"p{name}", "ab", text=f"question {name}", ranking=(("a",), ("b",)))
        write_cases(tmp_path / "recipes" / "parts" / f"{name}.jsonl", [one])
    monkeypatch.chdir(tmp_path)
    recipe, out = read_recipe(small_recipe(tmp_path / "recipes", PATTERNS)), tmp_path / "out"
    assert [one.run.counts.num_in for one in run(recipe, out)] == [2, 2, 2]
    assert [one.was_finished for one in run(recipe, out)] == [True] * 3
    write_cases(tmp_path / "recipes" / "parts" / "c.jsonl", [case("pc", "ab", ranking=(("a",), ("b",)))])
    assert [stage.state for stage in plan(recipe, out)] == ["differs"] * 3


def test_a_pattern_without_files_is_refused_before_a_run(tmp_path):
    recipe = read_recipe(small_recipe(tmp_path, PATTERNS.replace("?.jsonl", "?.csv")))
    (tmp_path / "parts").mkdir()
    write_cases(tmp_path / "parts" / "a.jsonl", [case("p", "ab", ranking=(("a",), ("b",)))])
    with pytest.raises(FileError, match=r"there is no file 'parts/\?\.csv'"):
        run(recipe, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_missing_stage_output_lists_existing_ones(tmp_path):
    recipe = read_recipe(small_recipe(tmp_path, SMALL.replace("made/cases.jsonl", "made/case.jsonl")))
    with pytest.raises(
        FileError, match=r"stages\.ranked\.cases: the stage 'made' wrote no 'made/case\.jsonl'\n.*made/cases"
    ):
        run(recipe, tmp_path / "out")


KILLED = """
import os, signal, sys
import transformers.models.auto.modeling_auto
import steelyard.recipes.run, steelyard.stages.backbone, steelyard.stages.evaluate, steelyard.stages.train
from steelyard.cli.main import main

# A process for each death; what they all import is imported once. No arithmetic is done before they part.
places, sys.argv = sys.argv[1].split(","), ["steelyard", *sys.argv[2:]]
for place in places:
    child = os.fork()
    if not child:
        def kill(event, args):
            # The stage's work is done and its record is about to take its name: the worst moment to die.
            if event == "os.rename" and str(args[1]).endswith(place + "/run.json"):
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill)
        main()
    status = os.waitpid(child, 0)[1]
    is_written = os.path.exists(os.path.join(sys.argv[sys.argv.index("--out") + 1], place, "run.json"))
    print(place, os.WTERMSIG(status) if os.WIFSIGNALED(status) else None, is_written, flush=True)
"""


@pytest.mark.field
def test_killed_run_resumes_to_the_same_results(tmp_path):
    recipe = read_recipe(find_recipe("demo"), TINY)
    names = [step.name for step in recipe.steps]
    run(recipe, tmp_path / "whole")
    settings = [f"{stage}.{key}={value}" for stage, own in TINY.items() for key, value in own.items()]
    first_of_each_verb: dict[str, str] = {}
    for step in recipe.steps:
        first_of_each_verb.setdefault(step.call.verb, step.name)
    places = [*first_of_each_verb.values()]
    words = [sys.executable, "-c", KILLED, ",".join(places), "run", "demo", "--out", str(tmp_path / "killed")]
    words += [word for setting in settings for word in ("--set", setting)]
    killed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert killed.stdout.splitlines() == [f"{place} {signal.SIGKILL.value} False" for place in places], killed.stderr
    done = run(recipe, tmp_path / "killed")
    assert [one.was_finished for one in done] == [True] * (len(names) - 1) + [False]
    assert outputs(tmp_path / "killed", names) == outputs(tmp_path / "whole", names)


def test_threads_are_bounded_while_a_stage_runs():
    import torch

    before = torch.get_num_threads()
    with _threads(before + 1):
        assert torch.get_num_threads() == before + 1
    with _threads(None):
        assert torch.get_num_threads() == before
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    "name", ["../victim", "/tmp/victim", "..", ".", "", ".hidden", "a/b", "a\\b", "a\x00b", "a\nb"]
)
def test_stage_name_must_be_a_folder_name(tmp_path, name):
    quoted = json.dumps(name)
    with pytest.raises(ConfigError, match="a stage named"):
        read_recipe(small_recipe(tmp_path, SMALL.replace("[stages.made]", f"[stages.{quoted}]")))


@pytest.mark.parametrize("name", ["Made", "ＭＡＤＥ"])
def test_stages_whose_folders_a_disk_may_hold_as_one_are_refused(tmp_path, name):
    twin = f'\n[stages.{json.dumps(name)}]\nverb = "simulate"\n'
    with pytest.raises(ConfigError, match="differ in case or Unicode form alone"):
        read_recipe(small_recipe(tmp_path, SMALL + twin))


def test_stage_outputs_lie_in_the_stage_folder(tmp_path):
    recipe = read_recipe(small_recipe(tmp_path, SMALL.replace('"made/cases.jsonl"', '"made/../../cases.jsonl"')))
    with pytest.raises(FileError, match="outside"):
        run(recipe, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_symlinked_stage_folder_is_refused_before_running(tmp_path):
    for name in ("out", "victim"):
        (tmp_path / name).mkdir()
    (tmp_path / "out" / "ranked").symlink_to(tmp_path / "victim")
    with pytest.raises(FileError, match="outside"):
        run(read_recipe(small_recipe(tmp_path)), tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["ranked"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    path = small_recipe(folder)
    run(read_recipe(path), folder / "out")
    return path, folder / "out"


def states(path, out, settings=None, redone=()):
    return {one.step.name: one.state for one in plan(read_recipe(path, settings), out, redone)}


def test_plan_of_a_new_folder(tmp_path):
    assert set(states(small_recipe(tmp_path), tmp_path / "out").values()) == {"to run"}
    assert not (tmp_path / "out").exists()


def test_plan_states_after_a_run(done):
    path, out = done
    assert set(states(path, out).values()) == {"finished"}
    found = plan(read_recipe(path, {"ranked": {"only": {"kind": ["human"]}}}), out)
    assert [(one.step.name, one.state, one.why) for one in found] == [
        ("made", "finished", ""),
        ("ranked", "differs", "other settings: only"),
        ("scored", "waits", "for ranked"),
        ("evaluated", "waits", "for ranked"),
    ]
    redone = states(path, out, redone=("scored",))
    assert redone == {"made": "finished", "ranked": "finished", "scored": "to run", "evaluated": "finished"}


def test_plan_detects_changed_content_and_verb(tmp_path):
    case_file = tmp_path / "mine.jsonl"
    text = '[stages.a]\nverb = "resolve"\ncases = "mine.jsonl"\n'
    path = small_recipe(tmp_path, SMALL)
    run(read_recipe(path), tmp_path / "first")
    case_file.write_bytes((tmp_path / "first" / "made" / "cases.jsonl").read_bytes())
    own = small_recipe(tmp_path, text)
    run(read_recipe(own), tmp_path / "out")
    lines = case_file.read_text("utf-8").splitlines(keepends=True)
    case_file.write_text("".join(lines[1:]), encoding="utf-8")
    (one,) = plan(read_recipe(own), tmp_path / "out")
    assert (one.state, one.why) == ("differs", "another content of cases: mine.jsonl")
    (other,) = plan(read_recipe(small_recipe(tmp_path, "[stages.a]\nverb = 'simulate'\n")), tmp_path / "out")
    assert (other.state, other.why) == ("differs", "the folder holds a run of resolve")


def test_missing_input_is_named_before_running(tmp_path):
    path = small_recipe(tmp_path, SMALL + '[stages.more]\nverb = "resolve"\ncases = "gone/cases.jsonl"\n')
    with pytest.raises(FileError, match=r"small\.toml at stages\.more\.cases: there is no file 'gone/cases\.jsonl'"):
        check_files(read_recipe(path), tmp_path / "out")
    with pytest.raises(FileError):
        run(read_recipe(path), tmp_path / "out")
    assert not (tmp_path / "out").exists()
