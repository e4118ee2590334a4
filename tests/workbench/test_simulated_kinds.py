"""Every kind of tasks is rehearsed from a case file to its bench, its paper and its release, by the command."""

import pytest
from typer.testing import CliRunner

from steelyard.annotation.task_kinds import kind_names
from steelyard.cli.main import build_app
from steelyard.io.cases import read_cases, write_cases
from steelyard.workbench.demo import demo_cases
from task_kind_cases import cases_for

KINDS = [name if name != "triple" else "ranking" for name in kind_names()]


def run(*words):
    result = CliRunner().invoke(build_app(), ["workbench", *map(str, words)])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_rehearsed_from_cases_to_its_release(kind, tmp_path):
    cases = demo_cases(tmp_path / "corpus", seed=2, num_prompts=6) if kind == "ranking" else cases_for(kind, 6)
    write_cases(tmp_path / "cases.jsonl", cases)
    out, place = tmp_path / "out", ("--database", f"sqlite:///{tmp_path / 'out' / 'workbench.db'}")
    run("simulate", tmp_path / "cases.jsonl", "--out", out, "--set", f"tasks.kind={kind}")
    assert len(list(read_cases(out / "bench.jsonl"))) >= 4
    words = ("export", "--project", "Simulated project", *place, "--what")
    run(*words, "paper", "--out", tmp_path / "paper")
    paragraph = (tmp_path / "paper" / "paper.en.md").read_text(encoding="utf-8")
    assert "simulated" in paragraph.lower()
    run(*words, "release", "--name", "1.0", "--freeze", "--out", tmp_path / "release")
    assert list(read_cases(tmp_path / "release" / "cases.jsonl"))
