import re

import pytest

from steelyard.core.types import Response
from steelyard.plugins.judges._prompt import in_orders, question, worded
from steelyard.plugins.judges.pairwise import Config
from strategies import prompt

SHOWN = (Response(id="x", text="one"), Response(id="y", text="two"))


def asked(task="pair", labels=("A", "B"), shown=SHOWN, **settings):
    own = {name: settings.pop(name) for name in ("language", "category", "reference", "meta") if name in settings}
    return question(task, prompt(**own), shown, worded(Config(**settings)), labels=labels)


def test_orders():
    assert in_orders("xyz", "both") == (("x", "y", "z"), ("z", "y", "x"))
    assert in_orders("xyz", "one") == (("x", "y", "z"),)


def test_no_slot_is_left_open():
    for task, labels in (("pair", ("A", "B")), ("best", ("A", "B")), ("ranking", ("A", "B")), ("rating", ())):
        for tongue in ("en", "zh"):
            for form in ("brackets", "letter", "json") if task != "ranking" else ("brackets",):
                told = asked(task, labels, prompt_language=tongue, form=form, language="he").messages[0].content
                assert not re.search(r"\{\w+\}", told)


def test_what_is_not_known_is_not_told():
    told = asked(language=None).messages[0].content
    assert "The request is written in" not in told
    assert "reference" not in told
    assert "A reference answer" in asked(reference="42").messages[0].content
    assert "42" in asked(reference="42").messages[1].content
    assert "Weigh these points" not in asked(criteria=False).messages[0].content


def test_two_languages_where_the_answer_is_in_another():
    told = asked(language="en", meta={"answer_language": "zh"}).messages[0].content
    assert "The request is written in English. An answer is expected in Chinese (simplified)" in told


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
    wording = worded(Config(**settings))
    assert (wording.max_tokens, wording.reason) == (max_tokens, reason)


def test_the_mark_depends_on_all_that_is_shown():
    marks = {
        asked(shown=shown).messages[1].content.rsplit(" ", 2)[1]
        for shown in (SHOWN, SHOWN[::-1], (SHOWN[0], Response(id="y", text="two.")))
    }
    assert len(marks) == 3
