import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from steelyard.io import progress
from steelyard.io.progress import bar, format_duration, log, track


def test_talk_goes_to_stderr_and_never_to_stdout(capsys, monkeypatch):
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 0.0))
    log("[not markup] 杆秤")
    assert list(track(range(3), "counting", 3)) == [0, 1, 2]
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "[not markup] 杆秤\n"  # quick work says nothing


def test_a_log_gets_a_line_now_and_then(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 31.0, 31.0, 40.0, 40.0])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with bar("training", 5) as one:
        one.advance(2)
        one.advance(2, note="loss 0.5")
    assert capsys.readouterr().err == "training: 4 of 5, loss 0.5 (31 s, 8 s left)\ntraining: 4 of 5, loss 0.5 (40 s)\n"


@pytest.mark.parametrize(("seconds", "told"), [(12, "12 s"), (600, "10 min"), (9000, "2.5 h")])
def test_the_time_left_is_told_in_the_unit_that_fits(seconds, told):
    assert format_duration(seconds) == told


def test_the_time_left_is_told_once_by_whoever_knows_it_better(capsys, monkeypatch):
    clock = iter([0.0, 31.0, 31.0, 40.0])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock, 40.0)))
    with bar("training", 4) as one:
        one.advance(2, note="loss 0.5", seconds_left=7200)
    assert capsys.readouterr().err.splitlines()[0] == "training: 2 of 4, loss 0.5 (31 s, 2.0 h left)"
    with bar("of unknown length") as one:
        assert one.advance(2) is None


def test_a_long_note_is_cut_and_the_time_left_is_not(monkeypatch):
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(progress, "Console", lambda **_: terminal)
    with bar("training", 30) as one:
        one.advance(
            2, note="loss 0.693, 1,234 pairs/s, 123,456 tokens/s, MFU 12% of the measured peak", seconds_left=3600
        )
    last = screen.getvalue().split("training")[-1].split("\n")[0]
    assert " 2/30 60 min left loss 0.6" in " ".join(last.split())
    assert last.endswith("…")
    assert len("- training" + last) <= 100


def test_a_terminal_gets_a_bar_that_leaves_nothing_behind(monkeypatch):
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(progress, "Console", lambda **_: terminal)
    with bar("drawing", 3) as one:
        one.advance(2, note="half-way")
    assert "drawing" in screen.getvalue()
    assert "2/3" in screen.getvalue()


def test_a_message_stands_above_an_open_bar_in_a_line_of_its_own(monkeypatch):
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(progress, "Console", lambda **_: terminal)
    with bar("training", 3) as one:
        one.advance()
        log("step 1: held-out accuracy 0.663")
        one.advance()
    written = screen.getvalue()
    before = written[: written.index("step 1:")]
    assert before.endswith("\r\x1b[2K"), "the line of the bar is erased before the message"
    assert "held-out accuracy 0.663\n" in written


def test_an_error_inside_is_not_swallowed():
    with pytest.raises(ZeroDivisionError), bar("x") as one:
        one.advance(1 / 0)


def test_a_name_cannot_act_on_the_terminal(capsys):
    log("error: \x1b]8;;https://evil.example\x07cases\u202elnosj.jsonl\x1b[2J")
    assert capsys.readouterr().err == ("error: \u241b]8;;https://evil.example\u2407cases<U+202E>lnosj.jsonl\u241b[2J\n")
