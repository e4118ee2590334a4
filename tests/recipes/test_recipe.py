import json

import pytest

import tiny
from recipe_files import SMALL, small_recipe
from steelyard.core.errors import ConfigError, FileError, UserError
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.lines import read_toml
from steelyard.io.run_folder import read_run
from steelyard.recipes.recipe import Reference, StageInput, find_recipe, read_recipe, stage_call, stage_verbs
from steelyard.recipes.run import check_files, plan, run
from steelyard.stages.simulate import Config as Simulation
from steelyard.stages.simulate import simulate
from steelyard.training.config import Config as Training
from steelyard.training.config import check_settings
from strategies import case
from toy_prompts import toy_prompts


def refused(tmp_path, text, found):
    with pytest.raises(UserError, match=found):
        read_recipe(small_recipe(tmp_path, text))


def test_recipe_references_inputs_of_each_stage(tmp_path):
    recipe = read_recipe(small_recipe(tmp_path))
    assert [step.name for step in recipe.steps] == ["made", "ranked", "scored", "evaluated"]
    assert recipe.step("evaluated").inputs == {
        "benches": (Reference("made/test.jsonl", "made"),),
        "model": (Reference("shorter", None),),
        "train_cases": (Reference("ranked/cases.jsonl", "ranked"),),
    }
    assert recipe.about == "a small pipeline"


def test_seed_is_passed_to_stages_without_their_own(tmp_path):
    path = small_recipe(tmp_path, SMALL + "config.seed = 9\n")
    read = read_recipe(path)
    assert (read.step("made").config.seed, read.step("evaluated").config.seed) == (3, 9)
    assert not hasattr(read.step("scored").config, "seed")
    assert read_recipe(path, seed=5).step("made").config.seed == 5


def test_settings_override_the_recipe(tmp_path):
    recipe = read_recipe(small_recipe(tmp_path), {"made": {"num_prompts": 48}})
    assert (recipe.step("made").config.num_prompts, recipe.step("made").config.test_share) == (48, 0.5)
    with pytest.raises(ConfigError, match="settings: the recipe has no stage 'mad'\n  allowed: did you mean 'made'"):
        read_recipe(small_recipe(tmp_path), {"mad": {"num_prompts": 48}})
    with pytest.raises(ConfigError, match=r"stages\.made: unknown setting or input 'num_promps'"):
        read_recipe(small_recipe(tmp_path), {"made": {"num_promps": 48}})


def test_stages_are_sorted_by_dependency(tmp_path):
    text = """
    [stages.last]
    verb = "merge"
    files = ["b/cases.jsonl", "a/cases.jsonl"]
    [stages.b]
    verb = "resolve"
    cases = "a/cases.jsonl"
    [stages.a]
    verb = "simulate"
    [stages.free]
    verb = "simulate"
    """
    recipe = read_recipe(small_recipe(tmp_path, text))
    assert [step.name for step in recipe.steps] == ["a", "b", "last", "free"]
    assert recipe.after("b") == ("b", "last")
    assert recipe.after("a") == ("a", "b", "last")


def test_dependency_cycle_is_named(tmp_path):
    circle = """
    [stages.a]
    verb = "resolve"
    cases = "b/cases.jsonl"
    [stages.b]
    verb = "resolve"
    cases = "a/cases.jsonl"
    """
    refused(tmp_path, circle, r"small\.toml: stages that wait for each other: (a reads b reads a|b reads a reads b)")
    refused(tmp_path, '[stages.a]\nverb="resolve"\ncases="a/cases.jsonl"', "each other: a reads a")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = [", r"small\.toml: not valid TOML"),
        ("", r"small\.toml: the file is empty|a recipe without stages"),
        ("stages = 3", "a recipe without stages"),
        ('stage = "x"', "unknown key 'stage'\n  allowed: did you mean 'stages'"),
        ("[stages.a]\ncases='x'", r"at stages\.a: a stage without a verb"),
        ("[stages.a]\nverb='resolv'", r"at stages\.a: there is no stage 'resolv'\n  allowed: did you mean 'resolve'"),
        ("[stages.a]\nverb='resolve'\ncase='x'", "unknown key 'case'\n  allowed: did you mean 'cases'"),
        ("[stages.a]\nverb='resolve'", "the stage 'resolve' needs cases\n  do: add cases = "),
        ("[stages.a]\nverb='resolve'\ncases=[]", "cases names no files"),
        ("[stages.a]\nverb='resolve'\ncases=''", "cases names no files"),
        ("[stages.a]\nverb='merge'\nfiles=[3]", "files names no files\n  allowed: texts in a list"),
        ("[stages.a]\nverb='simulate'\nconfig=3", "config must be a table"),
        ("[stages.a]\nverb='simulate'\nnum_threads=0", "num_threads must be a positive integer"),
        ("[stages.a]\nverb='simulate'\nconfig.seed='x'", r"stages\.a\.config: seed is 'x'"),
    ],
)
def test_recipe_errors_name_their_place(tmp_path, text, found):
    refused(tmp_path, text, found)


def test_every_wrong_stage_of_a_recipe_is_named_with_its_line(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(
        "[stages.a]\nverb = 'resolv'\n\n[stages.b]\nverb = 'simulate'\n[stages.b.config]\nsed = 1\n"
        "[stages.'a.b']\nverb = 'resolve'\ncases = 'x'\ncase = 'x'\n",
        encoding="utf-8",
    )
    with pytest.raises(ConfigError) as refused:
        read_recipe(path)
    summary, *faults = str(refused.value).split("\n")
    assert summary == "3 stages of the recipe are wrong"
    assert [fault.partition(": ")[0] for fault in faults] == [
        f"  {path}:1 at stages.a",
        f"  {path}:7 at stages.b.config",
        f"  {path}:11 at stages.a.b",
    ]


def test_find_recipe_ignores_a_folder_of_that_name(tmp_path, monkeypatch):
    (tmp_path / "demo").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_recipe("demo").name == "demo.toml"


def test_shipped_recipes_are_found_by_name():
    assert find_recipe("demo").name == "demo.toml"
    with pytest.raises(
        FileError, match=r"demos: there is no such recipe\n  allowed: a \.toml file, or did you mean 'demo'"
    ):
        find_recipe("demos")
    with pytest.raises(FileError, match="there is no such file"):
        find_recipe("demos.toml")


def test_shipped_recipes_are_valid():
    folder = find_recipe("demo").parent
    for path in folder.glob("*.toml"):
        assert read_recipe(path).steps, path
        assert read_recipe(path).about, path


def test_settings_override_stage_inputs(tmp_path):
    recipe = read_recipe(small_recipe(tmp_path), {"ranked": {"cases": "mine.jsonl", "seed": 7}})
    assert recipe.step("ranked").inputs == {"cases": (Reference("mine.jsonl", None),)}
    with pytest.raises(ConfigError, match=r"stages\.ranked: cases names no files"):
        read_recipe(small_recipe(tmp_path), {"ranked": {"cases": 3}})


@pytest.mark.parametrize(("stage", "epochs"), [("human_model", 2), ("model", 1)])
def test_cheems_recipe_has_the_settings_of_table_9(stage, epochs):
    config = read_recipe(find_recipe("cheems")).step(stage).config
    assert isinstance(config, Training)
    check_settings(config)
    assert (config.max_length, config.regulariser, config.epochs) == (2048, 0.1, epochs)
    assert (config.warmup_ratio, config.schedule, config.learning_rate) == (0.1, "cosine", 5e-6)
    # Micro-batch 2, accumulation 4 and a global batch of 256 say that there are 32 devices: a step is 256 responses.
    assert (config.batching, config.responses_per_step) == ("greedy", 2 * 4 * 32)


@pytest.mark.field
def test_cheems_recipe_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "made"
    simulate(made, Simulation(num_prompts=36, test_share=0.34, llm_share=0.5))
    (made / "cases.jsonl").rename(tmp_path / "human.jsonl")
    (made / "llm.jsonl").rename(tmp_path / "llm.jsonl")
    test = list(read_cases(made / "test.jsonl"))
    write_cases(tmp_path / "open.jsonl", test[::2])
    write_cases(tmp_path / "human_instruction.jsonl", test[1::2])
    base = tiny.save_base(tmp_path / "base")
    short = {"epochs": 1, "model": base}
    found = run(
        read_recipe(find_recipe("cheems_labelled"), {"human_model": short, "model": short}, seed=1), tmp_path / "out"
    )
    done = {one.name: one.run for one in found}
    assert set(done) == {
        "human", "llm", "human_model", "supervised", "debiased", "combined", "model", "cheemsbench", "report",
    }  # fmt: skip
    assert done["human_model"].config["learning_rate"] == done["model"].config["learning_rate"] == 5e-6
    assert done["supervised"].counts.dropped["disagrees"] > 0
    assert done["combined"].summary.num_cases == done["human"].counts.num_in + done["llm"].counts.num_in
    # A simulated part of CheemsBench has both of its subsets, and no headline.
    assert {"open_prompt", "human_instruction"} == done["cheemsbench"].summary.missing.keys()
    assert done["cheemsbench"].summary.subsets
    assert (tmp_path / "out" / "report" / "report.html").is_file()


def test_stages_with_a_record_are_callable():
    found = stage_verbs()
    assert {"simulate", "merge", "resolve", "split", "train", "score", "evaluate", "report"} <= set(found)
    assert "doctor" not in found


def test_stage_inputs_follow_from_the_signature():
    call = stage_call("evaluate", where="f")
    assert call.inputs == {
        "benches": StageInput("benches", "files", is_required=True),
        "model": StageInput("model", "name", is_required=False),
        "scores": StageInput("scores", "file", is_required=False),
        "train_cases": StageInput("train_cases", "file", is_required=False),
        "human": StageInput("human", "file", is_required=False),
        "judged": StageInput("judged", "file", is_required=False),
        "kept_prompts": StageInput("kept_prompts", "file", is_required=False),
        "relabelled": StageInput("relabelled", "file", is_required=False),
    }
    assert stage_call("train", where="f").inputs["model"] == StageInput("model", "name", is_required=True)


@pytest.mark.parametrize("verb", ["resolv", "doctor", "os", ""])
def test_unknown_verb_suggests_the_nearest(verb):
    with pytest.raises(ConfigError, match=rf"^f: there is no stage '{verb}'\n  allowed: .*resolve"):
        stage_call(verb, where="f")


def test_stages_with_a_dry_run_are_stages_of_recipes():
    assert "sample" in stage_verbs()
    assert {name: given.accepts for name, given in stage_call("sample", where="r").inputs.items()} == {
        "cases": "file", "plan": "file",
    }  # fmt: skip


def write_recipe(folder, text):
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_of_known_formats_become_cases_within_a_recipe(tmp_path):
    rows = [{"prompt": f"Which river is number {number}?"} for number in range(3)]
    for name, kept in (("a", rows[:2]), ("b", rows[2:])):
        text = "".join(json.dumps(row) + "\n" for row in kept)
        (tmp_path / f"rows_{name}.jsonl").write_text(text, encoding="utf-8")
    code = '[stages.read]\nverb = "convert"\nfiles = ["rows_*.jsonl"]\nconfig.language = "en"\n'
    path = write_recipe(tmp_path, f'{code}[stages.described]\nverb = "describe"\ncases = "read/cases.jsonl"\n')
    done = {one.name: one.run for one in run(read_recipe(path), tmp_path / "out")}
    assert done["read"].stage == "convert"
    assert set(done["read"].inputs) == {"source.1", "source.2"}
    found = list(read_cases(tmp_path / "out" / "read" / "cases.jsonl"))
    assert [(one.prompt.messages[0].content, one.prompt.language) for one in found] == [
        (row["prompt"], "en") for row in rows
    ]
    again = run(read_recipe(path), tmp_path / "out")
    assert [one.was_finished for one in again] == [True, True]


def test_a_stage_converts_into_case_files_alone(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"prompt": "Why?"}\n', encoding="utf-8")
    text = '[stages.read]\nverb = "convert"\nfiles = ["rows.jsonl"]\nconfig.to_kind = "trl"\n'
    with pytest.raises(ConfigError, match="leave to_kind away"):
        run(read_recipe(write_recipe(tmp_path, text)), tmp_path / "out")


def test_the_name_of_a_shipped_plan_is_an_input(tmp_path):
    write_cases(tmp_path / "prompts.jsonl", [case("p", "", text="Why?")])
    text = '[stages.sampled]\nverb = "sample"\ncases = "prompts.jsonl"\nplan = "{}"\n'
    recipe = read_recipe(write_recipe(tmp_path, text.format("cheems")))
    check_files(recipe, tmp_path / "out")
    (step,) = recipe.steps
    (found,) = step.files("plan", recipe.locate(step.inputs["plan"][0], tmp_path / "out"))
    assert found.name == "cheems.toml"
    assert len(read_toml(found)["models"]) == 12
    with pytest.raises(FileError, match="there is no file 'chems'"):
        check_files(read_recipe(write_recipe(tmp_path, text.format("chems"))), tmp_path / "out")


def evaluation_of(tmp_path, benches, config="", settings=None):
    text = f"""[stages.ranked]
verb = "resolve"
cases = "cases.jsonl"
[stages.evaluated]
verb = "evaluate"
benches = {benches}
model = "longer"
[stages.evaluated.config]
{config}
"""
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    step = read_recipe(path, settings).step("evaluated")
    return step.config.bench_kind, [(reference.text, reference.stage) for reference in step.inputs["benches"]]


def test_a_bench_may_have_its_kind_before_it(tmp_path):
    assert evaluation_of(tmp_path, ["cheemsbench=open.jsonl"]) == ("cheemsbench", [("open.jsonl", None)])
    assert evaluation_of(tmp_path, ["rmb=ranked/cases.jsonl"]) == ("rmb", [("ranked/cases.jsonl", "ranked")])
    assert evaluation_of(tmp_path, ["cases=x.jsonl"]) == ("cases", [("x.jsonl", None)])
    assert evaluation_of(tmp_path, ["x.jsonl"], 'bench_kind = "rmb"') == ("rmb", [("x.jsonl", None)])
    assert evaluation_of(tmp_path, ["rmb=x.jsonl"], 'bench_kind = "rmb"') == ("rmb", [("x.jsonl", None)])
    (tmp_path / "lang=zh").mkdir()
    assert evaluation_of(tmp_path, ["lang=zh"]) == ("cases", [("lang=zh", None)])
    changed = {"evaluated": {"benches": ["cheemsbench=y.jsonl"]}}
    assert evaluation_of(tmp_path, ["x.jsonl"], settings=changed) == ("cheemsbench", [("y.jsonl", None)])


@pytest.mark.parametrize(
    ("benches", "config"),
    [(["cheemsbench=a.jsonl", "rmb=b.jsonl"], ""), (["rmb=a.jsonl", "b.jsonl"], ""), (["rmb=a"], 'bench_kind = "x"')],
)
def test_two_kinds_of_bench_in_a_stage_are_refused(tmp_path, benches, config):
    with pytest.raises(ConfigError, match=r"two kinds of bench in one stage: .*rmb"):
        evaluation_of(tmp_path, benches, config)


def test_a_recipe_runs_with_the_kind_of_a_bench(tmp_path):
    write_cases(tmp_path / "open.jsonl", toy_prompts(4, right=True))
    path = tmp_path / "recipe.toml"
    path.write_text(
        '[stages.e]\nverb = "evaluate"\nmodel = "longer"\nbenches = ["cheemsbench=open.jsonl"]\n', encoding="utf-8"
    )
    run(read_recipe(path, {"e": {"num_resamples": 20}}), tmp_path / "out")
    assert read_run(tmp_path / "out" / "e").config["bench_kind"] == "cheemsbench"
    assert [stage.state for stage in plan(read_recipe(path, {"e": {"num_resamples": 20}}), tmp_path / "out")] == [
        "finished"
    ]
    path.write_text(path.read_text().replace("cheemsbench=", "cheembsench="), encoding="utf-8")
    with pytest.raises(UserError, match=r"cheembsench.*\n.*did you mean 'cheemsbench'"):
        run(read_recipe(path), tmp_path / "other")
