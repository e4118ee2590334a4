"""The how-tos' own commands on the real data, as far as they need no pretrained weights: the baselines' figures."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from steelyard.doors.cli import build_app
from steelyard.files.results import read_run

ROOT = Path(__file__).parents[2]
HALLUQA = ROOT.parent / "shared" / "data" / "halluqa" / "HalluQA.json"
OASST = ROOT.parent / "shared" / "data" / "oasst1_zh_rm" / "oaast_rm_zh.json"
pytestmark = [
    pytest.mark.field,
    pytest.mark.skipif(not HALLUQA.exists(), reason="the real data are not beside the project"),
]


def commands(name):
    """The shell lines of a how-to that call steelyard."""
    text = (ROOT / "docs" / "howto" / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("steelyard")]


def invoke(words):
    result = CliRunner().invoke(build_app(), words)
    assert result.exit_code == 0, (words, result.output, result.exception)


def without_model(words, name):
    """The evaluation of the how-to with a baseline in the place of the trained model."""
    return [name if before == "--model" else word for before, word in zip([None, *words], words, strict=False)]


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_halluqa_s_commands_and_its_n_gram_figure(there):
    spec = importlib.util.spec_from_file_location("halluqa", ROOT / "docs" / "howto" / "halluqa.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(str(HALLUQA), "halluqa.jsonl")
    for words in commands("halluqa.md"):
        if words[0] in ("train", "report"):
            continue
        invoke(without_model(words, "longer"))
    summary = read_run(there / "evaluated").summary
    # Cross-fitted over all questions elsewhere: n-grams 85.9 [83.4, 88.1], longer 65.6 [62.0, 69.1].
    assert 0.80 < summary["baselines"]["ngram"]["accuracy_micro"]["value"] < 0.92
    assert 0.55 < summary["accuracy_micro"]["value"] < 0.75


def test_oasst_s_commands_and_that_longer_wins(there):
    (there / "oaast_rm_zh.json").write_bytes(OASST.read_bytes())
    for words in commands("oasst.md"):
        if words[0] in ("train", "report"):
            continue
        invoke(without_model(words, "longer"))
    summary = read_run(there / "evaluated").summary
    # Over all folds elsewhere: longer 75.9 [73.3, 78.3].
    assert 0.68 < summary["accuracy_micro"]["value"] < 0.84
