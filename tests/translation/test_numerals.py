"""Compound number words: what they are worth in each language, and where one ends."""

import time

from each_value import each
from steelyard.core.language_words import fold
from steelyard.translation.numerals import numerals


def values(text: str, language: str) -> list[int]:
    return list(numerals(fold(text), language))


@each(
    ("language", "words", "value"),
    [
        ("en", "twenty-three", 23),
        ("en", "One hundred and five thousand, two hundred and eleven", 105_211),
        ("en", "the twenty-first", 21),
        ("de", "einundzwanzig", 21),
        ("de", "Dreihundertfünfundsechzig", 365),
        ("de", "am dreiundzwanzigsten", 23),
        ("nl", "zevenennegentig", 97),
        ("fr", "quatre-vingt-dix-sept", 97),
        ("fr", "soixante et onze", 71),
        ("es", "ciento veintidós", 122),
        ("it", "centottantotto", 188),
        ("pt", "vinte e um", 21),
        ("da", "treoghalvfems", 93),
        ("pl", "czterdzieści dwa", 42),
        ("ru", "тысяча девятьсот восемьдесят четыре", 1984),
        ("tr", "yirmi üç", 23),
        ("tr", "onbeş", 15),
        ("fi", "kolmekymmentäyhdeksän", 39),
        ("fi", "viisitoista", 15),
        ("et", "kakskümmend kolm", 23),
        ("hu", "huszonnégy", 24),
        ("vi", "hai mươi lăm", 25),
        ("id", "tujuh belas", 17),
        ("id", "seratus dua puluh tiga", 123),
        ("sw", "ishirini na tatu", 23),
        ("qu", "iskay chunka kimsayuq", 23),
        ("ar", "تسعة عشر", 19),
        ("ar", "ثلاثة وعشرون", 23),
        ("he", "עשרים ושלוש", 23),
        ("fa", "بیست و سه", 23),
        ("hi", "इक्कीस", 21),
        ("hi", "दो हज़ार पैंतालीस", 2045),
        ("bn", "পঁয়তাল্লিশ", 45),
        ("ko", "이십삼", 23),
        ("th", "ยี่สิบเอ็ด", 21),
    ],
)
def test_a_compound_has_the_value_that_speakers_give_it(language, words, value):
    assert values(words, language) == [value]


@each(
    ("language", "text", "expected"),
    [
        ("en", "thirteen, fourteen and fifteen", [13, 14, 15]),
        ("en", "twenty or thirty", [20, 30]),
        ("en", "twenty, three of them here", [20]),
        ("en", "a hundred thousand times, two and three", []),
        ("en", "weightyfourteen", []),
        ("de", "elf und zwölf", [11, 12]),
        ("de", "Achtung, einer und zwei", []),
        ("xx", "twenty-three", []),
    ],
)
def test_words_that_make_no_number_together_are_read_apart(language, text, expected):
    assert values(text, language) == expected


@each(
    ("language", "piece"),
    [
        ("en", "one "),
        ("en", "twenty-"),
        ("de", "dreizehn"),
        ("de", "einund"),
        ("it", "cento"),
        ("th", "สิบ"),
        ("ko", "이"),
    ],
)
def test_hostile_texts_are_read_in_time_linear_in_their_length(language, piece):
    start = time.process_time()
    values(piece * (200_000 // len(piece)) + "x", language)
    assert time.process_time() - start < 5.0, "seconds for 200,000 characters"
