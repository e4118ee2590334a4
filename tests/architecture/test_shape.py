"""Small files and clean text: lengths of files and functions, forbidden names, and no paths of a machine."""

import ast
import re
import subprocess

from package_source import ROOT, functions, sources

FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "base"}
MACHINE = re.compile(r"(?<![\w./])/(work|root|farm|home/\w+)/")
package = [source for source in sources() if source.parts]


def length(node) -> int:
    """Lines of the body, without the docstring: the options of a verb are its signature, not its logic."""
    first = node.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    start = first.end_lineno + 1 if is_docstring else first.lineno
    return node.end_lineno - start + 1


def test_files_and_functions_are_short():
    wrong = [f"{source.path} has {len(source.lines)} lines" for source in package if len(source.lines) > 500]
    wrong += [
        f"{source.path}:{node.lineno}: {node.name} has {length(node)} lines"
        for source in package
        for node in functions(source)
        if length(node) > 60
    ]
    assert wrong == []


def test_every_file_has_a_docstring_and_a_name_that_says_something():
    assert [str(source.path) for source in package if not ast.get_docstring(source.tree)] == []
    assert [str(source.path) for source in package if set(source.parts) & FORBIDDEN_NAMES] == []


def test_nothing_is_left_to_do_and_no_error_is_swallowed():
    unfinished = re.compile(r"\b(TODO|FIXME|XXX)\b|raise NotImplementedError")
    wrong = [str(source.path) for source in package if unfinished.search("\n".join(source.lines))]
    wrong += [f"{source.path}:{node.lineno}" for source in package for node in source.nodes if swallows(source, node)]
    assert wrong == []


def swallows(source, node) -> bool:
    """A handler of every exception that raises none; the command line alone may have one."""
    if not isinstance(node, ast.ExceptHandler) or source.module == "steelyard.cli.main":
        return False
    catches_all = node.type is None or getattr(node.type, "id", None) in ("Exception", "BaseException")
    return catches_all and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node))


def test_no_file_names_a_path_of_a_machine():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    found = []
    for name in filter(None, listed):
        path = ROOT / name
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{name}: {match.group()}" for match in MACHINE.finditer(text)]
    assert found == []


def test_the_reading_path_at_the_top_of_the_tour_is_short():
    introduction = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8").split("\n## ")[0]
    path = [ROOT / "docs" / link for link in re.findall(r"\((\.\./src/steelyard/[\w/]+\.py)\)", introduction)]
    assert [file.stem for file in path[:3]] == ["types", "resolve", "tiers"]
    assert len(path) <= 8
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in path) <= 2500
