"""A folder that another run holds, that is another command's, or that cannot be made: refused, and unchanged."""

import pytest
from typer.testing import CliRunner

from hostile_files import OTHER_LABELS, case_files, plans
from steelyard.cli.main import build_app
from steelyard.core.errors import UserError
from steelyard.io.atomic import only_writer

VERBS = {
    "prompts": "prompts good.jsonl --workers 1 --out {}",
    "inspect": "inspect good.jsonl --out {}",
    "clean": "clean good.jsonl --workers 1 --out {}",
    "sample": "sample good.jsonl --plan plan.toml --out {}",
    "judge": "judge good.jsonl --chat recorded --set chat.path=replies.jsonl --out {}",
    "few labels": "evaluate --human good.jsonl --judged other.jsonl --model longer --baselines none"
    " --set num_resamples=10 --out {}",
}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    (tmp_path / "good.jsonl").write_bytes(case_files()["good"])
    (tmp_path / "other.jsonl").write_bytes(OTHER_LABELS)
    (tmp_path / "plan.toml").write_bytes(plans()["good"])
    (tmp_path / "replies.jsonl").write_text('{"text": "[[A]]"}\n')
    monkeypatch.chdir(tmp_path)


def refusal(verb, out):
    """The error of the verb: both kinds end the command with a message and exit code 2."""
    error = CliRunner().invoke(build_app(), VERBS[verb].format(out).split()).exception
    assert isinstance(error, UserError | OSError), error
    return error


@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_that_another_run_holds(verb, tmp_path):
    with only_writer(tmp_path / "out"):
        error = refusal(verb, "out")
        assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]
    assert "process" in str(error)
    done = CliRunner().invoke(build_app(), VERBS[verb].format("out").split())
    assert done.exception is None, "free again after the other run"


@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_with_another_command_s_run_is_unchanged(verb, tmp_path):
    assert CliRunner().invoke(build_app(), ["resolve", "good.jsonl", "--out", "out"]).exception is None
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    error = refusal(verb, "out")
    assert isinstance(error, UserError)
    assert "--force" in str(error.do)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_below_a_file(verb, tmp_path):
    before = {path.name for path in tmp_path.iterdir()}
    refusal(verb, "good.jsonl/out")
    assert {path.name for path in tmp_path.iterdir()} == before
    assert (tmp_path / "good.jsonl").read_bytes() == case_files()["good"]
