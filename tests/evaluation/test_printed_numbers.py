"""Numbers of cells in every notation: values and digits by hand, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each_value import each
from steelyard.core.errors import Place, RecordError
from steelyard.evaluation.printed_numbers import NumberCell, plain_cell, printed_number, read_numbers

ZEROS = {"Latin": "0", "Arabic": "٠", "Persian": "۰", "Devanagari": "०", "full width": "０"}
PLACE = Place("t.csv", 2)


def cells(*texts):
    return [NumberCell(PLACE, "b", plain_cell(text)) for text in texts]


@given(
    number=st.integers(-99_999, 99_999),
    zero=st.sampled_from(sorted(ZEROS.values())),
    mark=st.sampled_from(".,٫．，"),
    before=st.sampled_from(["", "**", "$", "_"]),
    sign=st.sampled_from(["", "%", " %", "\u00a0%", "\u202f%", "٪", "％"]),
    after=st.sampled_from(["", " ± 1.5", " [70, 72]", "(0.3)", "±2", "*", "†", " (70–72)"]),
)
def test_one_number_in_any_script_and_notation(number, zero, mark, before, sign, after):
    digits = f"{abs(number) / 100:.2f}".translate({ord("0") + place: ord(zero) + place for place in range(10)})
    minus = "\N{MINUS SIGN}" if number < 0 else ""
    text = f"{before}{minus}{digits.replace('.', mark)}{sign}{after}{before}"
    found = printed_number(plain_cell(text))
    assert (found.value, found.digits) == (number / 100, 2)
    assert found.is_percent == bool(sign)


@each("text", ["x", "1.234,5", "1,2,3", "12 3", "1e999", "0x1", "½", "5²", "٬5", "1 [", "0,9_41", "--5", "nan%", "Inf"])
def test_other_texts_are_no_numbers(text):
    with pytest.raises(RecordError, match=r"t\.csv:2: b is "):
        read_numbers(cells("1", text))


def test_cells_that_are_read_together_have_one_notation():
    assert [number and number.value for number in read_numbers(cells("0,5", "n/a", "1", "–"))] == [0.5, None, 1.0, None]
    with pytest.raises(RecordError, match="the same decimal mark"):
        read_numbers(cells("0,5", "0.5"))
    with pytest.raises(RecordError, match=r"'0\.5' without the sign %"):
        read_numbers(cells("50%", "0.5"))
    squared = NumberCell(PLACE, "var", "0.5", is_squared=True)
    assert read_numbers([*cells("50%"), squared])[1].value == 0.5


def test_a_comma_that_may_divide_thousands_needs_another_cell_that_decides():
    with pytest.raises(RecordError, match="nothing between thousands"):
        read_numbers(cells("1,234", "5"), has_thousands=True)
    for other in ("2,5", "0,123", "1234,567"):
        assert read_numbers(cells("1,234", other), has_thousands=True)[0].value == 1.234
    assert read_numbers(cells("83,512"))[0].value == 83.512
