"""The page of the API and the types of its keywords are those of the source, and a type checker reads them."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard as sy
from steelyard.cli.main import verbs_by_name
from steelyard.cli.stage_verb import StageVerb
from steelyard.core.settings_help import read_settings

ROOT = Path(__file__).parents[2]
NOT_OF_DATA = {"list", "doctor", "workbench"}
"""Verbs about the installation and of servers, which are for the command line."""
CHECKED = """\
from typing import reveal_type
import steelyard as sy
sy.resolve("cases.jsonl", agregate="majority")
sy.train("cases.jsonl", model="m", learning_rate="high")
sy.split("cases.jsonl")["train"].to_pairs()
accuracy: float = float(sy.evaluate("longer", "cases.jsonl", num_resamples=10).accuracy)
reveal_type(sy.resolve("cases.jsonl").summary.conflicts.overall.ratio)
reveal_type(sy.score("longer", prompt="?", responses=["a"]))
sy.compare([]).summary.models[0].nothing
reveal_type(sy.judge("cases.jsonl", dry_run=True))
reveal_type(sy.sample("cases.jsonl", plan="cheems", dry_run=True))
reveal_type(sy.sample("cases.jsonl", plan="cheems").summary)
"""


def generated(*options):
    command = [sys.executable, ROOT / "docs" / "api_page.py", *options]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode()


def test_the_page_is_that_of_the_source():
    assert (ROOT / "docs" / "api.md").read_text(encoding="utf-8") == generated(), "run `make api`"


def test_the_types_of_keywords_are_those_of_the_settings():
    code = "import json, api_page; print(json.dumps({str(path): text for path, text in api_page.stubs().items()}))"
    stubs = json.loads(
        subprocess.run([sys.executable, "-c", code], cwd=ROOT / "docs", capture_output=True, check=True).stdout
    )
    assert stubs == {path: Path(path).read_text(encoding="utf-8") for path in stubs}, "run `make api`"
    assert {Path(path).stem for path in stubs} >= {"__init__", "verbs", "judgments", "models"}


def test_every_verb_of_data_is_a_function_with_its_settings_and_defaults():
    verbs = verbs_by_name()
    names = {name.replace("-", "_") for name in verbs} - NOT_OF_DATA
    assert names <= set(sy.__all__)
    for name, verb in verbs.items():
        if not isinstance(verb, StageVerb) or name.replace("-", "_") not in names:
            continue
        parameters = inspect.signature(getattr(sy, name.replace("-", "_"))).parameters
        for setting in read_settings(*verb.config):
            keyword = {"model": "model_settings", "bench": "bench_settings"}.get(setting.name, setting.name)
            assert parameters[keyword].default == setting.default, f"{name}: {setting.name}"


@pytest.mark.slow
def test_a_type_checker_knows_every_keyword_and_result(tmp_path):
    (tmp_path / "example.py").write_text(CHECKED)
    (tmp_path / "pyrefly.toml").write_text(
        f'search-path = [{json.dumps(str(ROOT / "src"))}]\npython-version = "3.11"\n'
    )
    checker = Path(sys.executable).with_name("pyrefly")
    command = [checker, "check", "--output-format", "json", "--python-interpreter-path", sys.executable]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    messages = {each["line"]: each["description"] for each in json.loads(done.stdout)["errors"]}
    assert messages.keys() == {3, 4, 7, 8, 9, 10, 11, 12}
    assert messages[3].startswith("Unexpected keyword argument `agregate`")
    assert "is not assignable to parameter `learning_rate` with type `float | None`" in messages[4]
    assert messages[7] == "revealed type: float | None"
    assert messages[8] == "revealed type: list[float]"
    assert messages[9] == "Object of class `ComparedModel` has no attribute `nothing`"
    assert messages[10] == "revealed type: JudgeForecast"
    assert messages[11] == "revealed type: SamplingForecast"
    assert messages[12] == "revealed type: SamplingSummary"
