import json

from typer.testing import CliRunner

from steelyard.cli.main import build_app
from supervision_files import noisy, write


def test_prints_tables_or_json(tmp_path):
    write(tmp_path / "cases.jsonl", noisy(50))
    words = ["filter-study", str(tmp_path / "cases.jsonl"), "--judge", "gpt", "--out", str(tmp_path / "out")]
    shown = CliRunner().invoke(build_app(), [*words, "--verbose"])
    assert shown.exit_code == 0, shown.output
    for said in (
        "agrees",
        "written: ",
        "filter_study.svg",
        "50 in, 50 used",
    ):
        assert said in shown.stdout
    again = CliRunner().invoke(build_app(), [*words, "--json"])
    assert json.loads(again.stdout)["summary"]["judge"] == "gpt"
