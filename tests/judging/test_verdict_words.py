"""Verdicts in the words of many languages: plain ones are read, negated ones never are."""

import tomllib
from pathlib import Path

import pytest

from steelyard.judging.reply_parsing import read_choice
from steelyard.judging.reply_words import announces, negates
from steelyard.judging.verdict_words import language_words

AB = ("A", "B")
SENTENCES = tomllib.loads(Path(__file__).with_name("verdict_sentences.toml").read_text(encoding="utf-8"))
EACH = {
    kind: [(language, text) for language, table in SENTENCES.items() for text in table[kind]]
    for kind in ("plain", "negated", "letter", "none")
}


@pytest.mark.parametrize(("language", "text"), EACH["plain"])
def test_a_plain_verdict_is_read(language, text):
    assert read_choice(f"First some reasons\n{text}", "brackets", AB).value == "A"
    assert read_choice(f"{text.rstrip('.。')}。\nThen some reasons", "brackets", AB).value == "A"


@pytest.mark.parametrize(("language", "text"), EACH["negated"])
def test_a_negated_verdict_is_refused(language, text):
    assert read_choice(text, "brackets", AB).value is None
    assert read_choice(f"First some reasons\n{text}!", "brackets", AB).value is None


@pytest.mark.parametrize(("language", "text"), EACH["letter"])
def test_a_line_that_chooses_is_read(language, text):
    assert read_choice(text, "letter", AB).value == "B"
    assert read_choice(f"Some reasons.\n{text}", "letter", AB).value == "B"


@pytest.mark.parametrize(("language", "text"), EACH["none"])
def test_a_line_that_does_not_choose_is_refused(language, text):
    assert read_choice(text, "letter", AB).value is None


def test_the_languages_of_m_rewardbench_have_words_and_sentences():
    codes = "ar cs de el en es fa fr he hi id it ja ko nl pl pt ro ru tr uk vi zh"
    languages = set(codes.split())
    assert languages <= set(language_words())
    assert languages <= set(SENTENCES)


@pytest.mark.parametrize("language", language_words())
def test_every_word_of_negation_negates_and_no_idiom_does(language):
    words = language_words()[language]
    for word in (*words.negation, *words.worse):
        assert negates(f"[[ {word.replace('*', '')} ]]"), word
    for idiom in words.idioms:
        text = idiom.replace("\ue004", "x").replace("*", "")
        assert not negates(f"[[ {text} ]]"), idiom


@pytest.mark.parametrize("language", language_words())
def test_every_word_of_an_announcement_announces(language):
    for word in language_words()[language].announces:
        assert announces(f"{word.replace('*', '')} "), word


def test_an_ordinary_word_of_another_language_is_no_negation():
    assert not negates("A resposta é a melhor no conjunto")  # Portuguese "in the", English "not any"
    assert negates("La respuesta no es la mejor")
    assert not negates("Bu en iyi yanıt")  # Turkish "most", Finnish "I do not"
    assert negates("En valitse sitä")
    assert not negates("Both answers are in Hindi and fluent")  # Tagalog "not"
    assert negates("Hindi ito ang mas mabuti")


def test_composed_and_decomposed_letters_and_vowel_signs_are_one_word():
    assert negates("na\u0303o")
    assert negates("لَيْسَ")
    assert negates("לֹא")
