import io

import pytest
from rich.console import Console

from steelyard.files import talk
from steelyard.files.talk import bar, say, track


def test_talk_goes_to_stderr_and_never_to_stdout(capsys):
    say("[not markup] 杆秤")
    assert list(track(range(3), "counting", 3)) == [0, 1, 2]
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "[not markup] 杆秤\n"  # quick work says nothing


def test_a_log_gets_a_line_now_and_then(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 31.0, 31.0, 40.0, 40.0])
    monkeypatch.setattr(talk.time, "monotonic", lambda: next(clock))
    with bar("training", 5) as one:
        one.advance(2)
        one.advance(2, note="loss 0.5")
    assert capsys.readouterr().err == "training: 4 of 5, loss 0.5 (31 s)\ntraining: 4 of 5, loss 0.5 (40 s)\n"


def test_a_terminal_gets_a_bar_that_leaves_nothing_behind(monkeypatch):
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(talk, "Console", lambda **_: terminal)
    with bar("drawing", 3) as one:
        one.advance(2, note="half-way")
    assert "drawing" in screen.getvalue()
    assert "2/3" in screen.getvalue()


def test_an_error_inside_is_not_swallowed():
    with pytest.raises(ZeroDivisionError), bar("x") as one:
        one.advance(1 / 0)
