import pytest

from steelyard.io.spans import EMPTY, Span, hanging, heading, listed, number_of, plain, said


def texts(lines):
    return [plain(line) for line in lines]


def test_a_line_without_its_styles_is_its_text():
    assert plain((Span("a ", "title"), Span("b  ", "bad"))) == "a b"
    assert plain(EMPTY) == ""


@pytest.mark.parametrize(("number", "told"), [(0, "0 tiers"), (1, "1 tier"), (1234, "1,234 tiers")])
def test_numbers_have_their_plural(number, told):
    assert number_of(number, "tier") == told


def test_a_remark_stands_beside_a_heading_where_it_fits_and_below_where_not():
    assert texts(heading("TIERS", 20, beside="of judges")) == ["", "TIERS  of judges"]
    assert texts(heading("TIERS", 14, beside="of judges")) == ["", "TIERS", "of judges"]
    assert texts(heading("TIERS", 14)) == ["", "TIERS"]


def test_texts_are_folded_indented_and_visible():
    assert texts(said("one two\x1b\n你好", 6, indent="  ")) == ["  one", "  two␛", "  你好"]


def test_remarks_are_divided_by_dots_and_not_broken():
    assert texts(listed(["one", "", "two 2", "three"], 12)) == ["one · two 2", "three"]
    assert texts(listed([], 12)) == []
    assert texts(listed(["a\nb"], 12)) == ["a␊b"]


def test_further_lines_hang_below_the_first():
    assert texts(hanging([Span("1  ", "title")], "one two", 7)) == ["1  one", "   two"]
