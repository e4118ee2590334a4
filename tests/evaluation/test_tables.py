import pytest

from evaluation_summaries import estimate
from steelyard.evaluation.leaderboard import Number
from steelyard.evaluation.tables import (
    Sentence,
    ShownItem,
    count,
    decimal,
    decimal_interval,
    group_word,
    isolate,
    language_word,
    p_relation,
    p_value,
    pair_name,
    percent,
    points,
    points_spread,
    spread,
    table,
    word,
)
from steelyard.report.leaderboard import value_with_interval


def test_languages_have_names_that_tell_the_codes_of_a_file_apart():
    names = [language_word(code) for code in ("ru", "rus_Cyrl", "zh", "zh-Hans", "zh-CN", "zh-TW", "pt-BR", "RU")]
    assert len(set(names)) == len(names), "two rows of a table, or two keys of a dictionary"
    assert names[0] == word("name_of_ru", "Russian")
    assert names[1] == f"{names[0]} (rus_Cyrl)"
    assert names[3] == word("name_of_zh_hans", "Simplified Chinese")
    assert language_word("tlh") == "tlh"
    assert language_word("unspecified") == word("no_language", "unspecified")
    assert group_word("language", "de") == word("name_of_de", "German")
    assert group_word("subset", "de") == "de"


def test_pieces_of_an_answer_are_its_whole_text_with_the_marked_ones_told_apart():
    answers = (("Source", "37 of 40."), ("Translation", "אין"))
    shown = ShownItem("p1", "he", Sentence("say_damage_place"), "", answers, (((0, 2), (6, 8)), ()))
    assert shown.pieces(0) == [("", False), ("37", True), (" of ", False), ("40", True), (".", False)]
    assert shown.pieces(1) == [("אין", False)]


def test_shares_are_shown_in_percent_and_null_as_a_dash():
    assert [percent(0.7123), percent(1.0), percent(0.0), percent(None)] == ["71.2%", "100.0%", "0.0%", "–"]
    assert spread(estimate(value=0.5, low=0.4, high=0.625)) == "40.0–62.5%"
    assert spread(estimate(value=0.5)) == "–"


def test_differences_carry_their_sign_but_zero_has_none():
    assert [points(0.131), points(-0.0312), points(0.0), points(-0.0004), points(None)] == [
        "+13.1",
        "−3.1",
        "0.0",
        "0.0",
        "–",
    ]
    assert points_spread(estimate(low=-0.01, high=0.172)) == "−1.0 … +17.2"
    assert points_spread(estimate(value=0.1)) == "–"


def test_no_zero_is_negative():
    tiny = estimate(value=-1e-6, low=-1e-6, high=1e-6)
    assert spread(tiny) == "0.0–0.0%"
    assert points_spread(tiny) == "0.0 … 0.0"
    assert decimal_interval(tiny) == "0.000 … 0.000"
    assert (percent(-1e-6), decimal(-1e-6)) == ("0.0%", "0.000")
    number = Number(group="headline", name="accuracy", value=-1e-6, low=-1e-6, high=1e-6, n=3)
    assert value_with_interval(number) == "0.0% [0.0–0.0%]"


def test_numbers():
    assert [count(12345), count(None)] == ["12,345", "–"]
    assert [decimal(-0.5), decimal(1.23456, 2), decimal(None)] == ["−0.500", "1.23", "–"]


def test_a_number_without_decimals_has_an_exponent_and_not_a_hundred_digits():
    assert [decimal(3.4333e154), decimal(-1e15), decimal(999_999_999_999_999.0, 0)] == [
        "3.433e+154",
        "−1.000e+15",
        "999,999,999,999,999",
    ]


def test_words_carry_what_stands_for_them():
    assert word("tier") == "@@tier|tier@@"
    assert word("baseline_x", "x") == "@@baseline_x|x@@"


def test_a_row_of_another_length_is_our_own_mistake():
    assert table(("a", "b"), [("1", "2")]).rows == (("1", "2"),)
    with pytest.raises(AssertionError):
        table(("a", "b"), [("1",)])


def test_right_to_left_names_are_isolated_and_zeros_have_no_sign():
    assert isolate("模型-7B") == "模型-7B"
    assert isolate("نموذج-7B") == "\N{LEFT-TO-RIGHT MARK}\N{FIRST STRONG ISOLATE}نموذج-7B\N{POP DIRECTIONAL ISOLATE}"
    assert pair_name("a", "b") == "a – b"
    assert pair_name("a", "b", separator="\n") == "a\n– b"
    assert (decimal(-0.0001), percent(-0.0001), percent(-0.014)) == ("0.000", "0.0%", "−1.4%")


def test_a_decimal_of_a_thousand_has_its_comma_as_a_count_does():
    assert (decimal(1015.05, 2), decimal(-12345.678, 1), decimal(-0.0001), decimal(None)) == (
        "1,015.05",
        "\N{MINUS SIGN}12,345.7",
        "0.000",
        "–",
    )


@pytest.mark.parametrize(
    ("p", "in_table", "in_sentence"),
    [(0.0, "< 0.001", "p < 0.001"), (0.00099, "< 0.001", "p < 0.001"), (0.001, "0.001", "p = 0.001"),
     (0.0124, "0.012", "p = 0.012"), (1.0, "1.000", "p = 1.000")],
)  # fmt: skip
def test_no_p_value_is_shown_as_nothing(p, in_table, in_sentence):
    assert (p_value(p), p_relation(p)) == (in_table, in_sentence)


def test_a_missing_p_value_is_a_dash():
    assert p_value(None) == "\N{EN DASH}"
