"""Every script of docs/howto, speed and studies prints its help: a reader tries that first."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("docs/howto", "speed", "studies")
    for path in (ROOT / folder).glob("*.py")
    if "__main__" in path.read_text(encoding="utf-8")
)


def test_the_scripts_were_found():
    assert len(SCRIPTS) > 20


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_prints_its_help_and_does_nothing(script, monkeypatch, capsys, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / script).rpartition("/")[0])
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    assert stopped.value.code == 0
    assert "usage" in capsys.readouterr().out.lower()
    assert not list(tmp_path.iterdir())
