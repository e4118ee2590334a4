import json

import pytest
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError
from steelyard.io.cases import write_cases
from strategies import case


@pytest.fixture
def scored(tmp_path):
    write_cases(tmp_path / "cases.jsonl", [case("p", "ab"), case("q", "abc")])

    def run(*arguments):
        given = ["score", str(tmp_path / "cases.jsonl"), "--out", str(tmp_path / "out"), *arguments]
        return CliRunner().invoke(build_app(), given, catch_exceptions=False)

    return run


def test_reports_number_of_scored_responses(scored):
    found = scored("--model", "longer")
    assert found.exit_code == 0
    assert "longer scored all 5 responses of 2 cases" in found.stdout
    assert "2 in, 2 used" in found.stdout


def test_json_option_prints_the_run(scored):
    found = json.loads(scored("--model", "random", "--set", "model.seed=4", "--json").stdout)
    assert found["stage"] == "score"
    assert found["config"] == {"kind": "random", "model": {"seed": 4}, "self_test": True}
    assert found["summary"]["num_responses"] == 5


def test_no_self_test_is_recorded(scored):
    assert json.loads(scored("--model", "longer", "--no-self-test", "--json").stdout)["summary"]["self_test"] == {
        "state": "off"
    }


def test_misspelt_setting_is_refused(scored):
    with pytest.raises(ConfigError, match="unknown setting 'models'"):
        scored("--model", "random", "--set", "models.seed=4")
