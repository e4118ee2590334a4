import io
import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.cli.output import (
    MIN_WIDTH,
    TerminalTable,
    columns,
    counts_line,
    echo_lines,
    echo_record,
    next_line,
    page_width,
    print_lines,
    print_table,
)
from steelyard.core.types import Counts, Run
from steelyard.io.terminal_text import EMPTY, Span

RUN = Run(
    stage="s",
    config={},
    counts=Counts(num_in=1200, num_used=1199, dropped={"rule": 1}, noted={"given": 2, "nothing": 0}),
)


def test_counts_line_omits_sizes():
    counts = Counts(num_in=2, num_used=2, noted={"pairs": 7, "cut responses": 1})
    assert counts_line(Run(stage="s", config={}, counts=counts)) == "2 in, 2 used; noted: cut responses 1"


def test_the_text_of_a_label_is_folded_in_its_own_column(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    written = Terminal()
    monkeypatch.setattr(sys, "stdout", written)
    print_lines(["people     eighty prompts; twenty of them", "           more of the same kind"])
    assert written.getvalue().splitlines() == [
        "people     eighty prompts;",
        "           twenty of them",
        "           more of the same",
        "           kind",
    ]


def test_a_command_is_not_folded_since_it_is_pasted(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    written = Terminal()
    monkeypatch.setattr(sys, "stdout", written)
    line = next_line("report", Path("my runs/a"), "--out", "report.html", effect="shows the conflicts of the judges")
    print_lines([line])
    assert written.getvalue() == f"{line}\n"
    assert shlex.split(line.partition(": ")[2], comments=True) == [
        "steelyard", "report", "my runs/a", "--out", "report.html",
    ]  # fmt: skip


def test_counts_line_omits_zero_counts():
    assert counts_line(RUN) == "1,200 in, 1,199 used; dropped: rule 1; noted: given 2"


def test_lines_are_folded_between_words_on_a_terminal_alone(monkeypatch, capsys):
    line = "  " + "word " * 30 + "end"
    print_lines([line, "杆秤"])
    assert capsys.readouterr().out == f"{line}\n杆秤\n"
    monkeypatch.setenv("COLUMNS", "60")
    written = Terminal()
    monkeypatch.setattr(sys, "stdout", written)
    print_lines([line])
    first, *rest = written.getvalue().splitlines()
    assert first.startswith("  word ")
    assert all(one.startswith("    word") for one in rest)
    assert all(len(one) <= 60 for one in (first, *rest))
    assert " ".join([first, *rest]).split() == line.split()


LINES = [(Span("[bold]你好[/bold]", "title"), Span(" :smile:", "bad")), EMPTY, (Span("x", "plain"),)]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_a_terminal(monkeypatch, **environment):
    """What the lines become on a terminal; stdout is set in the test's own phase, since pytest sets it in each."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", **environment}.items():
        monkeypatch.setenv(name, value)
    written = Terminal()
    monkeypatch.setattr(sys, "stdout", written)
    echo_lines(LINES)
    return written.getvalue()


def test_echo_lines_is_plain_without_a_terminal(capsys):
    echo_lines(LINES)
    assert capsys.readouterr().out == "[bold]你好[/bold] :smile:\n\nx\n"


def test_echo_lines_styles_text_on_a_terminal(monkeypatch):
    assert on_a_terminal(monkeypatch) == "\x1b[1m[bold]你好[/bold]\x1b[0m\x1b[1;31m :smile:\x1b[0m\n\nx\n"


def test_no_color_disables_colors(monkeypatch):
    written = on_a_terminal(monkeypatch, NO_COLOR="1")
    assert "31" not in written
    assert "[bold]你好[/bold]" in written


def test_dumb_terminal_gets_plain_text(monkeypatch):
    assert on_a_terminal(monkeypatch, TERM="dumb") == "[bold]你好[/bold] :smile:\n\nx\n"


@pytest.mark.parametrize(("columns", "width"), [("40", 40), ("5", MIN_WIDTH)])
def test_page_width_follows_terminal(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    assert page_width() == width


def test_unencodable_text_is_escaped(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    echo_lines([(Span("你"),)])
    sys.stdout.flush()
    assert raw.getvalue() == b"\\u4f60\n"


def test_echo_record_prints_one_json_object(capsys):
    echo_record({"text": "你好\x1b", "tiers": (("a",),)})
    written = capsys.readouterr().out
    assert json.loads(written) == {"text": "你好\x1b", "tiers": [["a"]]}
    assert "\x1b" not in written


HEADS = ("ratio", "of\nstrict")
ROWS = [
    ("all", "25.2%", "75.0%"),
    ("by judge",),
    ("  标注员甲", "0.0%", "-"),
    ("  someone with a long name", "1.0%", "2.0%"),
]


@pytest.fixture
def printed(monkeypatch, capsys):
    def at(columns, rows=ROWS):
        monkeypatch.setenv("COLUMNS", str(columns))
        print_table(TerminalTable("Conflicts", HEADS, rows))
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    return at


def test_table_is_in_columns_if_it_fits(printed):
    # 26 cells hold the longest name, 5 and 6 the figures, two stand between columns.
    assert printed(60) == [
        "Conflicts",
        f"{'of':>41}",
        f"{'ratio':>33}  strict",
        f"{'all':26}  25.2%   75.0%",
        "by judge",
        f"{'  标注员甲':22}   0.0%       -",
        f"{'  someone with a long name':26}   1.0%    2.0%",
    ]


def test_table_is_in_labelled_lines_if_too_wide(printed):
    assert printed(24) == [
        "Conflicts",
        "all",
        "  ratio 25.2%, of strict",
        "  75.0%",
        "by judge",
        "  标注员甲",
        "    ratio 0.0%, of",
        "    strict -",
        "  someone with a long name",
        "    ratio 1.0%, of",
        "    strict 2.0%",
    ]


@pytest.mark.parametrize("columns", [20, 24, 31, 40, 80, 200])
def test_table_cells_are_never_cut(printed, columns):
    text = "\n".join(printed(columns))
    assert "…" not in text
    for cell in ("25.2%", "75.0%", "0.0%", "1.0%", "2.0%", "标注员甲", "by judge"):
        assert cell in text


def test_control_characters_are_escaped(capsys):
    print_table(TerminalTable("a\x1b[2J", ["right"], [["model\u202e\n\x1b[31m", "0.5"]]))
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "model<U+202E>\u240a\u241b[31m" in shown


def test_columns_align_wide_characters():
    # a Chinese character takes two cells
    assert list(columns([("标注", "a"), ("b", "c"), ("", "d")])) == ["标注  a", "b     c", "      d"]


@pytest.mark.parametrize(("columns", "shown", "hidden"), [(80, 4, 0), (70, 3, 1), (50, 2, 2)])
def test_columns_that_do_not_fit_are_left_out_from_the_end_and_counted(tmp_path, monkeypatch, columns, shown, hidden):
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = "".join(f"model {number},8{number}.0,7{number}.0,6{number}.5\n" for number in range(4))
    (tmp_path / "table.csv").write_text("model,en,de,fr\n" + rows, encoding="utf-8")
    words = ["languages", "--table", str(tmp_path / "table.csv"), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(build_app(), words)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    heads = next(line for line in lines if "English" in line and "mean over" in line and "  " in line)
    assert len(re.split(r" {2,}", heads.strip())) == shown
    counted = [line for line in lines if "more column" in line]
    assert counted == ([] if not hidden else [f"… {hidden} more column{'s' * (hidden > 1)}: --verbose"])


def test_a_table_of_which_no_row_fits_is_named(tmp_path, monkeypatch):
    """Long names of models hid the table without a word."""
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "table.csv").write_text(f"model,en,de,fr\n{'m' * 60},80.0,70.0,60.0\n")
    words = ["languages", "--table", str(tmp_path / "table.csv"), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(build_app(), words)
    assert "… Models · table.csv, 1 row: --verbose" in result.output.splitlines()
