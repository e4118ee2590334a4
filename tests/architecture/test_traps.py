"""The page of silent traps tells the truth: all 53 stand there, and the tests it names exist."""

import re

import pytest

from package_source import ROOT

PAGE = (ROOT / "docs" / "traps.md").read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)]
NAMED = re.findall(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)", PAGE)


def test_every_trap_stands_there_once():
    assert [int(row[0].strip("| ")) for row in ROWS] == list(range(1, 54))


def test_a_trap_without_a_test_is_of_a_package_that_is_not_built_yet():
    without = [row for row in ROWS if "test_" not in row[3]]
    assert all("not built yet" in row[2] for row in without)
    assert len(NAMED) > len(ROWS)


@pytest.mark.parametrize(("name", "file"), NAMED)
def test_the_test_that_a_trap_names_exists(name, file):
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
