"""Every verb stopped twenty times at random moments: the same command goes on, and its results equal a whole run's.

Each run is forked from a process in which everything is imported, so that the moments fall into the work and not into
the imports. Stops come in chains of four, after which the command is let through. Equal means: every file byte for byte
but for times.
"""

import json
import random
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

import tiny
from chat_server import chatting
from hostile_files import GOOD
from steelyard.io.cases import write_cases
from toy_prompts import toy_prompts
from warm_process import called, command

pytestmark = [pytest.mark.field, pytest.mark.filterwarnings("ignore")]
CHAINS, STOPS = 5, 4
SEED = 8
SECONDS = 900
OF_THE_CLOCK = ("tensorboard", "progress.jsonl", "overview.json")
"""Files that tell when and how fast, not what."""
SECONDS_AND_HASHES = re.compile(r">seconds</span>.*?</tr>|[0-9a-f]{12,64}", flags=re.DOTALL)
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
VERBS = {
    "simulate": "demo --data --out {}",
    "convert": "convert sim/gold.jsonl {}.jsonl --to trl --force",
    "resolve": "resolve sim/cases.jsonl --out {}",
    "resolve in processes": "resolve sim/cases.jsonl --out {} --workers 2",
    "statistics": "inspect sim/cases.jsonl --out {}",
    "prompts": "prompts sim/cases.jsonl --against sim/test.jsonl --out {}",
    "prompts in processes": "prompts sim/cases.jsonl --out {} --workers 2",
    "prompts classified": "prompts parallel.jsonl --out {} --classify base_url=URL --classify model=served",
    "sample": "sample parallel.jsonl --plan plan.toml --seed 3 --out {}",
    "clean": "clean sim/cases.jsonl --out {}",
    "split": "split sim/gold.jsonl --out {}",
    "merge": "merge sim/cases.jsonl sim/llm.jsonl --out {}",
    "debias": "debias sim/gold.jsonl --out {}",
    "score": "score small.jsonl --model rm --out {}",
    "supervise": "supervise few/cases.jsonl --model rm --min-margin 0.0 --allow-other-languages --out {}",
    "evaluate": "evaluate --bench new.jsonl --model rm --out {} --set num_resamples=200",
    "judge": "judge parallel.jsonl --chat openai_compatible --out {} --set chat.base_url=URL --set chat.model=served",
    "judged bench": "evaluate --bench parallel.jsonl --model llm_judge --out {} --set model.chat.kind=openai_compatible"
    " --set model.chat.base_url=URL --set model.chat.model=served --set num_resamples=50",
    "languages": "languages spoken --out {}",
    "compare": "compare one two --out {}",
    "leaderboard": "leaderboard one two --out {}",
    "report": "report one two --out {}",
    "train": "train small.jsonl --model base --epochs 3 --out {} --set checkpoint_every=2",
    "run": "run small.toml --out {}",
    "ablate": "run ablation.toml --out {}",
    "sweep": "run sweep.toml --out {}",
    "demo": "demo --out {} --set simulated.num_prompts=60 --set model.epochs=1",
}
RECIPE = """
[stages.made]
verb = "simulate"
[stages.ranked]
verb = "resolve"
cases = "made/cases.jsonl"
[stages.evaluated]
verb = "evaluate"
benches = ["made/test.jsonl"]
model = "shorter"
config.num_resamples = 50
config.baselines = ["longer"]
"""
PLAN = """
[[models]]
num_responses = 2
[models.chat]
base_url = "URL"
model = "served"
workers = 2
"""
STUDY = """
benches = ["test.jsonl"]
seeds = [0, 1, 2]
num_threads = 1
train = {epochs = 1, learning_rate = 3e-3, batch_size = 4, checkpoint_every = 2}
"""
ABLATION = 'experiment = "ablation"\nmodel = "base"\ntraining = {right = "right.jsonl", wrong = "wrong.jsonl"}\n'
ABLATION += STUDY
SWEEP = 'experiment = "sweep"\ntraining = "right.jsonl"\nshares = [0.5, 1.0]\n' + STUDY
SWEEP += '[[models]]\nname = "a"\nmodel = "base"\n'


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with all that the verbs read."""
    folder = tmp_path_factory.mktemp("kills")
    tiny.save_base(folder / "base")
    for name, content in (("small", RECIPE), ("ablation", ABLATION), ("sweep", SWEEP)):
        (folder / f"{name}.toml").write_text(content)
    (folder / "parallel.jsonl").write_bytes(GOOD)
    write_cases(folder / "right.jsonl", toy_prompts(16, right=True))
    write_cases(folder / "wrong.jsonl", toy_prompts(16, right=False))
    write_cases(folder / "test.jsonl", toy_prompts(20, right=True, start=100))
    let_through("demo --data --out sim", folder)
    gold = (folder / "sim" / "gold.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "small.jsonl").write_bytes(b"".join(gold[:16]))
    new = (folder / "sim" / "test.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "new.jsonl").write_bytes(b"".join(new[:24]))
    llm = (folder / "sim" / "llm.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "few.jsonl").write_bytes(b"".join(llm[:24]))
    let_through("resolve few.jsonl --out few", folder)
    let_through("train small.jsonl --model base --epochs 1 --max-length 2048 --out rm --set preflight=false", folder)
    for name, model in (("one", "longer"), ("two", "shorter")):
        let_through(f"evaluate --bench sim/test.jsonl --model {model} --out {name} --set num_resamples=50", folder)
    let_through("evaluate --bench parallel.jsonl --model longer --baselines none --out spoken", folder)
    return folder


@pytest.fixture
def judge():
    """A judge that takes a moment for each reply."""

    def answer(question):
        time.sleep(0.01)
        return "[[A]]"

    with chatting(answer) as server:
        yield server


def let_through(words, folder):
    ended = called(words, folder, seconds=SECONDS)
    assert ended.returncode == 0, (words, ended)


def results(out: Path):
    """Every file that a run left, without what the clock says."""
    if not out.exists():
        return {"": out.with_suffix(".jsonl").read_bytes()}
    paths = [path for path in sorted(out.rglob("*")) if path.is_file() and not set(path.parts) & set(OF_THE_CLOCK)]
    return {path.relative_to(out).as_posix(): content(path) for path in paths}


def content(path):
    """Everything but times, names of the folder, and hashes of folders and files that hold times."""
    if path.suffix == ".html":
        return SECONDS_AND_HASHES.sub("", path.read_text("utf-8")).replace("whole", "killed")
    if path.name == "replies.sqlite":
        return "a ledger: its replies stand in the cases"
    if path.name == "run.json":
        return without_times(json.loads(path.read_bytes().replace(b"whole/", b"killed/")))
    return path.read_bytes()


def without_times(record):
    """The record without seconds; only case files have a hash that does not depend on the clock."""
    record.pop("seconds")
    record["inputs"] = {
        role: item["sha256"] for role, item in record["inputs"].items() if item["path"].endswith(".jsonl")
    }
    # A file of the clock's has a hash of the clock's.
    hashed = (*OF_THE_CLOCK, "replies.sqlite", "report.html")
    record["outputs"] = {name: None if name in hashed else value for name, value in record["outputs"].items()}
    record["summary"] = {
        key: value for key, value in record["summary"].items() if "second" not in key and key != "num_bytes"
    }
    return record


def stop(words, folder, draw, seconds):
    """Start the command and stop it at a random moment. Returns whether it had not ended before."""
    number = draw.choice(SIGNALS)
    process = command(words, folder)
    is_struck = not process.ends_within(draw.uniform(0, seconds))
    if is_struck:
        process.kill(number)
    ended = process.wait(SECONDS)
    assert ended.returncode in (0, -number, 128 + number), (number, ended)
    assert "Traceback" not in ended.stderr
    return is_struck


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_was_stopped_goes_on_to_the_same_results(verb, place, judge):
    words = VERBS[verb].replace("URL", judge.url)
    (place / "plan.toml").write_text(PLAN.replace("URL", judge.url))
    for name in ("whole", "killed"):  # what an earlier failure left
        shutil.rmtree(place / name, ignore_errors=True)
    started = time.monotonic()
    let_through(words.format("whole"), place)
    seconds = time.monotonic() - started
    expected, num_asked = results(place / "whole"), len(judge.questions)
    draw = random.Random(f"{SEED}{verb}")
    num_struck = 0
    for chain in range(CHAINS):
        num_struck += sum(stop(words.format("killed"), place, draw, seconds) for _ in range(STOPS))
        let_through(words.format("killed"), place)
        left = results(place / "killed")
        assert left.keys() == expected.keys(), chain
        assert not [name for name in expected if left[name] != expected[name]], chain
        assert not list(place.glob(".killed*"))
        shutil.rmtree(place / "killed", ignore_errors=True)
        (place / "killed.jsonl").unlink(missing_ok=True)
    sys.stdout.write(f"{verb}: {num_struck} of {CHAINS * STOPS} stops before the end of {seconds:.1f} s\n")
    # What is asked again was under way: at most what the judge's threads held at each stop.
    assert len(judge.questions) <= (CHAINS + 1) * num_asked + CHAINS * STOPS * 8
    shutil.rmtree(place / "whole", ignore_errors=True)
    (place / "whole.jsonl").unlink(missing_ok=True)
