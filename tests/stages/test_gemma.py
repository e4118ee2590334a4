import subprocess
import sys

import pytest

from steelyard.core.errors import MissingPartError
from steelyard.stages import gemma
from steelyard.stages.gemma import TERMS, check_installed

ABSENT = "a package that nobody has"


def test_missing_extra_names_its_terms_and_the_line_that_installs_it(monkeypatch, tmp_path):
    monkeypatch.setattr(gemma, "_PACKAGES", (ABSENT,))
    with pytest.raises(MissingPartError) as found:
        gemma.gemma(tmp_path / "out")
    assert TERMS in found.value.problem
    assert found.value.do == "pip install 'steelyard[backbones]'"
    assert not (tmp_path / "out").exists()


def test_installed_packages_pass(monkeypatch):
    monkeypatch.setattr(gemma, "_PACKAGES", ("json",))
    check_installed()


@pytest.mark.field
def test_pip_accepts_the_remedy():
    # Without installing anything: the extra exists, and its packages are found.
    words = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "steelyard[backbones]"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "does not provide the extra" not in done.stderr
