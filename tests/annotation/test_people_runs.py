"""Cases that people reviewed, and the prompts that they decide on."""

import pytest

from steelyard.annotation.people_runs import refusals_of, reviewed_prompt
from steelyard.core.types import Case, Judgment, Message, Prompt, Rating, Response


def translated(name, meta, response="translation", **evidence):
    return Case(
        prompt=Prompt(id=name, messages=(Message(role="user", content="Hello."),), meta=meta),
        responses=(Response(id=response, text="你好。"),),
        **evidence,
    )


@pytest.mark.parametrize(
    ("case", "prompt"),
    [
        (translated("p 7 zh prompt", {"answer_language": "zh", "item": "p 7"}), "p 7"),
        # Files of an earlier version, without the item.
        (translated("p 7 zh prompt", {"answer_language": "zh"}), "p 7"),
        (translated("p zh 7 zh r1", {"answer_language": "zh"}), "p zh 7"),
        (translated("问题 7 zh prompt", {"answer_language": "zh"}), "问题 7"),
        # Nothing of a translator: the prompt itself.
        (translated("p 7 zh prompt", {"answer_language": "zh"}, response="r1"), "p 7 zh prompt"),
        (translated("p 7 zh prompt", {"answer_language": "ar"}), "p 7 zh prompt"),
        (translated("p 7 zh prompt", {"answer_language": 7, "item": ["p"]}), "p 7 zh prompt"),
        (translated("p 7", None), "p 7"),
    ],
)
def test_the_prompt_of_a_reviewed_case_is_that_of_its_item(case, prompt):
    assert reviewed_prompt(case) == prompt


def test_people_refuse_by_suitability_and_by_points():
    suited = Judgment(left="a", right="b", verdict="left", judge="P", kind="human", meta={"entries": {"suited": "no"}})
    points = Rating(response="translation", rater="P", kind="human", dimension="translation quality", value=40.0)
    case = translated("p", None, judgments=(suited,), ratings=(points,))
    assert refusals_of(case, least_quality=50) == ("not suited to the language", "low translation quality")
    assert refusals_of(case, least_quality=40) == ("not suited to the language",)
