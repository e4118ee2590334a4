"""A judge that repeats what it was told has given no verdict, in whatever style and language it was told."""

import json
import re
from itertools import product

import pytest

from each_value import each
from steelyard.core.comparison import Alternative, Comparison, Reply
from steelyard.core.plugins import build
from steelyard.core.types import Response
from steelyard.plugins.judges._texts import styles
from strategies import prompt

SHOWN = tuple(Response(id=name, text=f"text of {name}") for name in "wxyz")
FORMS = {
    "pairwise": ("brackets", "letter", "json", "output", "first_token"),
    "best": ("brackets", "letter", "json", "output", "first_token"),
    "ranking": ("brackets",),
    "rating": ("brackets", "letter", "json"),
}
NUMBERS = {"pairwise": (2,), "best": (2, 4), "ranking": (2, 3, 4), "rating": (1,)}
ASKED = [(kind, form, tongue) for kind, forms in FORMS.items() for form, tongue in product(forms, ("en", "zh"))]


def echoes(question):
    """Each message, paragraph, line and sentence, and the placeholders: all that a judge may repeat by itself."""
    whole = "\n\n".join(message.content for message in question.messages)
    texts = [whole, *(message.content for message in question.messages)]
    texts += [part for mark in ("\n\n", "\n", r"(?<=[.。])\s*") for part in re.split(mark, whole)]
    texts += re.findall(r"\[\[[^A-D\]]+\]\]|\[\[[^\]]*[>=][^\]]*\]\]|\{.*?\}", whole)
    return dict.fromkeys(text for text in texts if text.strip())


@each(("kind", "form", "tongue"), ASKED)
def test_an_echo_is_no_verdict(kind, form, tongue):
    item = prompt(category=("code",), reference="42", language="zh")
    told = {}
    for style, number in product(styles(), NUMBERS[kind]):
        for tie in [{"ties": False}, {"ties": True}] if kind == "pairwise" else [{}]:
            judge = build("judges", kind, {"style": style, "form": form, "prompt_language": tongue} | tie)
            comparison = Comparison(prompt=item, responses=SHOWN[:number], mark="0123abcd")
            told |= dict.fromkeys(echoes(judge.questions(comparison)[0]), (judge, comparison))
    assert len(told) > 20
    for text, (judge, comparison) in told.items():
        first = (Alternative(token=text.split()[0][:4], logprob=0.0),)
        reply = Reply(request="r", text=text, first_token=first)
        answer = judge.read(comparison, [reply] * judge.num_questions(comparison))
        assert {one.verdict for one in answer.verdicts} <= {"none"}, text
        assert [one.value for one in answer.ratings] == [None] * len(answer.ratings), text


@pytest.mark.parametrize("reason", [True, False])
@pytest.mark.parametrize("tongue", ["en", "zh"])
@pytest.mark.parametrize(("kind", "key"), [("pairwise", "verdict"), ("rating", "rating")])
def test_the_object_that_is_asked_for_is_shown_with_a_place_for_reasons_where_they_are_wanted(
    kind, key, tongue, reason
):
    judge = build("judges", kind, {"form": "json", "reason": reason, "prompt_language": tongue})
    told = judge.questions(Comparison(prompt=prompt(), responses=SHOWN[:2], mark="0123abcd"))[0].messages[0].content
    (shown,) = re.findall(r"\{.*?\}", told)
    keys = (["reason"] if reason else []) + [key]
    assert list(json.loads(shown.replace(f'"{key}": …', f'"{key}": "…"'))) == keys
