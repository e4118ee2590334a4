import importlib.util
import shutil
import subprocess
from collections import namedtuple

from steelyard.stages.doctor import doctor


def by_name(folder):
    return {check.name: check for check in doctor(folder)}


def test_every_lack_says_what_to_do(tmp_path):
    checks = by_name(tmp_path / "not" / "yet")
    assert list(checks) == [
        "python",
        "steelyard",
        "group train",
        "group report",
        "accelerator",
        "fonts",
        "databases",
        "disk",
    ]
    assert checks["python"].is_fine
    assert checks["group train"].is_fine
    assert all(check.do for check in checks.values() if check.is_fine is False)


def test_a_missing_package_a_full_disk_and_missing_fonts_are_named(tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else found(name))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: namedtuple("usage", "free")(2**30))
    monkeypatch.setattr(shutil, "which", lambda _: "fc-list")
    empty = namedtuple("done", "stdout")(b"")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: empty)
    checks = by_name(tmp_path)
    assert "missing: torch" in checks["group train"].found
    assert checks["group train"].do == "pip install 'steelyard[train]'"
    assert checks["accelerator"].is_fine is None
    assert checks["fonts"].found == "none for Chinese, Japanese, Arabic, Hebrew, Hindi"
    assert (checks["disk"].is_fine, checks["disk"].found) == (False, "1 GiB free")
