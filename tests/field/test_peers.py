"""The golden values of published tools, made again by their own code where `make peers` has put it."""

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOLDEN, INSTALLED = ROOT / "tests" / "golden" / "peers", ROOT / ".peers"
pytestmark = pytest.mark.field


def made_again(tmp_path, name, environment, *words):
    python = INSTALLED / environment / "bin" / "python"
    if not python.exists() or not all(Path(word).exists() for word in words):
        pytest.skip("not installed here: `make peers` does it, with a network")
    script = GOLDEN / f"make_{name}.py"
    done = subprocess.run([python, script, tmp_path, *words], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found, golden = (json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for folder in (tmp_path, GOLDEN))
    for content in (found, golden):
        content.pop(
            {"trl": "trl", "rewardbench": "rewardbench", "cheemsrm": "commit", "ppi_python": "ppi-python"}[name]
        )  # its version
    return found, golden


def test_rewardbench(tmp_path):
    found, golden = made_again(tmp_path, "rewardbench", "rewardbench")
    assert found == golden


def test_ppi_python(tmp_path):
    found, golden = made_again(tmp_path, "ppi_python", "ppi_python")
    for own, expected in zip(found["drawn"], golden["drawn"], strict=True):
        for key in ("human", "same", "others"):
            assert own.pop(key) == expected.pop(key), "the labels that it draws"
        assert own == pytest.approx(expected)


def test_cheemsrm(tmp_path):
    found, golden = made_again(tmp_path, "cheemsrm", "trl", INSTALLED / "CheemsRM")
    assert found.pop("measured") == pytest.approx(golden.pop("measured"), abs=1e-6)
    assert found == golden


def test_trl(tmp_path):
    found, golden = made_again(tmp_path, "trl", "trl")
    assert found["ids"] == golden["ids"], "the tokens that it reads"
    for own, expected in zip(found["rewards"], golden["rewards"], strict=True):
        assert own == pytest.approx(expected, abs=1e-4)


def test_inspect_ai_runs_the_example_of_the_page(tmp_path):
    python = INSTALLED / "inspect_ai" / "bin" / "python"
    if not python.exists():
        pytest.skip("not installed here: `make peers` does it, with a network")
    page = (ROOT / "docs" / "howto" / "other_libraries.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(from inspect_ai.*?)```", page, re.DOTALL)[1]
    samples = "from inspect_ai.dataset import Sample\nsamples = [Sample('Question?'), Sample('问题？')]\n"
    program = samples + example.replace('inspect_scorer("model")', 'inspect_scorer("longer")')
    environment = {"PYTHONPATH": str(ROOT / "src"), "INSPECT_DISPLAY": "none", "PATH": "/usr/bin:/bin"}
    # inspect_ai writes its logs below the current folder.
    done = subprocess.run(
        [python, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    # The reward of its fixed answer is the number of characters.
    assert float(done.stdout.split()[-1]) == len("Default output from mockllm/model")
