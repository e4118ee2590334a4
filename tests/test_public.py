import re
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard
from steelyard.io.cases import write_cases
from strategies import case

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_public_name_is_there_and_sorted():
    assert sorted(steelyard.__all__) == steelyard.__all__
    for name in steelyard.__all__:
        assert getattr(steelyard, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        steelyard.nothing  # noqa: B018


def test_importing_is_quick_and_brings_nothing_heavy():
    code = "import sys, steelyard; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "torch", "msgspec", "typer"} & set(loaded)


def test_the_python_example_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path / "cases.jsonl", [case(judgments=["a>b", "b=c"]), case(id="q", judgments=["b>a"])])
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(example, {})
    assert re.search(r"Estimate\(value=[\d.]+, low=", capsys.readouterr().out)


def test_the_map_of_the_code_is_the_tree():
    package = Path(steelyard.__file__).parent
    folders = [path for path in package.iterdir() if path.is_dir() and not path.name.startswith("_")]
    # A folder without a file is what a checkout keeps of a package that was moved.
    packages = {path.name for path in folders if any(child.is_file() for child in path.iterdir())}
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^  (\w+)/ ", page, flags=re.MULTILINE))
    assert named == packages
