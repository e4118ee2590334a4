import json

import pytest
from typer.testing import CliRunner

from report_runs import all_runs
from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError


def test_help_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    all_runs(tmp_path, 7)
    words = ["report", "resolved", "model", "evaluated", "--out", "report.html"]
    result = CliRunner().invoke(build_app(), words)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("The page shows 3 runs and 7 items (")
    assert "\nwritten: report.html\n" in result.stdout
    assert (tmp_path / "report.html").is_file()
    again = CliRunner().invoke(build_app(), [*words, "--json", "--language", "zh", "--title", "我的模型"])
    assert json.loads(again.stdout)["summary"]["num_items"] == 7
    assert "<title>我的模型</title>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_unknown_language_lists_available_ones(tmp_path):
    all_runs(tmp_path, 3)
    words = ["report", str(tmp_path / "resolved"), "--out", str(tmp_path / "r.html"), "--language", "fr"]
    with pytest.raises(ConfigError, match="language"):
        CliRunner().invoke(build_app(), words, catch_exceptions=False)
    assert not (tmp_path / "r.html").exists()
