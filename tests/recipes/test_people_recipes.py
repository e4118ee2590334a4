"""The recipes in which people work, end to end with a chat server and simulated people."""

import json
import re

import datasets
import pytest

import tiny
from chat_server import chatting
from steelyard.io.cases import read_cases, write_cases
from steelyard.recipes.recipe import build_recipe, find_recipe, read_recipe
from steelyard.recipes.run import run
from steelyard.stages.evaluate import Config as Evaluation
from steelyard.stages.evaluate import evaluate
from steelyard.workbench.demo import demo_cases
from steelyard.workbench.demo_kinds import cases_of_kind
from strategies import case

pytestmark = pytest.mark.slow

NOUNS = (
    "river", "volcano", "bridge", "telescope", "vaccine", "orchestra", "harvest", "election", "glacier", "painting",
    "compiler", "galaxy",
)  # fmt: skip
RULES = {"gold_share": 0.0}


def respond(question):
    """Write an answer by the seed, and judge the one of the higher seed to be better: the only two things asked."""
    text = "".join(message["content"] for message in question["messages"])
    if "[[A]]" in text:
        first, second = map(int, re.findall(r"answer number (\d+)", text))
        return "It says more.\n\n" + ("[[A]]" if first > second else "[[B]]")
    return f"This is the answer number {question['seed']}: it is told{' at length' * (question['seed'] % 3)}."


def prompts(number):
    return [
        case(f"p{place}", "", text=f"Explain to a child how a {noun} came about, and who needs it?", language="en")
        for place, noun in enumerate(NOUNS[:number])
    ]


def plan_file(folder, server):
    chat = f'{{ base_url = "{server.url}", model = "m", workers = 1, num_tries = 1 }}'
    (folder / "plan.toml").write_text(f"[[models]]\nnum_responses = 3\nchat = {chat}\n", encoding="utf-8")
    return str(folder / "plan.toml")


def annotation(**changes):
    return {"people": "simulated", "rules": RULES, **changes}


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The folder of a run of the recipe of a bench, and its stages."""
    folder = tmp_path_factory.mktemp("bench")
    write_cases(folder / "prompts.jsonl", prompts(8))
    with chatting(respond) as server:
        settings = {
            "prepared": {"cases": str(folder / "prompts.jsonl")},
            "sampled": {"plan": plan_file(folder, server)},
            "annotation": annotation(),
            "released": {"hidden_share": 0.25, "strata": [], "licence": "CC-BY-4.0"},
        }
        recipe = read_recipe(find_recipe("cheems_bench"), settings)
        completed = run(recipe, folder / "out")
        num_asked = len(server.questions)
        again = run(recipe, folder / "out")
        assert len(server.questions) == num_asked, "finished stages ask nothing"
    assert all(stage.was_finished for stage in again)
    return folder / "out", {stage.name: stage.run for stage in completed}


def test_raw_prompts_become_a_released_bench(released):
    out, done = released
    assert list(done) == [
        "prepared", "sampled", "cleaned", "annotation", "answers", "resolved", "described", "released", "report",
    ]  # fmt: skip
    summary = done["released"].summary
    assert (summary.prompts["bench"], summary.prompts["hidden"]) == (6, 2)
    public = {each.prompt.id for each in read_cases(out / "released" / "bench" / "cases.jsonl")}
    hidden = {each.prompt.id for each in read_cases(out / "released" / "hidden" / "cases.jsonl")}
    assert not public & hidden
    assert len(public | hidden) == 8


def test_every_line_has_the_canary_and_says_that_people_are_simulated(released):
    out, done = released
    canary = done["released"].summary.canary
    for part in ("bench", "hidden"):
        lines = (out / "released" / part / "cases.jsonl").read_text(encoding="utf-8").splitlines()
        assert all(canary in line and '"simulated":true' in line for line in lines)
        assert canary in (out / "released" / part / "bench.toml").read_text(encoding="utf-8")
        assert json.loads((out / "released" / part / "manifest.json").read_bytes())["is_simulated"] is True
        card = (out / "released" / part / "README.md").read_text(encoding="utf-8")
        assert "The people are simulated" in card
        assert "Licence: CC-BY-4.0." in card
        assert "标注者为模拟" in (out / "released" / part / "README.zh.md").read_text(encoding="utf-8")
    page = (out / "report" / "report.html").read_text(encoding="utf-8")
    assert "From prompts to a bench" in page
    assert "are simulated" in page


def test_evaluate_takes_the_release_with_its_headline(released, tmp_path):
    out, _ = released
    for part in ("bench", "hidden"):
        run = evaluate([out / "released" / part], tmp_path / part, Evaluation(num_resamples=20), model="longer")
        assert not run.summary.missing, "all counts and hashes are those of bench.toml"
        assert run.summary.headline is not None


def test_datasets_loads_the_release(released, tmp_path):
    out, done = released
    loaded = datasets.load_dataset(str(out / "released" / "datasets"), cache_dir=str(tmp_path / "cache"))
    assert set(loaded) == {"test"}
    written = list(read_cases(out / "released" / "bench" / "cases.jsonl"))
    assert [row["prompt"]["id"] for row in loaded["test"]] == [each.prompt.id for each in written]
    assert [row["ranking"] for row in loaded["test"]] == [[list(tier) for tier in each.ranking] for each in written]
    assert done["released"].summary.canary in loaded["test"][0]["meta"]


def test_raw_prompts_become_a_reward_model_and_its_tables(tmp_path):
    write_cases(tmp_path / "prompts.jsonl", prompts(12))
    for name, first in (("open", 0), ("human_instruction", 2)):
        bench = [
            case(f"{name}{number}", "ab", text=f"Why is {number + first} odd?", ranking=(("a",), ("b",)))
            for number in range(2)
        ]
        write_cases(tmp_path / f"{name}.jsonl", bench)
    base = str(tiny.save_base(tmp_path / "base"))
    benches = [str(tmp_path / f"{name}.jsonl") for name in ("open", "human_instruction")]
    with chatting(respond) as server:
        chat = {"kind": "openai_compatible", "base_url": server.url, "model": "m", "workers": 1, "num_tries": 1}
        settings = {
            "prepared": {"cases": str(tmp_path / "prompts.jsonl"), "against": benches},
            "sampled": {"plan": plan_file(tmp_path, server)},
            "halves": {"parts": {"human": 0.5, "llm": 0.5}, "strata": []},
            "annotation": annotation(),
            "judged": {"chat": chat},
            "human_model": {"model": base, "epochs": 1},
            "model": {"model": base, "epochs": 1},
            "cheemsbench": {"benches": benches},
        }
        completed = run(read_recipe(find_recipe("cheems"), settings), tmp_path / "out")
    done = {stage.name: stage.run for stage in completed}
    assert done["human"].counts.num_in == done["llm"].counts.num_in == 6
    assert done["supervised"].counts.num_in > 0

    page = (tmp_path / "out" / "report" / "report.html").read_text(encoding="utf-8")
    # The report of the whole shows supervision and debiasing, too.
    assert 'id="supervision"' in page
    assert 'id="debiasing"' in page
    assert done["cheemsbench"].summary.subsets


@pytest.mark.parametrize("kind", ["pairwise", "baseline", "prompt_review", "span_marking", "native_check"])
def test_every_kind_of_tasks_goes_through_a_recipe(tmp_path, kind):
    cases = cases_of_kind(kind, demo_cases(tmp_path / "made", seed=1, num_prompts=8), 4)
    write_cases(tmp_path / "cases.jsonl", cases)
    config = {"project": "p", "people": "simulated", "tasks": {"kind": kind}, "rules": RULES}
    asked = {"verb": "annotate", "cases": "cases.jsonl", "config": config}
    answers = {"verb": "annotated", "project": "asked/project.json"}
    recipe = build_recipe({"stages": {"asked": asked, "answers": answers}}, tmp_path / "recipe.toml")
    done = run(recipe, tmp_path / "out")
    counts = done[1].run.counts
    assert counts.num_in == 4
    exported = list(read_cases(tmp_path / "out" / "answers" / "cases.jsonl"))
    assert len(exported) == counts.num_used
    assert all(each.meta["simulated"] is True for each in exported)
    if kind == "prompt_review":
        assert all("prompt_review" in each.meta for each in exported)
    elif kind == "span_marking":
        assert all(each.ratings for each in exported)
    else:
        assert all(each.judgments for each in exported)
