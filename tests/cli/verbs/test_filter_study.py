import json

from typer.testing import CliRunner

from steelyard.cli.main import build_app
from supervision_files import noisy, write

RECIPE = """
[stages.studied]
verb = "filter-study"
cases = "cases.jsonl"
config = { judge = "gpt" }

[stages.report]
verb = "report"
runs = ["studied"]
"""


def test_a_recipe_studies_a_filter_and_shows_it(tmp_path):
    write(tmp_path / "cases.jsonl", noisy(50))
    (tmp_path / "study.toml").write_text(RECIPE)
    words = ["run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out")]
    shown = CliRunner().invoke(build_app(), words)
    assert shown.exit_code == 0, shown.output
    assert (tmp_path / "out" / "studied" / "filter_study.svg").is_file()
    assert "agrees" in (tmp_path / "out" / "report" / "report.html").read_text(encoding="utf-8")
    record = json.loads((tmp_path / "out" / "studied" / "run.json").read_text(encoding="utf-8"))
    assert (record["counts"]["num_in"], record["summary"]["judge"]) == (50, "gpt")
