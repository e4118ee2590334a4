"""Tests mirror the source: every file has its test file, and no test file stands for nothing."""

from house_source import PACKAGE, ROOT

TESTS = ROOT / "tests"
FREE = {"house", "contracts", "golden", "field", "data"}  # rooms of tests that stand for no single file


def test_every_source_file_has_its_test_file():
    missing = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name == "__init__.py":
            continue
        name = path.stem.lstrip("_")
        folder = TESTS / path.relative_to(PACKAGE).parent
        if not (folder / f"test_{name}.py").is_file() and not (folder / f"test_{path.stem}.py").is_file():
            missing.append(str(path.relative_to(PACKAGE)))
    assert missing == []


def test_every_test_file_stands_for_a_source_file():
    orphans = []
    for path in sorted(TESTS.rglob("test_*.py")):
        inner = path.relative_to(TESTS)
        if inner.parts[0] in FREE or len(inner.parts) == 1:
            continue
        name = path.stem.removeprefix("test_")
        room = PACKAGE / inner.parent
        if not any((room / f"{start}{name}{end}").exists() for start in ("", "_") for end in (".py", "")):
            orphans.append(str(inner))
    assert orphans == []
