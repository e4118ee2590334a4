"""Scripts of a text: counts by hand, and the whole table against the script property of Unicode."""

import regex
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.scripts import (
    OTHER,
    SCRIPTS,
    count_scripts,
    script_codes,
    scripts_of,
)


def test_letters_of_each_script_are_counted():
    assert count_scripts("Steelyard 杆秤, 2 weights!") == {"Latin": 16, "Han": 2}
    assert count_scripts("東京タワーへ行く") == {"Han": 3, "Katakana": 3, "Hiragana": 2}
    assert count_scripts("मुझे") == {"Devanagari": 4}  # vowel signs are part of the word
    assert count_scripts("Привіт, κόσμε") == {"Cyrillic": 6, "Greek": 5}


def test_a_text_without_letters_has_no_script():
    assert count_scripts("12 + 3 = 15 😀 ✓ → ") == {}


def test_a_writing_system_may_have_several_scripts():
    assert scripts_of("Japanese") == {"Han", "Hiragana", "Katakana"}
    assert scripts_of("Cyrillic") == {"Cyrillic"}


def test_unlisted_scripts_are_other_and_broken_text_has_none():
    assert count_scripts("ᚠᚢᚦ") == {OTHER: 3}
    assert count_scripts("\ud83d\udc4d \ufffd \x00 \ue000") == {}


@given(st.text())
def test_every_code_point_has_one_code(text: str):
    codes = script_codes(text)
    assert len(codes) == len(text)
    assert sum(count_scripts(text).values()) == (codes > 0).sum()


def test_the_table_agrees_with_unicode():
    """No letter has the code of another script, and nearly all letters of the listed scripts have their own."""
    letters = "".join(regex.findall(r"\p{L}", "".join(map(chr, [*range(0xD800), *range(0xE000, 0x30000)]))))
    codes = script_codes(letters)
    num_right = num_listed = 0
    for code, name in enumerate(SCRIPTS[1:-1], start=1):
        coded = "".join(letter for letter, each in zip(letters, codes, strict=True) if each == code)
        wrong = regex.sub(rf"[\p{{Script={name}}}\p{{Script=Common}}\p{{Script=Inherited}}]", "", coded)
        assert wrong == "", f"{name}: {wrong[:20]!r}"
        num_right += len(coded)
        num_listed += len(regex.findall(rf"\p{{Script={name}}}", letters))
    # The rest are raised and historic letters in blocks of their own.
    assert num_right > 0.98 * num_listed > 100_000
