"""Damage of translations: each kind is found in small examples of several languages, and right translations pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each_value import each
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.translation.bench_lengths import LengthLimits, TranslationLengths, length_limits
from steelyard.translation.damage import find_damage
from steelyard.translation.damage_kinds import DAMAGE_KINDS
from steelyard.translation.wording import TargetLanguage

NO_BENCH = LengthLimits(pairs={})
SOURCE = "The river is 250 km long. It flows through three countries."
RIGHT = {
    "de": "Der Fluss ist 250 km lang. Er fließt durch drei Länder.",
    "es": "El río mide 250 km de largo. Atraviesa tres países.",
    "ru": "Длина реки составляет 250 км. Она протекает через три страны.",
    "zh": "这条河长250公里。它流经三个国家。",
    "ja": "この川の長さは250キロメートルです。三つの国を流れています。",
    "ko": "이 강의 길이는 250km이다. 세 나라를 지나 흐른다.",
    "ar": "يبلغ طول النهر ٢٥٠ كم. ويمر عبر ثلاث دول.",
    "he": "אורך הנהר הוא 250 ק״מ. הוא זורם דרך שלוש מדינות.",
    "hi": "नदी २५० किमी लंबी है। यह तीन देशों से होकर बहती है।",
    "th": "แม่น้ำสายนี้ยาว 250 กิโลเมตร ไหลผ่านสามประเทศ",
}


def case(text: str, language: str, *answers: str) -> Case:
    responses = tuple(Response(id=f"r{number}", text=answer) for number, answer in enumerate(answers, start=1))
    return Case(
        prompt=Prompt(id="p", messages=(Message(role="user", content=text),), language=language), responses=responses
    )


def kinds(source: str, target: str, language: str, *, source_language: str = "en", languages=None, limits=NO_BENCH):
    """The kinds of damage of a prompt's translation."""
    found = find_damage(case(source, source_language), case(target, language), limits=limits, languages=languages)
    return {finding.kind for finding in found}


def number_findings(source: str, target: str, language: str):
    """The findings of numbers in a prompt's translation."""
    found = find_damage(case(source, "en"), case(target, language), limits=NO_BENCH, languages=None)
    return [finding for finding in found if finding.kind == "number"]


@each(
    ("source", "target", "language"),
    [
        (
            "The smallest is 0 (zero) and the largest 1 (one).",
            "Die kleinste ist 0 (null) und die größte 8 (eins).",
            "de",
        ),
        ("Two of 12, then 12 and 30.", "Zwei von 12, dann 15 und 30.", "de"),
        ("In December 2 people died and 3 left.", "Im Dezember starben 3 Menschen und 3 gingen.", "de"),
        ("Give 3 of them, then 1 and 3.", "给出其中3个，然后是1和1。", "zh"),
        ("You get 2 words, and return the second one.", "Je krijgt 0 woorden, en geeft het tweede terug.", "nl"),
        ("It costs 20000 yuan.", "价格为三万元。", "zh"),
        ("It weighs 375 pounds.", "Es wiegt 190 Kilogramm.", "de"),
        ("It is 24 years old.", "Es ist fünfundzwanzig Jahre alt.", "de"),
        ("It is twenty-three years old.", "Es ist zweiunddreißig Jahre alt.", "de"),
        ("It is twenty-three years old.", "它三十二岁。", "zh"),
    ],
)
def test_a_changed_number_is_found_where_its_value_occurs_elsewhere_in_the_text(source, target, language):
    assert len(number_findings(source, target, language)) == 1


@each(
    ("source", "target", "language"),
    [
        ("He has 3 dogs and two cats.", "Er hat drei Hunde und 2 Katzen.", "de"),
        ("It costs 20000 yuan.", "价格为两万元。", "zh"),
        ("It costs 15,000 yen.", "一万五千円かかる。", "ja"),
        ("There are 120000000 of them.", "有一亿两千万个。", "zh"),
        ("1.2 billion people live there.", "12億人が住んでいる。", "ja"),
        ("There are 1,234.", "Il y en a 1 234.", "fr"),
        ("In 2023, 350 people came.", "ในปี 2566 มี 350 คน", "th"),
        ("In December 2 of 12 left.", "12月に12人のうち2人が去った。", "ja"),
        ("It weighs 375 to 400 pounds.", "Es wiegt 170 bis 180 Kilogramm.", "de"),
        ("It is 24 years old.", "Es ist vierundzwanzig Jahre alt.", "de"),
        ("It is 97 years old.", "Il a quatre-vingt-dix-sept ans.", "fr"),
        ("It is 45 years old.", "वह पैंतालीस साल का है।", "hi"),
        ("He has 3 houses.", "उसके तीन घर हैं।", "hi"),
        ("It is twenty-three years old.", "它二十三岁。", "zh"),
    ],
)
def test_the_same_numbers_in_another_notation_are_no_change(source, target, language):
    assert number_findings(source, target, language) == []


@each(("language", "text"), list(RIGHT.items()))
def test_a_right_translation_has_no_findings(language, text):
    assert kinds(SOURCE, text, language) == set()


@each(("language", "text"), list(RIGHT.items()))
def test_a_blank_translation_is_empty(language, text):
    assert kinds(SOURCE, " \n", language) == {"empty"}


@each(("language", "text"), list(RIGHT.items()))
def test_the_source_text_itself_is_in_the_wrong_language(language, text):
    assert kinds(SOURCE, SOURCE, language) == {"wrong_language"}


@each(("language", "text"), [(language, text) for language, text in RIGHT.items() if language not in ("de", "es")])
def test_a_script_alone_shows_another_language(language, text):
    assert kinds(SOURCE, text, "fr") >= {"wrong_language"}


def test_the_identified_language_decides_within_a_script():
    spanish = (TargetLanguage("es", 0.99, None),)
    assert kinds(SOURCE, RIGHT["es"], "de", languages=spanish) == {"wrong_language"}
    assert kinds(SOURCE, RIGHT["es"], "es", languages=spanish) == set()


def test_an_identified_language_of_another_script_than_that_of_the_text_is_none():
    assert kinds(SOURCE, RIGHT["zh"], "zh", languages=(TargetLanguage("it", 0.99, None),)) == set()


@each(
    ("language", "identified"),
    [("ms", "id"), ("id", "ms"), ("no", "da"), ("hr", "sr"), ("tl", "ceb"), ("af", "nl"), ("ht", "eo"), ("it", "vec")],
)
def test_languages_that_are_hard_to_tell_apart_are_not_findings(language, identified):
    text = "Sungai itu panjangnya 250 km dan mengalir melalui tiga negara."
    assert "wrong_language" not in kinds(SOURCE, text, language, languages=(TargetLanguage(identified, 0.99, None),))


def test_sentences_that_two_close_languages_share_are_neither_untranslated_nor_in_the_wrong_language():
    indonesian = "Saya tuang mentega ke dalam mangkuk itu."
    assert kinds(indonesian, indonesian, "ms", source_language="id") == set()
    assert kinds(SOURCE, SOURCE, "ms") == {"wrong_language"}


def test_traditional_characters_in_a_simplified_case_are_the_wrong_script():
    traditional = (TargetLanguage("zh", 0.99, "Hant"),)
    assert kinds(SOURCE, "這條河長250公里。它流經三個國家。", "zh", languages=traditional) == {"wrong_script"}
    assert kinds(SOURCE, "這條河長250公里。它流經三個國家。", "zh-TW", languages=traditional) == set()


def test_japanese_without_kana_is_chinese():
    text = (
        "这条河长250公里。它流经三个国家，最后在北方的一座古老城市附近流入大海，沿岸有许多村庄和农田，居民以捕鱼为生。"
    )
    assert "wrong_language" in kinds(SOURCE, text, "ja")


@each(
    ("language", "text"),
    [
        ("de", "Der Fluss ist 250 km lang. It flows through three countries."),
        ("zh", "这条河长250公里。It flows through three countries."),
        ("ar", "يبلغ طول النهر ٢٥٠ كم. It flows through three countries."),
        ("hi", "नदी २५० किमी लंबी है। It flows through three countries."),
    ],
)
def test_a_sentence_of_the_source_is_untranslated(language, text):
    assert kinds(SOURCE, text, language) == {"untranslated"}


@each(
    ("source", "text", "language"),
    [
        ("He quoted “to be or not to be that is it”.", "Er zitierte “to be or not to be that is it”.", "de"),
        ("The Bank of New York Mellon grew.", "Die Bank of New York Mellon wuchs.", "de"),
        ("Use `git log for all files` now.", "现在使用 `git log for all files`。", "zh"),
        ("See https://example.org/this-is-the-way here.", "请看 https://example.org/this-is-the-way 。", "zh"),
        ("See `/etc/hosts` and /etc/resolv.conf.", "راجع `/etc/hosts` و/etc/resolv.conf.", "ar"),
        ("Call os.path.join with both.", "両方で os.path.join を呼びます。", "ja"),
        ("Start it with --dry-run-only-here now.", "अब इसे --dry-run-only-here से शुरू कीजिए।", "hi"),
    ],
)
def test_names_quotations_and_code_may_stay_as_they_are(source, text, language):
    assert "untranslated" not in kinds(source, text, language)


@each(
    ("source", "text", "language"),
    [
        ("Pick. Valid choices are 'one', 'two' and 'red'.", "Valitse. Valid choices are 'one', 'two' and 'red'.", "fi"),
        (
            "Return the n-th Fibonacci number. Stop.",
            "Return the n-th Fibonacci number. Σταμάτα τώρα αμέσως και περίμενε λίγο εδώ.",
            "el",
        ),
        ("Take 'text', return its md5 hash. Stop now.", "Take 'text', return its md5 hash. Itigil na.", "tl"),
    ],
)
def test_quotations_and_identifiers_do_not_hide_a_sentence_of_the_source(source, text, language):
    assert "untranslated" in kinds(source, text, language)


def test_the_kept_part_of_a_text_in_the_language_of_the_source_is_shown():
    english = (TargetLanguage("en", 0.8, None),)
    assert kinds(SOURCE, "It flows through three countries. Ja.", "de", languages=english) == {
        "wrong_language",
        "untranslated",
        "number",
    }


def test_formulas_and_names_of_variables_alone_are_not_untranslated():
    assert "untranslated" not in kinds("If x in arr1 or x in arr2, stop.", "Wenn x in arr1 or x in arr2, halt.", "de")


def test_chinese_words_left_in_english_are_untranslated():
    source = "这条河流经三个国家。它很长。"
    english = "这条河流经三个国家. It is long, and in summer people come to swim."
    assert "untranslated" in kinds(source, english, "en", source_language="zh")
    assert "untranslated" not in kinds(source, "The river (河) crosses three countries. It is long.", "en")


@each(
    ("language", "text"),
    [
        ("de", "Der Fluss ist 250 km lang. Er fließt" + " durch drei Länder" * 8 + "."),
        ("zh", "这条河长250公里。它流经" + "三个国家" * 20 + "。"),
        ("ar", "يبلغ طول النهر ٢٥٠ كم. " + "ويمر عبر ثلاث دول. " * 5),
        ("ko", "이 강의 길이는 250km이다. " + "세 나라를 지나 흐른다. " * 4),
    ],
)
def test_a_loop_is_repeated(language, text):
    assert "repeated" in kinds(SOURCE, text, language)


def test_a_refrain_of_the_source_is_no_loop():
    assert "repeated" not in kinds("No. No. No. I said no.", "Nein. Nein. Nein. Ich sagte nein.", "de")


FIVE = (
    "The old bridge was built by the Romans in the first century. Today it carries only pedestrians and cyclists. "
    "Every summer a market is held beside it. Visitors come from many regions to buy cheese and wine. "
    "In the evening musicians play on the bridge until midnight."
)
FIVE_GERMAN = (
    "Die alte Brücke wurde im ersten Jahrhundert von den Römern gebaut. Heute trägt sie nur Fußgänger und Radfahrer. "
    "Jeden Sommer findet neben ihr ein Markt statt. Besucher kommen aus vielen Regionen, um Käse und Wein zu kaufen. "
    "Am Abend spielen Musiker auf der Brücke bis Mitternacht."
)
SURE_LENGTHS = LengthLimits(pairs={"en>de": TranslationLengths(num_texts=100, spread=0.05, short_spread=1.0, ends=1.0)})


def test_a_missing_sentence_is_found_and_joined_ones_are_not():
    missing = FIVE_GERMAN.replace("Heute trägt sie nur Fußgänger und Radfahrer. ", "")
    joined = FIVE_GERMAN.replace("gebaut. Heute", "gebaut, und heute")
    assert kinds(FIVE, missing, "de", limits=SURE_LENGTHS) == {"sentences"}
    assert kinds(FIVE, FIVE_GERMAN, "de", limits=SURE_LENGTHS) == set()
    assert kinds(FIVE, joined, "de", limits=SURE_LENGTHS) == set()


@each(
    ("source", "target", "language"),
    [
        ("Return only positive numbers.", "Gib nicht nur positive Zahlen zurück.", "de"),
        ("Return only positive numbers.", "Devuelve no solo números positivos.", "es"),
        ("Return only positive numbers.", "Вернуть не только положительные числа.", "ru"),
        ("Return only positive numbers.", "Renvoyer pas seulement les nombres positifs.", "fr"),
    ],
)
def test_not_only_is_an_added_negation_where_the_source_has_only(source, target, language):
    assert kinds(source, target, language) == {"negation"}
    assert kinds(source.replace("Return only", "Also return"), target, language) == set()


def test_a_colon_at_the_end_of_a_translation_is_no_cut():
    assert kinds("We set two major directions.", "Wir haben zwei große Richtungen:", "de") == set()
    assert kinds("We set two major directions.", "Wir haben zwei große Richt", "de") == {"truncated"}


def test_six_or_seven_thousand_in_chinese_characters_are_both_numbers():
    assert number_findings("It costs 16,000 to 17,000 yuan.", "价格为一万六七千元。", "zh") == []
    assert len(number_findings("It costs 16,000 to 18,000 yuan.", "价格为一万六七千元。", "zh")) == 1


@each(("joined", "found"), [(0.3, set()), (0.005, {"sentences"})])
def test_two_sentences_of_which_one_is_missing_are_joined_ones_only_where_the_bench_has_such(joined, found):
    usual = TranslationLengths(num_texts=100, spread=0.3, short_spread=2.0, ends=1.0, joined=joined)
    source = "The old bridge was built in wood. Only cyclists use it."
    limits = LengthLimits(pairs={"en>de": usual})
    assert kinds(source, "Die alte Brücke wurde aus Holz gebaut.", "de", limits=limits) == found


def test_the_rate_of_joined_sentences_is_that_of_long_texts_so_that_damage_leaves_it_as_it_is():
    whole, joined, missing = "Das ist gut. Das ist alt.", "Das ist gut und auch das ist alt.", "Das ist gut."
    targets = [whole] * 33 + [joined] * 5 + [missing] * 2
    limits = length_limits([(case("It is good. It is old.", "en"), case(target, "de")) for target in targets])
    assert limits.pairs["en>de"].joined == pytest.approx(0.1296, abs=1e-4), "(2 * 5 + 0.5) of 80 + 1 sentences"


def test_an_added_sentence_is_found():
    added = FIVE_GERMAN + " Ich hoffe sehr, dass Ihnen diese Übersetzung gefällt und weiterhilft."
    assert kinds(FIVE, added, "de", limits=SURE_LENGTHS) == {"sentences"}


def test_a_fifth_of_the_text_is_too_short():
    assert "length" in kinds(FIVE, "Die alte Brücke wurde gebaut.", "de", limits=SURE_LENGTHS)


def test_the_limits_of_length_are_those_of_the_bench():
    # Every translation has twice the letters of its source, so twice is usual and the same length is short.
    words = ["bridge", "market", "evening", "summer", "visitor"]
    pairs = [
        (case(" ".join(words * size), "en"), case(" ".join(word * 2 for word in words * size), "de"))
        for size in range(2, 42)
    ]
    limits = length_limits(pairs)
    usual = limits.pairs["en>de"]
    assert usual.num_texts == 40
    assert usual.log_ratio == pytest.approx(0.6931, abs=1e-4), "the logarithm of 2"
    assert usual.deviation(100, 200) == pytest.approx(0, abs=1e-3)
    assert usual.deviation(100, 50) < -4


def test_a_program_that_is_the_same_in_both_languages_sets_no_limit():
    program = "total = sum(values) # adds them up"
    assert length_limits([(case(program, "en"), case(program, "de"))] * 30).pairs == {}


@each(
    ("language", "text"),
    [
        ("de", "Der Fluss ist 250 km lang. Er fließt durch dr"),
        ("es", "El río mide 250 km de largo. Atraviesa tre"),
        ("ja", "この川の長さは250キロメートルです。三つの国を流"),
        ("hi", "नदी २५० किमी लंबी है। यह तीन देशों से"),
        ("ru", "Длина реки составляет 250 км. Она протекает (через три страны."),
        ("he", "אורך הנהר הוא 250 ק״מ. הוא זורם דרך שלוש"),
    ],
)
def test_an_end_without_a_mark_or_an_open_bracket_is_truncated(language, text):
    assert "truncated" in kinds(SOURCE, text, language)


def test_a_full_stop_of_an_abbreviation_is_no_final_mark_that_a_translation_lost():
    assert kinds("It begins at 5:15 p.m.", "5시 15분에", "ko") == set()
    assert kinds("It begins at 5:15.", "5시 15분에", "ko") == {"truncated"}


def test_a_greek_question_ends_with_a_semicolon():
    assert kinds("How long should I boil it?", "Πόση ώρα πρέπει να το βράσω;", "el") == set()


def test_an_open_block_of_code_is_truncated():
    assert "truncated" in kinds("Run:\n```\nls\n```", "Ausführen:\n```\nls", "de")


def test_languages_without_final_marks_and_closing_quotation_marks_are_not_truncated():
    assert "truncated" not in kinds("He left.", "เขาจากไป", "th")
    assert "truncated" not in kinds('He said: "I left."', "Er sagte: „Ich ging.“", "de")


@each(
    ("source", "text", "language"),
    [
        (SOURCE, RIGHT["de"].replace("250", "260"), "de"),
        (SOURCE, RIGHT["zh"].replace("250", "25"), "zh"),
        (SOURCE, RIGHT["ar"].replace("٢٥٠", "٢٥١"), "ar"),
        (SOURCE, RIGHT["hi"].replace("२५०", "२००"), "hi"),
        ("It costs 3.5 euros.", "Es kostet 35 Euro.", "de"),
        ("Born in 1984 here.", "Hier geboren.", "de"),
        ("He has 7 cats.", "У него 9 кошек.", "ru"),
    ],
)
def test_a_changed_or_lost_number_is_found(source, text, language):
    assert "number" in kinds(source, text, language)


@each(
    ("source", "text", "language", "before", "after"),
    [
        ("He owes 37 €. He paid.", "يكلف ٣٨ يورو. دفع.", "ar", "He owes [37] €.", "يكلف [٣٨] يورو."),
        ("He paid. It costs 1,250.", "他付了。价格是1,520。", "zh", "It costs [1,250].", "价格是[1,520]。"),
        # The translation lost the number: its sentence is the one as far into the text, without a mark.
        ("He paid. Born in 1984.", "Er zahlte. Hier geboren.", "de", "Born in [1984].", "Hier geboren."),
        ("1. 37\n2. 38", "1. 37\n2. 39", "fr", "2. [38]", "2. [39]"),
    ],
)
def test_a_finding_of_numbers_shows_their_sentences_with_the_numbers_as_written(source, text, language, before, after):
    (found,) = number_findings(source, text, language)
    for sentence, expected in zip(found.sentences, (before, after), strict=True):
        shown = sentence.text
        for start, stop in reversed(sentence.marks):
            shown = f"{shown[:start]}[{shown[start:stop]}]{shown[stop:]}"
        assert shown == expected


def test_a_long_sentence_is_shown_around_its_number():
    source, text = (f"{'word ' * 500}{number}{' more' * 500}." for number in (37, 38))
    (found,) = number_findings(source, text, "de")
    for sentence, number in zip(found.sentences, ("37", "38"), strict=True):
        ((start, stop),) = sentence.marks
        assert sentence.text[start:stop] == number
        assert len(sentence.text) < 250
        assert sentence.text[0] == sentence.text[-1] == "…"


@each(
    ("source", "text", "language"),
    [
        ("It costs 1,234.50 dollars.", "Es kostet 1.234,5 Dollar.", "de"),
        ("It costs 1,234,567 dollars.", "Cela coûte 1 234 567 dollars.", "fr"),
        ("About 10 million people live here.", "这里约有1000万人。", "zh"),
        ("They have 12 children.", "Sie haben zwölf Kinder.", "de"),
        ("They have twelve children.", "У них 12 детей.", "ru"),
        ("It has 20 rooms.", "它有二十个房间。", "zh"),
        ("They met on March 5, 2021.", "他们于2021年3月5日见面。", "zh"),
        ("It opens at 3 pm.", "Es öffnet um 15 Uhr.", "de"),
        ("Wait 30 minutes.", "انتظر ٣٠ دقيقة.", "ar"),
        ("It costs 1,00,000 rupees.", "इसकी कीमत १,००,००० रुपये है।", "hi"),
        ("COVID came in 2020.", "COVID-19 kam 2020.", "de"),
        ("One of them left.", "Einer von ihnen ging.", "de"),
        ("About 124 million people live there.", "約1億2400万人が住んでいます。", "ja"),
        ("About 124 million people live there.", "약 1억 2,400만 명이 삽니다.", "ko"),
        ("About 124 million people live there.", "लगभग 12.4 करोड़ लोग रहते हैं।", "hi"),
        ("About 124 million people live there.", "Takriban watu milioni 124 wanaishi huko.", "sw"),
        ("From 3 to 4 million people came.", "300万から400万人が来ました。", "ja"),
        ("It flew at 12,000 meters.", "它的飞行高度为1.2万米。", "zh"),
        ("More than 5 million people came.", "500多万人来了。", "zh"),
        ("Run 5 km.", "跑5千米。", "zh"),
        ("It began at 10:56 p.m.", "Se alkoi kello 22.56.", "fi"),
        ("It began at 9:30 p.m.", "Saat 21.30'da başladı.", "tr"),
        ("In the afternoon it is open until 2 p.m.", "Po południu otwarte do godziny 14.", "pl"),
        ("The shop opens at 2 p.m.", "Duka hufunguliwa saa 8 mchana.", "sw"),
        ("There are 10k runners.", "Il y a 10 000 coureurs.", "fr"),
        ("It happened in the 21st century.", "C'était au XXIe siècle.", "fr"),
        ("He ate 3/4 of the cake.", "Er aß ¾ des Kuchens.", "de"),
        ("It is 70 degrees Fahrenheit.", "Es sind 21 Grad Celsius.", "de"),
        ("There are 3 millionaires.", "Там 3 миллионера.", "ru"),
        ("It ends on 03/05/2024.", "Il se termine le 5 mars 2024.", "fr"),
    ],
)
def test_numbers_in_other_forms_are_the_same(source, text, language):
    assert "number" not in kinds(source, text, language)


@each(
    ("source", "text", "language"),
    [
        ("About 124 million people live there.", "Körülbelül 124 milliárdan élnek ott.", "hu"),
        ("About 124 million people live there.", "Körülbelül 1240 millióan élnek ott.", "hu"),
        ("About 124 million people live there.", "Environ 124 personnes y vivent.", "fr"),
        ("About 124 million people live there.", "約12億4000万人が住んでいます。", "ja"),
        ("About 12 million people live there.", "लगभग 1.2 लाख लोग रहते हैं।", "hi"),
        ("About 3 billion people live there.", "Etwa 3 Billionen Menschen leben dort.", "de"),
        ("It leaves at 6:45 a.m. on March 5, 2024.", "2024年3月5日の午前9時45分に出発します。", "ja"),
        ("On 12 May I bought it.", "15. toukokuuta ostin sen.", "fi"),
        ("It began at 10:56 p.m.", "Se alkoi kello 21.56.", "fi"),
        ("The shop opens at 2 p.m.", "Duka hufunguliwa saa 9 mchana.", "sw"),
    ],
)
def test_another_scale_time_or_day_is_another_number(source, text, language):
    assert "number" in kinds(source, text, language)


@each(
    ("source", "text", "language"),
    [
        ("He does not like coffee.", "Er mag Kaffee.", "de"),
        # Languages that negate by parts of the verb.
        ("He came.", "او نیامد.", "fa"),
        ("But he comes, however late.", "しかし、彼は来ません。", "ja"),
        ("I do not like it.", "Ninaipenda.", "sw"),
        ("I like it.", "Siipendi na sitaki.", "sw"),
        ("Three minutes are enough.", "Dakika tatu hazitoshi.", "sw"),
        ("He stayed at home.", "Hakubaki nyumbani.", "sw"),
        ("I do not know that.", "எனக்கு அது தெரியும்.", "ta"),
        ("That is enough.", "அது போதாது.", "ta"),
        ("He stayed at home.", "அவர் வீட்டில் இருக்கவில்லை.", "ta"),
        ("She said that it works well.", "İyi işlemediğini söyledi.", "tr"),
        ("It is the same apple.", "Aynı elma olmadığı görülüyor.", "tr"),
        ("Everyone speaks it.", "Personne ne le parle.", "fr"),
        # Said of what is asked for, not of a laugh that one cannot help.
        ("I can't help with that.", "Dabei kann ich helfen.", "de"),
        # "Forget" is a word of its own, and no negation that is left.
        ("Don't forget your passport.", "Oubliez votre passeport.", "fr"),
        ("It does not check negative numbers.", "Ελέγχει αρνητικούς αριθμούς.", "el"),
        ("It is in order, and not odd.", "Ez rendben van, és páratlan.", "hu"),
        # "If not" is a negation where the source has no "otherwise".
        ("If it rains, stay.", "Ha nem esik, maradj.", "hu"),
        ("If it does not rain, go.", "Kalau hujan, pergilah.", "id"),
        ("He does not like coffee.", "他喜欢咖啡。", "zh"),
        ("He does not like coffee.", "彼はコーヒーが好きです。", "ja"),
        ("He does not like coffee.", "Он любит кофе.", "ru"),
        ("He does not like coffee.", "هو يحب القهوة.", "ar"),
        ("He likes coffee.", "Er mag keinen Kaffee.", "de"),
        ("He likes coffee.", "A él no le gusta el café.", "es"),
        ("He likes coffee.", "他不喜欢咖啡。", "zh"),
        ("He likes coffee.", "הוא לא אוהב קפה.", "he"),
        ("Do not write to the office.", "כתוב אל המשרד.", "he"),
        ("Write to the office.", "אל תכתוב אל המשרד.", "he"),
        ("He likes coffee.", "उसे कॉफी पसंद नहीं है।", "hi"),
        ("He likes coffee.", "Kahve sevmiyor.", "tr"),
        # Words that begin as those that deny something.
        ("The unique universe is under us.", "Das einzige Universum ist nicht unter uns.", "de"),
        ("The band met in a bank in Denmark.", "Die Band traf sich nicht in einer Bank in Dänemark.", "de"),
        ("Quite a few options were left.", "Einige Möglichkeiten blieben nicht.", "de"),
        ("Go, otherwise stay.", "Geh nicht, sonst bleib.", "de"),
        # A word such as "without" explains its own translation alone.
        ("He works without a break.", "Er arbeitet, ohne eine Pause zu machen, und nicht zu kurz.", "de"),
        ("She refused to go there.", "Elle n'a pas refusé d'y aller.", "fr"),
        ("I agree with that plan.", "我不同意那个计划。", "zh"),
        ("The value satisfies the condition.", "该值不满足条件。", "zh"),
        # Words that only look like negations hide no loss.
        ("He did not eat, and she slept among us.", "Er aß, und sie schlief unter uns.", "de"),
        ("He did not see the sky in this week.", "Он видел небо на этой неделе.", "ru"),
        # A negation that is kept hides none that is lost.
        ("He did not go. She did not stay.", "Er ging, und sie blieb nicht.", "de"),
        # Questions of languages without a particle of this form.
        ("How can I cook the rice?", "Come non posso cucinare il riso?", "it"),
        ("How can I cook the rice?", "Kijan mwen pa ka kwit diri a?", "ht"),
    ],
)
def test_a_lost_or_added_negation_is_found(source, text, language):
    assert kinds(source, text, language) == {"negation"}


@each(
    ("source", "text", "language"),
    [
        ("He does not like coffee.", "Er mag keinen Kaffee.", "de"),
        ("It is impossible.", "这是不可能的。", "zh"),
        ("He works without a break.", "Er macht bei der Arbeit keine Pause.", "de"),
        ("He saw nothing.", "No vio nada.", "es"),
        ("The number grows all the time.", "数量不断增长。", "zh"),
        ("The address is this one.", "ঠিকানা এটি।", "bn"),
        ("Do you cook rice?", "Bạn có nấu cơm không?", "vi"),
        ("That is their house.", "Sa se kay pa yo.", "ht"),
        ("Why cant he go", "Warum kann er nicht gehen", "de"),
        ("Write some jokes that I can use.", "어떤 농담을 하면 좋을지 말해봐.", "ko"),
        ("No one knows that.", "아무도 그걸 모른다.", "ko"),
        ("He refused to pay.", "他不愿付钱。", "zh"),
        ("Not only cats but also dogs came.", "Auch Hunde und Katzen kamen.", "de"),
        ("He accidentally broke it.", "他不小心弄坏了它。", "zh"),
        ("I can't wait to see it.", "Ich freue mich darauf, es zu sehen.", "de"),
        ("Return a non-empty list.", "Gib eine nicht leere Liste zurück.", "de"),
        ("He does not like coffee.", "An hahaha xyz.", "eo"),
        ("It is unlikely.", "Das ist nicht wahrscheinlich.", "de"),
        ("The bank denied it and banned him.", "Die Bank gab es nicht zu und nahm ihn nicht mehr auf.", "de"),
        ("Go, otherwise stay.", "Pergi, jika tidak, tinggal.", "id"),
        ("Go, otherwise stay.", "Pumunta, kung hindi, manatili.", "tl"),
        ("Go, otherwise stay.", "Đi, nếu không, ở lại.", "vi"),
        ("Write to the office.", "כתוב אל המשרד.", "he"),
        ("Go, otherwise stay.", "Menj, ha nem, maradj.", "hu"),
        ("Go, otherwise stay.", "가세요. 그렇지 않으면 계세요.", "ko"),
        ("Go, otherwise stay.", "जाइए, नहीं तो रुकिए।", "hi"),
        ("It is cheap, and you will not get tired.", "Se on halpaa, ettekä väsy.", "fi"),
        ("I asked whether he would like to come.", "Gelmek isteyip istemeyeceğini sordum.", "tr"),
        ("Ask her for it.", "Poproś ją o nie otwarcie.", "pl"),
        ("Go there and eat a pastry.", "اذهبا إلى هناك وكلا فطيرة.", "ar"),
        ("I hope that you come.", "Geleceğini umuyorum.", "tr"),
        ("He did not come.", "او نیامد.", "fa"),
        ("Only children may enter.", "子どもしか入れません。", "ja"),
        ("Would you like some tea?", "お茶を飲みませんか？", "ja"),
        ("You must go.", "가지 않으면 안 됩니다.", "ko"),
        ("Feel free to ask.", "Zögern Sie nicht zu fragen.", "de"),
        ("Remember to lock the door.", "Не забудьте закрыть дверь.", "ru"),
        ("Wait until he comes.", "Poczekaj, aż nie przyjdzie.", "pl"),
        ("He always looks for it.", "Daima hutafuta hicho.", "sw"),
        ("Her father read her a story.", "Baba yake alimsomea hadithi.", "sw"),
        ("Why do you not agree with us?", "你为什么不同意我们？", "zh"),
        ("There is no proof against her.", "没有对她不利的证明。", "zh"),
        ('If they do not meet, print "NO".', "如果它们不相遇，则输出“NO”。", "zh"),
    ],
)
def test_negation_by_other_means_is_none(source, text, language):
    assert "negation" not in kinds(source, text, language)


def test_every_kind_of_finding_is_explained():
    found = find_damage(case(SOURCE, "en"), case("", "de"), limits=NO_BENCH, languages=None)
    assert [each.kind for each in found] == ["empty"]
    assert found[0].place == "prompt"
    assert found[0].before == SOURCE
    assert found[0].kind in DAMAGE_KINDS


@given(st.text(max_size=300), st.text(max_size=300), st.sampled_from(["de", "zh", "th", "xx", ""]))
def test_any_two_texts_can_be_compared(source, target, language):
    found = find_damage(case(source, "en", target), case(target, language, source), limits=NO_BENCH, languages=None)
    assert all(each.kind in DAMAGE_KINDS and len(each.before) <= 80 and len(each.after) <= 80 for each in found)


@given(st.lists(st.sampled_from([SOURCE, FIVE, "1. One\n2. Two", "`x = 1`", "A) Yes\nB) No", ""]), max_size=6))
def test_an_identity_translation_has_only_a_finding_of_its_language(parts):
    text = "\n\n".join(parts)
    assert kinds(text, text, "de") <= {"wrong_language"}
    assert kinds(text, text, "en") == set()
