import os
import signal
from pathlib import Path

import pytest

import warm_process
from chat_server import chatting
from steelyard.core.errors import FileError
from steelyard.io.cases import read_cases, write_cases
from steelyard.recipes.recipe import read_recipe
from steelyard.recipes.run import plan, run
from strategies import case

pytestmark = pytest.mark.slow

RECIPE = Path(__file__).parents[2] / "recipes" / "labelling.toml"
QUESTIONS = (
    "Where does the river begin?",
    "Why is the sky blue at noon?",
    "How do bees make honey?",
    "Who wrote Hamlet?",
)
STAGES = ("prepared", "sampled", "cleaned", "judged", "resolved", "described", "report")
NUM_SAMPLES = 4 * 3
NUM_REQUESTS = NUM_SAMPLES + 4 * 3 * 2


def respond(question):
    """Write one of two sentences by the seed, and judge longer answers to be better: the only two things asked here."""
    text = question["messages"][-1]["content"]
    if "[[A]]" in "".join(message["content"] for message in question["messages"]):
        return "The first says more.\n\n[[A]]" if text.count("at length") % 2 else "The second says more.\n\n[[B]]"
    end = " at length" if question["seed"] % 2 else ""
    return f"This is the answer number {question['seed']}: it is told{end}."


def settings_for(folder, server):
    cases = [case(f"p{number}", "", text=text) for number, text in enumerate(QUESTIONS)]
    cases.append(case("copy", "", text=f"{QUESTIONS[0]} "))
    write_cases(folder / "prompts.jsonl", cases)
    chat = f'{{ base_url = "{server.url}", model = "m", workers = 1, num_tries = 1 }}'
    (folder / "plan.toml").write_text(f"[[models]]\nnum_responses = 3\nchat = {chat}\n", encoding="utf-8")
    judging = {"kind": "openai_compatible", "base_url": server.url, "model": "m", "workers": 1, "num_tries": 1}
    return {
        "prepared": {"cases": str(folder / "prompts.jsonl")},
        "sampled": {"plan": str(folder / "plan.toml")},
        "judged": {"chat": judging, "judge": {"style": "qwen"}},
    }


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """The server, the settings, the folder of a run that nothing interrupts, and its stages."""
    folder = tmp_path_factory.mktemp("labelling")
    with chatting(respond) as server:
        settings = settings_for(folder, server)
        completed = run(read_recipe(RECIPE, settings), folder / "straight")
        yield server, settings, folder / "straight", completed


def test_recipe_runs_from_prompts_to_labels(straight):
    _, _, out, completed = straight
    assert tuple(stage.name for stage in completed) == STAGES
    labelled = list(read_cases(out / "resolved" / "cases.jsonl"))
    # The prompt that is another's copy leaves; three responses are three pairs.
    assert [(each.prompt.id, each.prompt.language, len(each.responses)) for each in labelled] == [
        (f"p{number}", "en", 3) for number in range(4)
    ]
    assert all(len(each.judgments) == 3 and each.ranking for each in labelled)
    assert "From prompts to labels" in (out / "report" / "report.html").read_text("utf-8")


def test_finished_stages_ask_nothing(straight):
    server, settings, out, _ = straight
    before = len(server.questions)
    assert all(stage.was_finished for stage in run(read_recipe(RECIPE, settings), out))
    assert len(server.questions) == before


@pytest.mark.parametrize(("stage", "num_asked"), [("sampled", 5), ("judged", NUM_SAMPLES + 9)])
def test_killed_while_a_chat_is_asked_nothing_is_lost_or_asked_twice(straight, tmp_path, stage, num_asked):
    server, settings, out, _ = straight
    before = len(server.questions)
    with server.silent(after=num_asked - 1):
        running = interrupted(settings, tmp_path)
        while len(server.questions) - before < num_asked:
            assert not running.ends_within(0.01)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    assert not (tmp_path / stage / "run.json").exists()
    run(read_recipe(RECIPE, settings), tmp_path)
    # The one request that had no answer is asked a second time.
    assert len(server.questions) - before == NUM_REQUESTS + 1
    assert_same(tmp_path, out)


@pytest.mark.parametrize("stage", [name for name in STAGES if name != "described"])  # it writes its record alone
def test_killed_while_a_stage_writes_the_same_command_goes_on(straight, tmp_path, stage):
    server, settings, out, _ = straight
    before = len(server.questions)
    assert interrupted(settings, tmp_path, at=stage).wait().returncode == -signal.SIGKILL
    states = {each.step.name: each.state for each in plan(read_recipe(RECIPE, settings), tmp_path)}
    place = STAGES.index(stage)
    assert [states[name] for name in STAGES[: place + 1]] == ["finished"] * place + ["to go on"]
    run(read_recipe(RECIPE, settings), tmp_path)
    assert len(server.questions) - before == NUM_REQUESTS
    assert_same(tmp_path, out)


def interrupted(settings, out, *, at=None):
    """Run the recipe in a process of its own, which kills itself where the stage ``at`` asks for its first file."""
    script = f"""
import os, signal
from pathlib import Path
from steelyard.io import run_folder
from steelyard.recipes.recipe import read_recipe
from steelyard.recipes.run import run
path = run_folder.Result.path
def path_or_end(result, name):
    found = path(result, name)
    if {at!r} in found.parts:
        os.kill(os.getpid(), signal.SIGKILL)
    return found
run_folder.Result.path = path_or_end
run(read_recipe(Path({str(RECIPE)!r}), {settings!r}), Path({str(out)!r}))
"""
    return warm_process.Process(["-c", script])


def assert_same(folder, straight):
    for stage in STAGES[:5]:
        assert (folder / stage / "cases.jsonl").read_bytes() == (straight / stage / "cases.jsonl").read_bytes()


def test_a_file_of_shares_is_an_input_with_a_hash(tmp_path):
    settings = {"prepared": {"cases": str(tmp_path / "prompts.jsonl")}}
    write_cases(tmp_path / "prompts.jsonl", [case(f"p{place}", "", text=text) for place, text in enumerate(QUESTIONS)])
    shares = tmp_path / "shares.toml"
    shares.write_text("[language]\nen = 1.0\n", encoding="utf-8")
    bench = tmp_path / "bench.jsonl"
    write_cases(bench, [case("b", "", text=QUESTIONS[3])])
    settings["prepared"] |= {"shares": str(shares), "against": [str(bench)]}
    recipe = read_recipe(RECIPE, settings)
    step = recipe.step("prepared")
    step.call.function(
        tmp_path / "prompts.jsonl", tmp_path / "out" / "prepared", step.config, shares=shares, against=[bench]
    )
    assert state_of(recipe, tmp_path, "prepared") == ("finished", "")
    assert len(list(read_cases(tmp_path / "out" / "prepared" / "cases.jsonl"))) == 3
    shares.write_text("[language]\nen = 1.0 # all\n", encoding="utf-8")
    assert state_of(recipe, tmp_path, "prepared") == ("differs", f"another content of shares: {shares}")


def state_of(recipe, folder, name):
    (found,) = [each for each in plan(recipe, folder / "out") if each.step.name == name]
    return found.state, found.why


def test_scores_and_peoples_labels_are_inputs_that_a_recipe_may_give(tmp_path):
    files = {key: tmp_path / f"{key}.jsonl" for key in ("scores", "calibrate")}
    settings = {"judged": {key: str(path) for key, path in files.items()} | {"pairs": "unsure", "num_pairs": 2}}
    write_cases(tmp_path / "prompts.jsonl", [case("p", "")])
    settings["prepared"] = {"cases": str(tmp_path / "prompts.jsonl")}
    recipe = read_recipe(RECIPE, settings)
    write_cases(files["calibrate"], [case("p", "ab")])
    with pytest.raises(FileError, match=r"stages\.judged\.scores: there is no file '.*scores\.jsonl'"):
        run(recipe, tmp_path / "out")
    assert recipe.step("judged").reference("calibrate").text == str(files["calibrate"])
    assert recipe.step("judged").config.num_pairs == 2
