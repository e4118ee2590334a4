"""Simulated answers follow the item: its quality, its damage, its reference, and what is usual in its kind of tasks."""

from statistics import fmean

import numpy as np
import pytest
from msgspec.structs import replace

from steelyard.annotation.kinds import native_check, translation_quality
from steelyard.annotation.simulated_annotators import HUMAN, Noise
from steelyard.annotation.simulated_entries import SimulatedLook
from steelyard.core.types import Case, Message, Prompt, Response

NUM_PROMPTS = 600
TEXT = "Der Fluss fliesst durch die Stadt, und die Boote halten dort an jedem Tag."


def translation(number, language="de", *, findings=()):
    prompt = Prompt(
        id=f"p{number} {language} user 1", messages=(Message(role="user", content="x"),), meta={"item": f"p{number}"}
    )
    return Case(prompt=prompt, responses=(Response(id="t", text=TEXT),), meta={"findings": list(findings)})


def check(number, language="de"):
    prompt = Prompt(id=f"p{number}", messages=(Message(role="user", content="x"),), language=language)
    responses = (Response(id="a", text="one"), Response(id="b", text="two"))
    return Case(prompt=prompt, responses=responses, ranking=(("b",), ("a",)))


def answer(kind, case, qualities, *, rng, noise=HUMAN, care=1.0):
    look = SimulatedLook(
        texts={response.id: response.text for response in case.responses},
        perceived=np.array(qualities),
        noise=noise,
        item=(case.prompt.id, case.prompt.language or ""),
        care=care,
        rng=rng,
        seed=0,
    )
    return kind.simulate(look, {})


def test_translations_are_mostly_good_and_hard_items_are_hard_in_every_language():
    kind = translation_quality.KIND
    qualities = np.array(
        [
            [kind.latent_quality(translation(number, language), "t", seed=1) for language in ("de", "zh", "ar")]
            for number in range(NUM_PROMPTS)
        ]
    )
    assert ((qualities >= 0) & (qualities <= 1)).all()
    is_low = qualities < 0.6
    # One in 50 is expected to be hard: 12 of 600, with three standard deviations of 3.4.
    assert 2 <= is_low.any(axis=1).sum() <= 22
    assert (is_low.any(axis=1) == is_low.all(axis=1)).all(), "an item is low in one language alone"
    assert np.median(qualities) > 0.8


def test_damage_lowers_the_quality_that_is_perceived():
    kind = translation_quality.KIND
    whole, damaged = (
        fmean(kind.latent_quality(translation(number, findings=found), "t", seed=1) for number in range(50))
        for found in ((), ({"kind": "number"},))
    )
    assert damaged < whole - 0.2


def test_better_texts_have_fewer_marks_and_the_best_none():
    kind, rng = translation_quality.KIND, np.random.default_rng(0)
    numbers = [
        fmean(len(answer(kind, translation(number), [quality], rng=rng).spans.get("t", ())) for number in range(200))
        for quality in (0.05, 0.5, 0.95)
    ]
    assert numbers[0] > numbers[1] > numbers[2] == 0


def test_two_people_who_perceive_the_same_mark_the_same_but_for_errors():
    kind, rng = translation_quality.KIND, np.random.default_rng(0)
    careful = [answer(kind, translation(3), [0.1], rng=rng, care=1e9).spans["t"] for _ in range(2)]
    assert careful[0] == careful[1]
    assert list(careful[0]) == sorted(careful[0])


@pytest.mark.parametrize("language", ["de", "zh"])
def test_native_speakers_mostly_agree_with_the_reference(language):
    kind = native_check.KIND
    differences = [
        kind.latent_quality(check(number, language), "b", seed=0)
        - kind.latent_quality(check(number, language), "a", seed=0)
        for number in range(NUM_PROMPTS)
    ]
    # A normal difference of mean 0.35 and deviation 0.2 is positive in 96%: three standard errors are 2.4 points.
    assert 0.93 <= fmean(difference > 0 for difference in differences) <= 0.99


def test_a_response_outside_the_reference_has_a_quality_too():
    case = replace(check(1), ranking=None)
    assert 0 <= native_check.KIND.latent_quality(case, "a", seed=0) <= 1


def test_few_prompts_are_unsuited_and_these_in_all_languages():
    kind, exact = native_check.KIND, Noise(spread=0.0, tie_band=0.0)
    rng = np.random.default_rng(0)
    entries = [
        [
            answer(kind, check(number, language), [0.2, 0.8], rng=rng, noise=exact, care=1e9).entries["suited"]
            for language in ("de", "zh")
        ]
        for number in range(NUM_PROMPTS)
    ]
    assert all(german == chinese for german, chinese in entries)
    # 12 of 600 are expected, with three standard deviations of 3.4.
    assert 2 <= sum(german == "no" for german, _ in entries) <= 22


def test_an_error_seldom_calls_a_suited_prompt_unsuited():
    kind, rng = native_check.KIND, np.random.default_rng(0)
    suited = next(
        number
        for number in range(9)
        if answer(kind, check(number), [0, 1], rng=rng, care=1e9).entries["suited"] == "yes"
    )
    wrong = sum(answer(kind, check(suited), [0, 1], rng=rng).entries["suited"] == "no" for _ in range(3000))
    # An error in 6%, and 2% of these: 3.6 of 3,000, with three standard deviations of 1.9.
    assert wrong <= 10
