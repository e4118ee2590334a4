import re

import pytest

from steelyard.core.types import Response
from steelyard.plugins.judges._prompt import JudgeConfig, question, wording_of
from steelyard.plugins.judges.tasks import in_orders
from strategies import prompt

SHOWN = (Response(id="x", text="one"), Response(id="y", text="two"))


def asked(task="pair", labels=("A", "B"), shown=SHOWN, **settings):
    own = {name: settings.pop(name) for name in ("language", "category", "reference", "meta") if name in settings}
    return question(task, prompt(**own), shown, wording_of(JudgeConfig(**settings)), labels=labels)


def test_orders():
    assert in_orders("both")("xyz") == (("x", "y", "z"), ("z", "y", "x"))
    assert in_orders("one")("xyz") == (("x", "y", "z"),)


def test_no_slot_is_left_open():
    for task, labels in (("pair", ("A", "B")), ("best", ("A", "B")), ("ranking", ("A", "B")), ("rating", ())):
        for tongue in ("en", "zh"):
            for form in ("brackets", "letter", "json") if task != "ranking" else ("brackets",):
                told = asked(task, labels, prompt_language=tongue, form=form, language="he").messages[0].content
                assert not re.search(r"\{\w+\}", told)


def test_what_is_not_known_is_not_told():
    told = asked(language=None).messages[0].content
    assert "The request is written in" not in told
    assert "There is a reference" not in told
    assert "There is a reference. It may be a model answer" in asked(reference="42").messages[0].content
    assert "42" in asked(reference="42").messages[1].content
    assert "Weigh these points" not in asked(criteria=False).messages[0].content


def test_two_languages_where_the_answer_is_in_another():
    told = asked(language="en", meta={"answer_language": "zh"}).messages[0].content
    assert "The request is written in English. Answers should be in Chinese. An answer that" in told


@pytest.mark.parametrize(
    ("language", "name", "is_either"),
    [("zh", "中文", True), ("zh-Hans", "简体中文", False), ("zho_Hant", "繁体中文", False)],
)
def test_a_script_is_asked_for_where_the_code_names_one(language, name, is_either):
    told = asked(language=language).messages[0].content
    assert f"回答应使用{name}。" in told
    assert ("简体字和繁体字均可" in told) is is_either


def test_one_must_be_chosen_where_no_tie_is_offered():
    forced = "Choose one even if the difference is small."
    assert forced in asked().messages[0].content
    assert forced in asked("best").messages[0].content
    assert forced not in asked(labels=("A", "B", "C")).messages[0].content
    assert forced not in asked("ranking").messages[0].content


@pytest.mark.parametrize(
    ("settings", "max_tokens", "reason"),
    [
        ({}, 2048, True),
        ({"style": "skywork_critic"}, 64, False),
        ({"style": "skywork_critic", "form": "json"}, 2048, True),
        ({"form": "letter"}, 64, False),
        ({"form": "first_token"}, 1, False),
        ({"reason": False}, 2048, False),
        ({"max_tokens": 7}, 7, True),
    ],
)
def test_room_for_reasons_where_they_are_wanted(settings, max_tokens, reason):
    wording = wording_of(JudgeConfig(**settings))
    assert (wording.max_tokens, wording.reason) == (max_tokens, reason)


def test_the_mark_depends_on_all_that_is_shown():
    marks = {
        asked(shown=shown).messages[1].content.rsplit(" ", 2)[1]
        for shown in (SHOWN, SHOWN[::-1], (SHOWN[0], Response(id="y", text="two.")))
    }
    assert len(marks) == 3
