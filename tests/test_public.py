import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import steelyard
import steelyard as sy
from parallel_cases import parallel_cases
from steelyard.io.cases import write_cases
from tiny import save_base

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


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_python_example_of_the_readme_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save_base(tmp_path / "base")
    write_cases(tmp_path / "ratings.jsonl", map(rated, parallel_cases()))
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    names = {}
    exec(example.replace("Qwen/Qwen2.5-0.5B", "base"), names)
    assert names["resolved"].cases[0].ranking == (("a",), ("b",))
    assert re.match(r"[01]\.\d{3} \[[\d.]+, [\d.]+\] \(n=\d+\) -?[01]\.\d{3} \[", capsys.readouterr().out)
    assert (tmp_path / "accuracy.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "<!-- a report of steelyard -->" in (tmp_path / "report.html").read_text(encoding="utf-8")


def rated(case):
    """Return the case with ratings in place of its judgments: answer a has 9, answer b has 4."""
    values = {"a": 9, "b": 4}
    ratings = tuple(
        sy.Rating(response=name, rater="ann", kind="human", dimension="quality", value=value)
        for name, value in values.items()
    )
    return msgspec.structs.replace(case, judgments=(), ranking=None, ratings=ratings)


def test_the_map_of_the_code_is_the_tree():
    package = Path(steelyard.__file__).parent
    folders = [path for path in package.iterdir() if path.is_dir() and not path.name.startswith("_")]
    # A folder without a file is what a checkout keeps of a package that was moved.
    packages = {path.name for path in folders if any(child.is_file() for child in path.iterdir())}
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^  (\w+)/ ", page, flags=re.MULTILINE))
    assert named == packages
