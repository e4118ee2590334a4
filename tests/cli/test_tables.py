import pytest

from steelyard.cli.tables import print_table

HEADINGS = ("ratio", "of\nstrict")
ROWS = [
    ("all", "25.2%", "75.0%"),
    ("by judge",),
    ("  标注员甲", "0.0%", "-"),
    ("  someone with a long name", "1.0%", "2.0%"),
]


@pytest.fixture
def shown(monkeypatch, capsys):
    def at(columns, rows=ROWS):
        monkeypatch.setenv("COLUMNS", str(columns))
        print_table("Conflicts", HEADINGS, rows)
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    return at


def test_columns_where_they_fit(shown):
    # 26 cells hold the longest name, 5 and 6 the figures, two stand between columns.
    assert shown(60) == [
        "Conflicts",
        f"{'of':>41}",
        f"{'ratio':>33}  strict",
        f"{'all':26}  25.2%   75.0%",
        "by judge",
        f"{'  标注员甲':22}   0.0%       -",
        f"{'  someone with a long name':26}   1.0%    2.0%",
    ]


def test_lines_with_their_headings_where_they_do_not(shown):
    assert shown(24) == [
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
def test_no_cell_is_cut_at_any_width(shown, columns):
    text = "\n".join(shown(columns))
    assert "…" not in text
    for cell in ("25.2%", "75.0%", "0.0%", "1.0%", "2.0%", "标注员甲", "by judge"):
        assert cell in text


def test_a_name_cannot_act_on_the_terminal(capsys):
    print_table("a\x1b[2J", ["right"], [["model\u202e\n\x1b[31m", "0.5"]])
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "model<U+202E>\u240a\u241b[31m" in shown
