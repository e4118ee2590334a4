import json

from typer.testing import CliRunner

from steelyard.cli.main import build_app


def test_the_checks_are_shown_and_decide_the_exit_code():
    result = CliRunner().invoke(build_app(), ["doctor", "--json"])
    checks = json.loads(result.stdout)
    assert result.exit_code == (2 if any(check["is_fine"] is False for check in checks) else 0)
    text = CliRunner().invoke(build_app(), ["doctor"]).stdout
    assert all(check["name"] in text for check in checks)
