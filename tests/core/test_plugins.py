import importlib
import pkgutil
import subprocess
import sys

import pytest

from steelyard.core.errors import ConfigError, KindError
from steelyard.core.plugins import build, kinds, load, packages


def test_a_kind_is_a_file_of_the_package():
    assert "cheems" in kinds("formats")
    assert not [name for name in kinds("models") if name.startswith("_")]


def test_a_kind_may_be_an_entry_of_a_files_table_and_the_file_is_then_none():
    assert {"trl", "hh_rlhf", "helpsteer2"} <= set(kinds("formats"))
    assert not {"pairwise", "helpsteer"} & set(kinds("formats"))
    assert load("formats", "trl").about.startswith("TRL preference pairs")
    assert (build("formats", "openrlhf", {"chosen_key": "good"}).keys, build("formats", "hh_rlhf").keys) == (
        ("good", "rejected", "margin"),
        ("chosen", "rejected"),
    )


def test_kinds_are_found_without_importing_the_plugins():
    code = (
        "import sys; from steelyard.core.plugins import kinds; kinds('formats'); kinds('models'); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in loaded if name.startswith(("steelyard.plugins.formats.", "steelyard.plugins.models."))]
    assert not {"numpy", "torch"} & set(loaded)


@pytest.mark.parametrize("package", packages())
def test_every_kind_of_a_table_is_found_in_its_text(package):
    folder = importlib.import_module(f"steelyard.plugins.{package}")
    for _, name, _ in pkgutil.iter_modules(folder.__path__):
        if not name.startswith("_"):
            module = importlib.import_module(f"{folder.__name__}.{name}")
            assert set(vars(module).get("KINDS", {})) <= set(kinds(package))


def test_a_misspelt_kind_is_named_with_the_nearest():
    with pytest.raises(KindError, match=r"there is no 'cheem' in formats\n  allowed: did you mean 'cheems'\?"):
        load("formats", "cheem")


def test_a_misspelt_setting_of_a_plugin_is_named():
    with pytest.raises(ConfigError, match=r"formats\.cheems: unknown setting 'colour'"):
        build("formats", "cheems", {"colour": "red"})


def test_a_dotted_kind_loads_from_outside(tmp_path, monkeypatch):
    (tmp_path / "my_lab").mkdir()
    (tmp_path / "my_lab" / "twice.py").write_text(
        "from steelyard.core.config import Config as Base\n"
        "class Config(Base, frozen=True):\n    factor: int = 2\n"
        "def build(config):\n    return config.factor\n"
    )
    (tmp_path / "my_lab" / "empty.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert build("models", "my_lab.twice", {"factor": 3}) == 3
    with pytest.raises(KindError, match="is no plug-in: it lacks Config and build"):
        load("models", "my_lab.empty")
    with pytest.raises(KindError, match=r"cannot import 'my_lab\.absent'"):
        load("models", "my_lab.absent")
    for name in [name for name in sys.modules if name.startswith("my_lab")]:
        del sys.modules[name]


@pytest.mark.parametrize("source", ["1 +", "raise RuntimeError('no')", "import absent_package_of_mine"])
def test_a_dotted_kind_that_fails_to_import_says_so(source, tmp_path, monkeypatch):
    (tmp_path / "broken_lab").mkdir()
    (tmp_path / "broken_lab" / "part.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises((KindError, ModuleNotFoundError), match=r"broken_lab|absent_package"):
        load("models", "broken_lab.part")
    sys.modules.pop("broken_lab", None)
