import io
import json
import sys

import pytest

from steelyard.cli.pages import LEAST_WIDTH, echo_lines, echo_record, page_width
from steelyard.io.terminal_text import EMPTY, Span

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


def test_elsewhere_than_on_a_terminal_lines_are_plain(capsys):
    echo_lines(LINES)
    assert capsys.readouterr().out == "[bold]你好[/bold] :smile:\n\nx\n"


def test_a_terminal_gets_styles_and_the_texts_as_they_are(monkeypatch):
    assert on_a_terminal(monkeypatch) == "\x1b[1m[bold]你好[/bold]\x1b[0m\x1b[1;31m :smile:\x1b[0m\n\nx\n"


def test_no_color_takes_the_colours_away(monkeypatch):
    written = on_a_terminal(monkeypatch, NO_COLOR="1")
    assert "31" not in written
    assert "[bold]你好[/bold]" in written


def test_a_terminal_without_styles_gets_none(monkeypatch):
    assert on_a_terminal(monkeypatch, TERM="dumb") == "[bold]你好[/bold] :smile:\n\nx\n"


@pytest.mark.parametrize(("columns", "width"), [("40", 40), ("5", LEAST_WIDTH)])
def test_the_width_is_the_terminal_s(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    assert page_width() == width


def test_a_stdout_that_has_no_chinese_gets_numbers(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    echo_lines([(Span("你"),)])
    sys.stdout.flush()
    assert raw.getvalue() == b"\\u4f60\n"


def test_a_record_is_one_json_object(capsys):
    echo_record({"text": "你好\x1b", "tiers": (("a",),)})
    written = capsys.readouterr().out
    assert json.loads(written) == {"text": "你好\x1b", "tiers": [["a"]]}
    assert "\x1b" not in written
