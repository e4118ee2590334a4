"""Counts of damaged translations, and the examples that are shown of each kind."""

from steelyard.judging.translation_summary import TranslationCounter
from steelyard.translation.damage_kinds import DamageFinding

LANGUAGES = ("zh", "ar", "he", "hi")


def counted(*items):
    counter = TranslationCounter(dict.fromkeys(LANGUAGES, 9))
    for prompt, language in items:
        finding = DamageFinding(kind="number", place="prompt", before="1", after="2")
        counter.add_case(prompt, language, (finding,), is_present=True)
    return [(each.prompt, each.language) for each in counter.examples["number"]]


def test_examples_are_of_different_items():
    assert counted(("p1", "zh"), ("p1", "ar"), ("p2", "zh")) == [("p1", "zh"), ("p2", "zh")]


def test_two_items_that_are_damaged_everywhere_are_shown_in_two_languages():
    every = [(f"p{number}", language) for number in range(2) for language in LANGUAGES]
    assert counted(*every) == [("p0", "zh"), ("p1", "ar")]


def test_examples_are_in_as_many_languages_as_there_are():
    every = [(f"p{number}", language) for number in range(9) for language in LANGUAGES]
    shown = counted(*every)
    assert len({prompt for prompt, _ in shown}) == len({language for _, language in shown}) == 3
    assert counted(*((f"p{number}", "zh") for number in range(9))) == [("p0", "zh"), ("p1", "zh"), ("p2", "zh")]


def test_three_languages_stay_when_a_fourth_comes():
    items = [("p1", "zh"), ("p2", "ar"), ("p3", "he"), ("p4", "hi")]
    assert counted(*items) == items[:3]
