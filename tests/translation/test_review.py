"""What translators are asked about."""

from msgspec.structs import replace

from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.translation.damage_kinds import DamageFinding
from steelyard.translation.review import quality_cases

CODE = "return sum(numbers)\n"


def item(language, question, answer):
    prompt = Prompt(id="p", messages=(Message(role="user", content=question),), language=language)
    return Case(prompt=prompt, responses=(Response(id="a", text=CODE), Response(id="b", text=answer)))


SOURCE, TARGET = item("en", "Add them.", "I will not."), item("he", "חברו אותם.", "לא אחבר.")


def asked_about(*found, target=TARGET):
    findings = [DamageFinding(kind=kind, place=place, before="", after="") for kind, place in found]
    return [case.responses[0].text for case in quality_cases(SOURCE, target, findings, "he")]


def test_a_text_that_is_its_source_unchanged_is_not_rated():
    assert asked_about() == ["חברו אותם.", "לא אחבר."]
    assert asked_about(("swapped_responses", "responses")) == asked_about()


def test_a_text_is_rated_unchanged_where_a_check_objects():
    untranslated = replace(TARGET, responses=SOURCE.responses)
    assert asked_about(("untranslated", "response b"), target=untranslated) == ["I will not."]
