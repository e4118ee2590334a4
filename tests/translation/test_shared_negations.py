"""What other translations of a sentence say about the negation of its source."""

import json

from negated_cases import case, negation
from steelyard.io.cases import write_cases
from steelyard.judging.translation_run import FINDINGS_FILE
from steelyard.stages.translate import Config, translate
from steelyard.translation.shared_negations import SharedNegations

TRANSLATIONS = {
    "de": "Er kam zu spät.",
    "fr": "Il est arrivé en retard.",
    "es": "Llegó tarde.",
    "nl": "Hij kwam te laat.",
    "pt": "Ele chegou tarde.",
}


def shared(source, translations):
    bench = SharedNegations()
    for language, text in translations.items():
        bench.add(source, case(text, language))
    return bench


def accused(source, translations):
    bench = shared(source, translations)
    return {
        language
        for language, text in translations.items()
        for each in negation(source, case(text, language))
        if not bench.is_of_source(source.prompt.id, each)
    }


def test_a_sentence_that_all_others_negate_otherwise_accuses_none_of_them():
    source = case("Non arrivò in tempo.", "it")
    assert all(negation(source, case(text, language)) for language, text in TRANSLATIONS.items())
    assert accused(source, TRANSLATIONS) == set()


def test_a_translation_that_differs_from_source_and_others_is_accused():
    source = case("He came late.", "en")
    assert accused(source, TRANSLATIONS | {"it": "Non arrivò tardi."}) == {"it"}


def test_a_negation_that_all_translations_of_english_lose_accuses_each():
    source = case("He did not arrive in time.", "en")
    assert accused(source, TRANSLATIONS) == {*TRANSLATIONS}


def test_a_quarter_of_translations_or_too_few_excuse_nothing():
    source = case("Non arrivò in tempo.", "it")
    three = dict(list(TRANSLATIONS.items())[:3])
    assert accused(source, three) == {*three}
    with_two = TRANSLATIONS | {"af": "Hy het nie betyds gekom nie.", "ru": "Он не пришёл вовремя."}
    assert accused(source, with_two) == {*TRANSLATIONS}


def test_texts_of_several_sentences_are_judged_by_themselves():
    source = case("Non arrivò in tempo. Tutti lo aspettavano alla stazione.", "it")
    texts = {language: f"{text} Paris." for language, text in TRANSLATIONS.items()}
    assert accused(source, texts) == {*texts}


def test_languages_without_words_say_nothing():
    source = case("Non arrivò in tempo.", "it")
    texts = dict.fromkeys(("eo", "la", "is", "mt"), "Li venis malfrue.") | {"de": "Er kam zu spät."}
    assert accused(source, texts) == {"de"}


def test_the_verb_accuses_translations_of_no_negation_by_which_their_source_alone_is_said(tmp_path):
    texts = {"it": "Non arrivò in tempo.", **TRANSLATIONS}
    firsts = {"it": "Partì presto.", "de": "Er ging nicht früh."}
    cases = [case(text, language, response=firsts.get(language, "1")) for language, text in texts.items()]
    write_cases(tmp_path / "cases.jsonl", cases)
    translate(tmp_path / "cases.jsonl", tmp_path / "out", Config(check_only=True, source="it"))
    rows = map(json.loads, (tmp_path / "out" / FINDINGS_FILE).read_text(encoding="utf-8").splitlines())
    assert [(row["language"], row["place"]) for row in rows if row["kind"] == "negation"] == [("de", "response a")]


def test_a_prefix_that_one_translation_lost_is_its_fault_where_others_use_words():
    source = case("Gib mir eine nicht leere Liste.", "de")
    translations = {
        "ja": "空でないリストをください。",
        "ko": "비어 있지 않은 목록을 주세요.",
        "bn": "এমন একটি তালিকা দাও যা খালি নয়।",
        "hi": "मुझे एक सूची दो जो खाली नहीं है।",
        "fr": "Donne-moi une liste vide.",
    }
    assert accused(source, translations) == {"fr"}
