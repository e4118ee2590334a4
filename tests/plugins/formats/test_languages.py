import pytest

from steelyard.plugins.formats._languages import code_of, name_of


@pytest.mark.parametrize(
    ("name", "code"),
    [("Chinese", "zh"), ("chinese", "zh"), ("zh", "zh"), ("heb_Hebr", "heb_Hebr"), ("zh-TW", "zh-TW"),
     ("unknown", None), ("python", None), ("", None)],
)  # fmt: skip
def test_names_in_any_case_and_codes(name, code):
    assert code_of(name) == code


def test_a_code_without_a_name_stays():
    assert (name_of("ar"), name_of("heb_Hebr")) == ("Arabic", "heb_Hebr")
