import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.text import number_of
from steelyard.io.terminal_text import (
    EMPTY,
    TAB,
    Span,
    clipped,
    folded,
    hanging,
    heading,
    joined_lines,
    padded,
    plain,
    rule_counts,
    text_lines,
    visible,
    visible_line,
    width_of,
)

ANY = st.text(alphabet=st.characters(codec="utf-8"), max_size=60)
MIXED = st.text(alphabet="ab c你好，世界שלום مرحبا नमस्ते👍🏽👨‍👩‍👧🇨🇳\n", max_size=60)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("a\rb\x07\x00\x7f", "a␍b␇␀␡"),
        ("a\tb", f"a{TAB}b"),
        ("one\ntwo", "one\ntwo"),
        ("\x9b31m", "<U+009B>31m"),
        ("a\u202eb\u2066c", "a<U+202E>b<U+2066>c"),
        ("\u2028\ufeff\u200b\U000e0041", "<U+2028><U+FEFF><U+200B><U+E0041>"),
        ("[bold]你好[/bold] مرحبا नमस्ते", "[bold]你好[/bold] مرحبا नमस्ते"),
        ("👨‍👩‍👧 می‌خواهم", "👨‍👩‍👧 می‌خواهم"),
        ("a\u00a0b\u3000c", "a\u00a0b\u3000c"),
        ("is \u200e\u2068دגם\u2069, b", "is دגם, b"),
        ("\u2068x", "<U+2068>x"),
    ],
)
def test_what_acts_is_shown_and_what_is_seen_stays(text, shown):
    assert visible(text) == shown


def test_in_one_line_a_new_line_is_a_picture():
    assert visible_line("a\nb\r\n") == "a␊b␍␊"


@given(ANY)
def test_no_text_can_act_on_the_terminal(text):
    shown = visible(text)
    categories = {unicodedata.category(character) for character in shown if character != "\n"}
    assert not categories & {"Cc", "Zl", "Zp"}
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@pytest.mark.parametrize(
    ("text", "width"), [("", 0), ("abc", 3), ("你好", 4), ("שלום", 4), ("a\u0301", 1), ("👍🏽", 2), ("🇨🇳", 2)]
)
def test_widths_are_those_of_a_terminal(text, width):
    assert width_of(text) == width


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 5, [""]),
        ("one two three", 8, ["one two", "three"]),
        ("你好世界", 5, ["你好", "世界"]),
        ("ab你好世界", 5, ["ab你", "好世", "界"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("a\n\nb", 9, ["a", "", "b"]),
        ("  indented code", 11, ["  indented", "code"]),
        ("一二，三四", 4, ["一", "二，", "三四"]),
        ("中文AP中文", 5, ["中文", "AP中", "文"]),
        ("👍🏽👍🏽", 2, ["👍🏽", "👍🏽"]),
    ],
)
def test_lines_are_broken_at_spaces_and_between_characters(text, width, lines):
    assert folded(text, width) == lines


@given(MIXED, st.integers(2, 20))
def test_folded_lines_fit_and_hold_all_that_is_no_white_space(text, width):
    lines = folded(text, width)
    assert all(width_of(line.rstrip()) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(MIXED, st.integers(2, 20))
def test_a_clipped_line_fits_and_says_that_it_is_clipped(text, width):
    line = text.replace("\n", " ")
    found = clipped(line, width)
    assert width_of(found) <= width
    assert found == line or (found.endswith("…") and line.startswith(found[:-1]))


def test_padding_counts_cells():
    assert padded("你好", 6) == "你好  "


def texts(lines):
    return [plain(line) for line in lines]


def test_a_line_without_its_styles_is_its_text():
    assert plain((Span("a ", "title"), Span("b  ", "bad"))) == "a b"
    assert plain(EMPTY) == ""


@pytest.mark.parametrize(("number", "told"), [(0, "0 tiers"), (1, "1 tier"), (1234, "1,234 tiers")])
def test_numbers_have_their_plural(number, told):
    assert number_of(number, "tier") == told


def test_a_remark_stands_beside_a_heading_where_it_fits_and_below_where_not():
    assert texts(heading("TIERS", 20, remark="of judges")) == ["", "TIERS  of judges"]
    assert texts(heading("TIERS", 14, remark="of judges")) == ["", "TIERS", "of judges"]
    assert texts(heading("TIERS", 14)) == ["", "TIERS"]


def test_texts_are_folded_indented_and_visible():
    assert texts(text_lines("one two\x1b\n你好", 6, indent="  ")) == ["  one", "  two␛", "  你好"]


def test_remarks_are_divided_by_dots_and_not_broken():
    assert texts(joined_lines(["one", "", "two 2", "three"], 12)) == ["one · two 2", "three"]
    assert texts(joined_lines([], 12)) == []
    assert texts(joined_lines(["a\nb"], 12)) == ["a␊b"]


def test_further_lines_hang_below_the_first():
    assert texts(hanging([Span("1  ", "title")], "one two", 7)) == ["1  one", "   two"]


def test_counts_of_parts_follow_their_total_and_a_part_that_repeats_it_is_left_out():
    by_language = {"pairs": 1440, "cut responses": 69, "cut responses, de": 11, "cut responses, en": 58}
    assert rule_counts(by_language) == "cut responses 69 (de 11, en 58), pairs 1,440"
    assert rule_counts({"cut responses": 123, "cut responses, unknown": 123}) == "cut responses 123"
    assert rule_counts({"no comparable pair, or no score": 3}) == "no comparable pair, or no score 3"
