import re

import pytest

from steelyard.core.comparison import Comparison, Reply
from steelyard.core.plugins import build
from steelyard.core.types import Response
from steelyard.plugins.judges._prompt import JudgeConfig, question, wording_of
from steelyard.plugins.judges.tasks import in_orders
from strategies import prompt

SHOWN = (Response(id="x", text="one"), Response(id="y", text="two"))


def asked(task="pair", labels=("A", "B"), shown=SHOWN, **settings):
    own = {name: settings.pop(name) for name in ("language", "category", "reference", "meta") if name in settings}
    return question(task, prompt(**own), shown, wording_of(JudgeConfig(**settings)), labels=labels, mark="0123abcd")


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


def test_a_request_begins_with_what_other_requests_share():
    parts = [turn.content for turn in asked(reference="42", category=["code"]).messages]
    whole = "\n\n".join(parts)
    order = [
        "Compare two answers",
        "Weigh these points",
        "[[A]]",
        "0123abcd",
        "What is it?",
        "\n42\n",
        "\none\n",
        "\ntwo\n",
    ]
    places = [whole.index(text) for text in order]
    assert places == sorted(places)
    # The instructions name no mark, and are equal for two prompts with the same criteria.
    assert "0123abcd" not in parts[0]
    assert parts[0] == asked(reference="another", category=["code"], shown=SHOWN[::-1]).messages[0].content


def test_the_styles_of_the_two_papers_differ_from_the_defaults_as_the_papers_do():
    shown = (Response(id="a", text="eins"), Response(id="b", text="zwei"))
    asked = prompt("p", "¿Qué?", language="spa_Latn", category=("code",), reference="2")
    comparison = Comparison(prompt=asked, responses=shown, mark="0123abcd")
    cheems, mt_bench, plain = (
        build("judges", "pairwise", {"style": style} if style else {}) for style in ("cheems", "mt_bench", None)
    )
    assert [judge.num_questions(comparison) for judge in (cheems, mt_bench, plain)] == [1, 1, 2]
    (question,) = cheems.questions(comparison)
    text = "\n".join(message.content for message in question.messages)
    assert "Write only one letter" in text
    assert "Give no reasons." in text
    assert "C if there is no clear difference" in text
    assert "edge cases" in text  # criteria of the category
    assert "a model answer, the outline of a solution, or criteria" in text
    assert cheems.read(comparison, [Reply(request="r", text="C")]).verdicts[0].outcome == "tie"
    (question,) = mt_bench.questions(comparison)
    text = "\n".join(message.content for message in question.messages)
    assert "The request is written in Spanish." in text
    assert "Answers should be in Spanish." in text
    assert "First compare the answers" in text
    assert "[[A]] if answer A is better" in text
    for factor in ("helpfulness", "relevance", "accuracy", "depth", "creativity", "level of detail"):
        assert factor in text
    assert "edge cases" not in text
    assert "no clear difference" not in text
    assert mt_bench.read(comparison, [Reply(request="r", text="Fine.\n[[B]]")]).verdicts[0].outcome == "right"


def test_a_setting_goes_before_the_style():
    judge = build("judges", "pairwise", {"style": "cheems", "orders": "both", "ties": False, "criteria": False})
    protocol = judge.protocol()
    assert (protocol["orders"], protocol["ties"], protocol["criteria"], protocol["form"]) == (
        "both",
        False,
        False,
        "letter",
    )


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("style", ["rm_r1", "rrm", "deepseek_grm", "genrm", "prometheus", "selene", "mr3"])
def test_a_judge_that_repeats_its_instructions_gives_no_verdict(style, language):
    shown = (Response(id="a", text="eins"), Response(id="b", text="zwei"))
    comparison = Comparison(prompt=prompt("p", "Was?"), responses=shown, mark="0123abcd")
    judge = build("judges", "pairwise", {"style": style, "prompt_language": language, "orders": "one"})
    (question,) = judge.questions(comparison)
    for message in question.messages:
        for text in (message.content, message.content.splitlines()[-1]):
            assert judge.read(comparison, [Reply(request="r", text=text)]).verdicts[0].outcome == "unparsed"
