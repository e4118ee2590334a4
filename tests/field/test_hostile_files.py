"""Every verb on every hostile file: exit code 0 or 2, no traceback, nothing half-written, no end of patience.

Each in a forked process of its own with a limit of memory and time, through the door of the command line; small files,
no network.
"""

import json
import shutil

import pytest

import tiny
from hostile_files import (
    GOOD,
    OTHER_LABELS,
    case_files,
    model_folders,
    plans,
    prices,
    recipes,
    recordings,
    run_folders,
    score_files,
    shares,
    tables,
)
from warm_process import called

pytestmark = [pytest.mark.field, pytest.mark.filterwarnings("ignore")]
SECONDS = 60
CASES, MODELS, RUNS, TABLES, RECIPES = case_files(), model_folders(), run_folders(), tables(), recipes()
SCORES, RECORDINGS = score_files(), recordings()
PLANS, PRICES, SHARES = plans(), prices(), shares()
ON_CASES = {
    "convert": "convert {} out.jsonl --from cases --to trl",
    "recognise": "convert {} out.jsonl --to trl",
    "resolve": "resolve {} --out out --workers 1",
    "split": "split {} --out out",
    "merge": "merge {} good.jsonl --out out",
    "debias": "debias {} --out out",
    "score": "score {} --model longer --out out",
    "evaluate": "evaluate --bench {} --model longer --baselines none --set num_resamples=10 --out out",
    "supervise": "supervise {} --model longer --min-margin 0.5 --out out",
    "judge": "judge {} --chat recorded --set chat.path=replies.jsonl --out out",
    "inspect": "inspect {}",
    "train": "train {} --model model --epochs 1 --out out",
    "prompts": "prompts {} --out out --workers 1",
    "statistics": "inspect {} --out out",
    "clean": "clean {} --out out --workers 1",
    "sample": "sample {} --plan plan.toml --out out",
    "judge card": "judge good.jsonl --chat recorded --set chat.path=replies.jsonl --calibrate {} --out out",
    "few labels": "evaluate --human {} --judged other.jsonl --model longer --baselines none --set num_resamples=10"
    " --out out",
    "a judge's labels": "evaluate --human other.jsonl --judged {} --model longer --baselines none"
    " --set num_resamples=10 --out out",
}
SERVED = "--base-url http://127.0.0.1:1/v1 --chat-model gpt"
ON_TOML = {
    "sample": (PLANS, "sample good.jsonl --plan {} --out out"),
    "sample forecast": (PLANS, "sample good.jsonl --plan {} --out out --dry-run"),
    "judge forecast": (PRICES, f"judge good.jsonl {SERVED} --prices {{}} --dry-run --out out"),
    "prompts": (SHARES, "prompts good.jsonl --shares {} --out out"),
    "prompts preview": (SHARES, "prompts good.jsonl --shares {} --out out --dry-run"),
}  # fmt: skip
ON_SCORES = {
    "evaluate": "evaluate --bench good.jsonl --scores {} --baselines none --set num_resamples=10 --out out",
    "debias": "debias good.jsonl --scores {} --set length_tolerance=0.05 --out out",
}
ON_RECORDINGS = {
    "judge": "judge good.jsonl --chat recorded --set chat.path={} --out out",
    "ratings": "judge good.jsonl --chat recorded --set chat.path={} --task ratings --out out",
}
ON_RUNS = {
    "report": "report {} --out out.html",
    "compare": "compare {} other --out out --set num_resamples=10",
    "leaderboard": "leaderboard {} other --out out --set num_resamples=10",
    "languages": "languages {} --out out --set num_resamples=10",
    "inspect": "inspect {} --id p1 --language en",
    "over it": "score good.jsonl --model longer --out {} --force",
}
ON_MODELS = {
    "score": "score good.jsonl --model {} --out out --no-self-test",
    "train": "train good.jsonl --model {} --epochs 1 --out out",
}
ON_RECIPES = {
    "run": "run {} --out out",
    "dry run": "run {} --dry-run --out out",
}


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """A good model, a good run and another one."""
    folder = tmp_path_factory.mktemp("originals")
    (folder / "good.jsonl").write_bytes(GOOD)
    tiny.save_base(folder / "base")
    evaluated = "--baselines none --set num_resamples=10 --out"
    for words in (
        "train good.jsonl --model base --epochs 1 --out model --set preflight=false",
        f"evaluate --bench good.jsonl --model longer {evaluated} run",
        f"evaluate --bench good.jsonl --model shorter {evaluated} other",
    ):
        ended = called(words, folder)
        assert ended.returncode == 0, (words, ended)
    return folder


@pytest.fixture
def place(originals, tmp_path):
    """A folder of its own with the good files."""
    shutil.copy(originals / "good.jsonl", tmp_path)
    (tmp_path / "other.jsonl").write_bytes(OTHER_LABELS)
    (tmp_path / "replies.jsonl").write_text('{"text": "[[A]]"}\n')
    (tmp_path / "plan.toml").write_bytes(PLANS["good"])
    for name in ("model", "other"):
        (tmp_path / name).symlink_to(originals / name)
    return tmp_path


def check(words, place, *, codes=(0, 2)):
    before = {path.name for path in place.iterdir()}
    code, *texts = called(words, place, seconds=SECONDS)
    text = "".join(texts)
    assert code in codes, (code, text)
    assert "Traceback" not in text
    assert "\x1b" not in text
    if code == 2:
        made = {path.name for path in place.iterdir()} - before
        assert not made, (made, text)


@pytest.mark.parametrize("variant", CASES)
@pytest.mark.parametrize("verb", ON_CASES)
def test_a_case_file(verb, variant, place):
    (place / "given.jsonl").write_bytes(CASES[variant])
    check(ON_CASES[verb].format("given.jsonl"), place, codes=(0,) if variant == "good" else (0, 2))


@pytest.mark.parametrize(("verb", "variant"), [(verb, name) for verb, (files, _) in ON_TOML.items() for name in files])
def test_a_plan_or_a_file_of_prices_or_shares(verb, variant, place):
    files, words = ON_TOML[verb]
    (place / "given.toml").write_bytes(files[variant])
    check(words.format("given.toml"), place, codes=(0,) if variant == "good" else (0, 2))


@pytest.mark.parametrize("variant", SCORES)
@pytest.mark.parametrize("verb", ON_SCORES)
def test_a_file_of_scores(verb, variant, place):
    (place / "given.jsonl").write_bytes(SCORES[variant])
    check(ON_SCORES[verb].format("given.jsonl"), place, codes=(0,) if variant == "good" else (0, 2))


@pytest.mark.parametrize("variant", RECORDINGS)
@pytest.mark.parametrize("verb", ON_RECORDINGS)
def test_a_file_of_replies(verb, variant, place):
    (place / "given.jsonl").write_bytes(RECORDINGS[variant])
    check(ON_RECORDINGS[verb].format("given.jsonl"), place)


@pytest.mark.parametrize("name", TABLES)
def test_a_table(name, place):
    (place / name).write_bytes(TABLES[name])
    check(f"convert {name} out.jsonl", place)


@pytest.mark.parametrize("variant", MODELS)
@pytest.mark.parametrize("verb", ON_MODELS)
def test_a_model_s_folder(verb, variant, place, originals):
    source = "model" if verb == "score" else "base"
    if "steelyard.json" in variant and source == "base":
        pytest.skip("a base model has none")
    shutil.copytree(originals / source, place / "given")
    MODELS[variant](place / "given")
    check(ON_MODELS[verb].format("given"), place)


@pytest.mark.parametrize("variant", RUNS)
@pytest.mark.parametrize("verb", ON_RUNS)
def test_a_run_s_folder(verb, variant, place, originals):
    shutil.copytree(originals / "run", place / "given")
    RUNS[variant](place / "given")
    (place / "x").write_text("of somebody else")
    check(ON_RUNS[verb].format("given"), place)
    assert (place / "x").read_text() == "of somebody else"


@pytest.mark.parametrize("variant", RECIPES)
@pytest.mark.parametrize("verb", ON_RECIPES)
def test_a_recipe(verb, variant, place):
    (place / "given.toml").write_bytes(RECIPES[variant])
    check(ON_RECIPES[verb].format("given.toml"), place)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "3", "[" * 100_000], ids=range(6))
@pytest.mark.parametrize("force", ["", " --force"], ids=["again", "force"])
def test_unfinished_work(content, force, place):
    (place / "out").mkdir()
    (place / "out" / "started.json").write_text(content)
    check(f"score good.jsonl --model longer --out out{force}", place)


@pytest.mark.parametrize("content", [b"", b"x" * 300, b"PK\x03\x04", bytes(range(256)) * 40], ids=range(4))
def test_a_checkpoint(content, place):
    ended = called("train good.jsonl --model model --epochs 1 --out out --set preflight=false", place)
    assert ended.returncode == 0, ended
    run = json.loads((place / "out" / "run.json").read_text())
    shutil.rmtree(place / "out")
    (place / "out").mkdir()
    started = {key: run[key] for key in ("stage", "config", "inputs")}
    (place / "out" / "started.json").write_text(json.dumps(started))
    (place / "out" / "checkpoint.pt").write_bytes(content)
    check("train good.jsonl --model model --epochs 1 --out out --set preflight=false", place)


def test_the_suite_is_as_large_as_it_says():
    number = (
        len(ON_SCORES) * len(SCORES)
        + len(ON_RECORDINGS) * len(RECORDINGS)
        + len(ON_CASES) * len(CASES)
        + len(ON_RUNS) * len(RUNS)
        + len(ON_MODELS) * len(MODELS)
        + sum(len(files) for files, _ in ON_TOML.values())
    )
    assert len(CASES) >= 126
    assert number + len(TABLES) + len(ON_RECIPES) * len(RECIPES) >= 1761
