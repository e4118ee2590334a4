import json

from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.plugins import kinds, packages


def test_lists_every_plugin_with_its_description():
    listed = json.loads(CliRunner().invoke(build_app(), ["list", "--json"]).output)
    assert set(listed) == set(packages())
    for package in packages():
        assert set(listed[package]) == set(kinds(package))
        assert all(listed[package].values())


def test_lists_one_package_as_text():
    output = CliRunner().invoke(build_app(), ["list", "formats"]).output
    assert output.startswith("formats\n")
    assert "models" not in output.split("\n")[0]


def test_lists_models_named_in_papers():
    output = CliRunner().invoke(build_app(), ["list", "models"]).output
    assert "named in the papers' tables" in output
    (row,) = (line for line in output.splitlines() if "RLHFlow/ArmoRM-Llama3-8B-v0.1" in line)
    assert row.split() == ["ArmoRM-Llama3-8B-v0.1", "classifier", "armorm", "tested", "RLHFlow/ArmoRM-Llama3-8B-v0.1"]
    listed = json.loads(CliRunner().invoke(build_app(), ["list", "models", "--json"]).output)
    assert set(listed) == {"models", "published"}
    (urm,) = (row for row in listed["published"] if row["name"] == "URM-LLaMa-3-8B")
    assert (urm["adapter"], urm["state"], urm["papers"]) == ("urm", "unverified", ["cheems"])
    assert urm["quirks"]


def test_list_help_names_every_package():
    output = CliRunner().invoke(build_app(), ["list", "--help"], env={"COLUMNS": "200"}).output
    assert all(package in output for package in packages())


def test_failed_checks_set_the_exit_code():
    result = CliRunner().invoke(build_app(), ["doctor", "--json"])
    checks = json.loads(result.stdout)
    assert result.exit_code == (2 if any(check["is_fine"] is False for check in checks) else 0)
    text = CliRunner().invoke(build_app(), ["doctor", "--verbose"]).stdout
    brief = CliRunner().invoke(build_app(), ["doctor"]).stdout.splitlines()
    missing = [check for check in checks if check["is_fine"] is False]
    assert brief[0] == (
        f"{len(missing)} of {len(checks)} checks found something missing."
        if missing
        else f"{len(checks)} checks: all is well."
    )
    assert len(brief) == (1 + 2 * len(missing) if missing else 2)
    assert all(check["name"] in text for check in checks)
