import json

from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.plugins import kinds, packages


def test_every_plugin_is_listed_with_what_it_is():
    listed = json.loads(CliRunner().invoke(build_app(), ["list", "--json"]).output)
    assert set(listed) == set(packages())
    for package in packages():
        assert set(listed[package]) == set(kinds(package))
        assert all(listed[package].values())


def test_one_package_as_text():
    output = CliRunner().invoke(build_app(), ["list", "formats"]).output
    assert output.startswith("formats\n")
    assert "models" not in output.split("\n")[0]


def test_models_are_listed_with_those_that_the_papers_name():
    output = CliRunner().invoke(build_app(), ["list", "models"]).output
    assert "named in the papers' tables" in output
    (row,) = (line for line in output.splitlines() if "RLHFlow/ArmoRM-Llama3-8B-v0.1" in line)
    assert row.split() == ["ArmoRM-Llama3-8B-v0.1", "classifier", "armorm", "tested", "RLHFlow/ArmoRM-Llama3-8B-v0.1"]
    listed = json.loads(CliRunner().invoke(build_app(), ["list", "models", "--json"]).output)
    assert set(listed) == {"models", "published"}
    (urm,) = (row for row in listed["published"] if row["name"] == "URM-LLaMa-3-8B")
    assert (urm["adapter"], urm["state"], urm["papers"]) == ("urm", "unverified", ["cheems"])
    assert urm["quirks"]
