"""The commands of docs/howto/correlate.md on PandaLM, with a judge that answers on a local server."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from chat_server import chatting
from steelyard.cli.main import build_app
from steelyard.io.run_folder import read_run

ROOT = Path(__file__).parents[2]
PANDALM = ROOT.parent / "shared" / "data" / "pandalm"
PAGE = ROOT / "docs" / "howto" / "correlate.md"
pytestmark = [
    pytest.mark.field,
    pytest.mark.slow,
    pytest.mark.skipif(not PANDALM.exists(), reason="the real data are not beside the project"),
]
SHOWN = re.compile(r"===== answer A \w+ =====\n(.*?)\n\n===== answer B \w+ =====\n(.*?)\n\n===== end", re.DOTALL)


def longer(question):
    """Prefer the longer answer, in either place."""
    first, second = SHOWN.findall(question["messages"][-1]["content"])[-1]
    return "[[A]]" if len(first) > len(second) else "[[B]]"


def expanded(block):
    """The calls of steelyard and python in a block of shell, as the shell's loops and variables make them."""
    script = "\n".join(
        f"{name}() {{ printf '%s\\0' {name} \"$@\"; printf '\\n'; }}" for name in ("steelyard", "python")
    )
    done = subprocess.run(["bash", "-ec", f"{script}\n{block}"], capture_output=True, text=True, check=True)
    return [line.split("\0")[:-1] for line in done.stdout.splitlines()]


def invoke(words, url):
    if words[0] == "python":
        subprocess.run([sys.executable, "-B", str(ROOT / words[1]), *words[2:]], check=True, timeout=120)
        return ""
    words = [url if word.startswith("http://") else word for word in words[1:]]
    result = CliRunner().invoke(build_app(), words)
    assert result.exit_code == 0, (shlex.join(words), result.output, result.exception)
    return result.stdout


def test_a_bench_relabelled_by_a_judge_is_compared_with_people_s_labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "PandaLM").symlink_to(PANDALM)
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", page.split("## Labels of people", 1)[1], flags=re.DOTALL)
    printed = []
    with chatting(longer) as server:
        for block in blocks:
            printed += [invoke(words, server.url) for words in expanded(block) if words]
    correlated = [each for each in printed if each.startswith("Over 12 models")]
    # What the page shows of the people's and GPT-3.5's labels.
    shown = re.findall(r"```\n(Over 12 models.*?)```", page, flags=re.DOTALL)
    assert correlated[0].startswith(shown[0])
    summary = read_run(tmp_path / "correlated").summary
    by_bench = {each["bench"]: each["spearman"] for each in summary["correlations"]}
    people = "{value:.2f} [{low:.2f}, {high:.2f}]".format(**by_bench["people"]).replace("-", "−")
    assert f"have {people}, and" in page
    (contrast,) = summary["contrasts"]
    ends = (-contrast["difference"][end] for end in ("value", "high", "low"))
    assert "difference is {:.2f} [{:.2f}, {:.2f}]".format(*ends).replace("-", "−") in page
    # The judge prefers the longer answer of every pair, and so does the model `longer`.
    relabelled = read_run(tmp_path / "evaluated" / "relabelled" / "longer").summary
    assert relabelled["accuracy"]["value"] > 0.99
    compared = read_run(tmp_path / "compared").summary
    assert set(compared["benches"]) == {"people", "gpt", "relabelled"}
    assert {each["num_models"] for each in compared["correlations"] if each["bench"] == "relabelled"} == {3}
