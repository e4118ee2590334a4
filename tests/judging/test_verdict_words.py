"""Verdicts in the words of many languages: plain ones are read, negated ones never are."""

import re
import tomllib
from pathlib import Path

import pytest

from each_value import each
from steelyard.judging.reply_parsing import read_choice, read_rating
from steelyard.judging.reply_words import announces, negates
from steelyard.judging.verdict_words import language_words

AB = ("A", "B")
M_REWARDBENCH = "ar cs de el en es fa fr he hi id it ja ko nl pl pt ro ru tr uk vi zh"
SENTENCES = tomllib.loads(Path(__file__).with_name("verdict_sentences.toml").read_text(encoding="utf-8"))
EACH = {
    kind: [(language, text) for language, table in SENTENCES.items() for text in table.get(kind, ())]
    for kind in ("plain", "negated", "letter", "none", "eight", "unrated", "hedged", "withdrawn")
}


@each(("language", "text"), EACH["plain"])
def test_a_plain_verdict_is_read(language, text):
    assert read_choice(f"First some reasons\n{text}", "brackets", AB).value == "A"
    assert read_choice(f"{text.rstrip('.。')}。\nThen some reasons", "brackets", AB).value == "A"


@each(("language", "text"), EACH["negated"])
def test_a_negated_verdict_is_refused(language, text):
    assert read_choice(text, "brackets", AB).value is None
    assert read_choice(f"First some reasons\n{text}!", "brackets", AB).value is None


@each(("language", "text"), EACH["letter"] + EACH["hedged"])
def test_a_line_that_chooses_is_read_also_with_a_hedge(language, text):
    assert read_choice(text, "letter", AB).value == "B"
    assert read_choice(f"Some reasons.\n{text}", "letter", AB).value == "B"


@each(("language", "text"), EACH["none"] + EACH["withdrawn"])
def test_a_line_that_does_not_choose_or_takes_its_choice_back_is_refused(language, text):
    assert read_choice(text, "letter", AB).value is None
    assert read_choice(f"Some reasons.\n{text}", "letter", AB).value is None


@each("language", [*M_REWARDBENCH.split(), "th"])
def test_every_hedge_leaves_a_vote_and_every_word_of_indecision_behind_it_takes_it_back(language):
    words = language_words()[language]
    assert len(words.hedges) >= 6
    assert {"hedged", "withdrawn"} <= set(SENTENCES[language])
    for hedge in words.hedges:
        assert read_choice(f"{hedge} B", "letter", AB).value == "B", hedge
        assert read_choice(f"{hedge} A, {hedge} B", "letter", AB).value is None, hedge
    for indecision in words.undecided:
        for text in (f"{words.hedges[0]} B. {indecision}.", f"{words.hedges[0]} B\n{indecision}"):
            assert read_choice(text, "letter", AB).value is None, indecision


def test_a_choice_after_indecision_is_a_vote():
    assert read_choice("I cannot decide, but I lean to B", "letter", AB).value == "B"
    assert read_choice("Hard to say. Perhaps B.", "letter", AB).value == "B"


@each("language", [language for language, table in SENTENCES.items() if "letter" in table])
def test_a_concession_that_names_the_other_answer_leaves_the_verdict(language):
    verdict = SENTENCES[language]["letter"][0].rstrip(".。।")
    words = language_words()["zh" if language == "zh-Hant" else language]
    for although in words.although:
        word = although.replace("*", "")
        assert read_choice(f"{verdict}, {word} A x", "letter", AB).value == "B", word
        # "A" is an article in some languages.
        swapped = (
            re.sub(rf"(?<![A-Za-z]){name}(?![A-Za-z])", lambda letter: "BA"["AB".index(letter[0])], verdict)
            for name in ("[AB]", "B")
        )
        contrary = next(each for each in swapped if read_choice(each, "letter", AB).value == "A")
        assert read_choice(f"{verdict}, {word} {contrary}", "letter", AB).value is None, word


@each("language", language_words())
def test_what_others_would_choose_is_no_verdict(language):
    words = language_words()[language]
    assert words.although
    assert words.others
    for other in words.others:
        word = other.replace("*", "").capitalize()
        for text in (f"{word} [[A]]", f"Reasons.\n{word}: [[A]]", f"{word} {words.answer[0]} [[A]]"):
            assert read_choice(text, "brackets", AB).value is None, text


OTHERS = (
    "others would choose [[A]]", "I used to think [[A]]", "The user asked me to output [[A]]", "用户要求我输出[[A]]",
    "别人会选[[A]]", "我以前认为是[[A]]", "他の人は[[A]]を選ぶでしょう", "Andere würden [[A]] wählen",
    "Ich dachte früher, [[A]] sei besser", "D'autres choisiraient [[A]]", "Je pensais que [[A]] était mieux",
    "Otros elegirían [[A]]", "Другие выбрали бы [[A]]", "Раньше я думал, что [[A]]", "كنت أعتقد أن [[A]] أفضل",
    "अन्य लोग [[A]] चुनेंगे", "Eskiden [[A]] olduğunu düşünürdüm", "다른 사람들은 [[A]]를 선택할 것입니다",
)  # fmt: skip
OWN = (
    "If I had to choose: [[A]]", "Others would say B is better, but I choose [[A]]", "The user asked for a list: [[A]]",
    "I used to think B was better, but now I choose [[A]]", "[[A]], although others would choose B",
    "用户要求我输出JSON，回答A做到了，结论是[[A]]", "别人会选B，但我选[[A]]", "Wenn ich wählen müsste: [[A]]",
)  # fmt: skip


@each(("text", "label"), [*((text, None) for text in OTHERS), *((text, "A") for text in OWN)])
def test_a_verdict_is_the_judges_own(text, label):
    assert read_choice(text, "brackets", AB).value == label


@each(
    ("text", "label"),
    [
        ("B is better, although A is shorter", "B"),
        ("B is better, although I choose A", None),
        ("回答B更好，虽然回答A更短", "B"),
        ("Antwort B ist besser, obwohl Antwort A kürzer ist.", "B"),
        ("La réponse B est meilleure, bien que la réponse A soit plus courte.", "B"),
        ("Ответ B лучше, хотя ответ A короче.", "B"),
        ("Answer B is better, although answer A claims that answer A is better", "B"),
    ],
)
def test_a_concession_is_read_in_its_language(text, label):
    assert read_choice(text, "letter", AB).value == label


@each(("language", "text"), EACH["eight"])
def test_a_line_that_rates_is_read(language, text):
    assert read_rating(text).value == "8"
    assert read_rating(f"Some reasons.\n{text}").value == "8"


@pytest.mark.parametrize(("language", "text"), EACH["unrated"])
def test_a_line_that_does_not_rate_is_refused(language, text):
    assert read_rating(text).value is None


@each("language", M_REWARDBENCH.split())
def test_the_languages_of_m_rewardbench_have_words_and_sentences(language):
    assert {"plain", "negated", "letter", "none", "eight"} <= set(SENTENCES[language])
    words = language_words()[language]
    assert all((words.first, words.second, words.because, words.degrees, words.ratings, words.points, words.score))


@each("language", M_REWARDBENCH.split())
def test_an_answer_is_named_by_its_letter_number_or_place(language):
    words = language_words()[language]
    noun = words.answer[0]
    for label, places in (("A", words.first), ("B", words.second)):
        number = " AB".index(label)
        names = [f"{noun} {label}", f"{noun} {number}", *(f"{place} {noun}" for place in places)]
        names += [f"{noun} {place}" for place in places]
        assert {name: read_choice(name, "letter", AB).value for name in names} == dict.fromkeys(names, label)


@each("language", M_REWARDBENCH.split())
def test_a_reason_leaves_a_verdict_and_one_that_turns_to_the_other_answer_does_not(language):
    words, table = language_words()[language], SENTENCES[language]
    turn = next(word for word in words.breaks if word not in words.because)
    for because in words.because:
        verdict = f"{table['letter'][0].rstrip('.。')}, {because} x"
        assert read_choice(verdict, "letter", AB).value == "B", verdict
        assert read_choice(f"{verdict}, {turn} A", "letter", AB).value is None, verdict
        assert read_choice(f"{table['none'][0]}, {because} x", "letter", AB).value is None, because


def test_a_place_is_an_answer_in_a_denied_clause_too():
    assert read_choice("The first answer is not correct: [[B]]", "brackets", AB).value == "B"
    assert read_choice("The second answer is not correct: [[B]]", "brackets", AB).value is None
    assert read_choice("第一个回答不正确：[[B]]", "brackets", AB).value == "B"
    assert read_choice("第二个回答不正确：[[B]]", "brackets", AB).value is None


def test_a_clause_that_begins_with_the_verb_is_a_report():
    assert read_choice("[[B]], says the first answer", "brackets", AB).value is None


@each("language", language_words())
def test_every_word_of_negation_negates_and_no_idiom_does(language):
    words = language_words()[language]
    for word in (*words.negation, *words.worse):
        assert negates(f"[[ {word.replace('*', '')} ]]"), word
    for idiom in words.idioms:
        text = idiom.replace("\ue004", "x").replace("*", "")
        assert not negates(f"[[ {text} ]]"), idiom


@each("language", language_words())
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
