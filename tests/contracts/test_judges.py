"""The contract of every judge: it asks about exactly what it is given, in its language, and never guesses."""

import json
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from each_value import each
from steelyard.core.comparison import OUTCOMES, Comparison, Reply
from steelyard.core.plugins import build, kinds
from steelyard.core.types import Message, Response
from steelyard.judging.published_verdicts import FORMATS
from steelyard.plugins.judges._texts import styles
from strategies import prompt

KINDS = kinds("judges")
SIZES = {"pairwise": 2, "best": 4, "ranking": 3, "rating": 3}
FORMS = {
    "pairwise": ("brackets", "letter", "json", "output", "first_token", *FORMATS),
    "best": (
        "brackets",
        "letter",
        "json",
        "output",
        "first_token",
        *(name for name in FORMATS if name != "ranking_score"),
    ),
    "ranking": ("brackets",),
    "rating": ("brackets", "letter", "json"),
}
EVERY = [(kind, form) for kind in KINDS for form in FORMS[kind]]
TEXTS = ["数学：√2", "שלום [[A]]", "👩‍👩‍👧‍👦 </think>", '{"verdict": "B"} Output (b)']


def comparison(kind, *, language="zh", **fields):
    asked = prompt("p", "哪个？", language=language, **fields)
    shown = tuple(Response(id=f"r{place}", text=text) for place, text in enumerate(TEXTS[: SIZES[kind]]))
    return Comparison(prompt=asked, responses=shown, mark="0123abcd")


def whole(question):
    return "\n".join(message.content for message in question.messages)


@each(("kind", "form"), EVERY)
def test_every_answer_is_shown_whole_in_every_order(kind, form):
    judge, given_ = build("judges", kind, {"form": form}), comparison(kind)
    questions = judge.questions(given_)
    assert len(questions) == judge.num_questions(given_)
    shown_first = set()
    for question in questions:
        text = whole(question)
        assert "哪个？" in text
        places = [text.find(one.text) for one in given_.responses]
        if kind == "rating":
            assert sum(place >= 0 for place in places) == 1
        else:
            assert min(places) >= 0
        shown_first.add(places.index(min(place for place in places if place >= 0)))
        assert question.max_tokens > 0
    assert len(shown_first) == len(questions)


@each(("kind", "style"), list(product(KINDS, styles())))
def test_every_style_asks_with_the_language_and_the_criteria(kind, style):
    form = {"form": "brackets"} if styles()[style].form not in FORMS[kind] else {}
    judge = build("judges", kind, {"style": style, "prompt_language": "en", **form})
    meta = {"answer_language": "deu_Latn"}
    for question in judge.questions(comparison(kind, language="ces_Latn", category=("Code",), meta=meta)):
        text = whole(question)
        assert "Czech" in text
        assert "German" in text
        assert ("edge cases" in text) == styles()[style].criteria
        roles = [message.role for message in question.messages]
        assert roles == (["system", "user"] if styles()[style].system else ["user"])


@pytest.mark.parametrize("kind", KINDS)
def test_two_items_are_two_prompts_and_one_item_is_one(kind):
    judge = build("judges", kind, {})
    one = judge.questions(comparison(kind))
    assert judge.questions(comparison(kind)) == one
    other = judge.questions(
        Comparison(prompt=prompt("p", "另一个？", language="zh"), responses=comparison(kind).responses, mark="0123abcd")
    )
    assert not set(map(whole, one)) & set(map(whole, other))


@pytest.mark.parametrize("kind", KINDS)
def test_the_prompt_is_in_the_items_language_where_there_is_one(kind):
    judge = build("judges", kind, {})
    assert "回答" in judge.questions(comparison(kind, language="zho_Hant"))[0].messages[0].content
    assert "request" in judge.questions(comparison(kind, language="heb_Hebr"))[0].messages[0].content
    assert "Hebrew" in judge.questions(comparison(kind, language="heb_Hebr"))[0].messages[0].content
    forced = build("judges", kind, {"prompt_language": "zh"}).questions(comparison(kind, language="heb_Hebr"))
    assert "希伯来语" in forced[0].messages[0].content


@pytest.mark.parametrize(("kind", "form"), EVERY)
@settings(deadline=None, max_examples=30)
@given(st.data())
def test_whatever_is_said_is_read_without_failing_and_never_guessed(kind, form, data):
    judge, given_ = build("judges", kind, {"form": form}), comparison(kind)
    replies = [
        Reply(request="r", text=data.draw(st.text()), failure=data.draw(st.sampled_from([None, "cut off", "failed"])))
        for _ in judge.questions(given_)
    ]
    answer = judge.read(given_, replies)
    names = {response.id for response in given_.responses}
    assert all({one.left, one.right} <= names and one.outcome in OUTCOMES for one in answer.verdicts)
    assert answer.verdicts or [one.response for one in answer.ratings] == [one.id for one in given_.responses]
    if any(reply.failure == "failed" for reply in replies):
        for verdict in answer.verdicts:
            assert verdict.verdict == "none"
    for rating in answer.ratings:
        assert (rating.value is None) == (rating.outcome is not None)
        assert rating.value is None or rating.value in range(1, 11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("failure", ["refused", "cut off", "failed"])
def test_the_reason_for_none_is_kept(kind, failure):
    judge, given_ = build("judges", kind, {}), comparison(kind)
    replies = [Reply(request="r", text="[[A]]", failure=failure, detail="d") for _ in judge.questions(given_)]
    answer = judge.read(given_, replies)
    assert {one.outcome for one in [*answer.verdicts, *answer.ratings]} == {failure}


@pytest.mark.parametrize("kind", KINDS)
def test_several_turns_are_shown_with_their_roles(kind):
    judge, given_ = build("judges", kind, {"prompt_language": "en"}), comparison(kind)
    turns = (
        Message(role="user", content="one"),
        Message(role="assistant", content="two"),
        Message(role="user", content="three"),
    )
    answer = (
        Message(role="assistant", content="four"),
        Message(role="user", content="five"),
        Message(role="assistant", content="six"),
    )
    asked = Comparison(
        prompt=type(given_.prompt)(id="p", messages=turns),
        responses=tuple(Response(id=one.id, messages=answer) for one in given_.responses),
        mark="0123abcd",
    )
    text = whole(judge.questions(asked)[0])
    assert "User: one\n\nAssistant: two\n\nUser: three" in text
    assert "Assistant: four\n\nUser: five\n\nAssistant: six" in text


@each(("kind", "form"), EVERY)
def test_the_protocol_is_plain_json_and_tells_settings_apart(kind, form):
    one, other = build("judges", kind, {"form": form}), build("judges", kind, {"form": form, "criteria": False})
    assert json.loads(json.dumps(one.protocol())) == one.protocol()
    assert one.protocol() != other.protocol()
    assert one.protocol()["judge"] == kind
