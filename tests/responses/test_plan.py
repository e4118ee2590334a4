from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each_value import each
from steelyard.core.errors import ConfigError
from steelyard.core.types import Message, Prompt
from steelyard.responses.plan import (
    later_turns,
    opening_messages,
    parse_plan,
    planned_samples,
    request_seed,
)
from strategies import prompt

SAME = "Answer in the language of the question."


def model(name, **settings):
    return {"name": name, "chat": {"kind": "recorded", "path": "r"}, **settings}


def plan_of(*models, **settings):
    return parse_plan({"models": list(models), **settings}, where="plan.toml")


def drawn(plan, number, seed=0):
    return [planned_samples(plan, prompt(f"p{place}", language="zh"), seed=seed) for place in range(number)]


def test_without_a_number_every_model_answers():
    plan = plan_of(model("a"), model("b", num_responses=2))
    assert planned_samples(plan, prompt(), seed=3) == (("a", 0), ("b", 0), ("b", 1))


@given(st.integers(1, 6), st.integers(0, 5))
def test_a_number_draws_that_many_different_models(number, seed):
    plan = plan_of(*map(model, "abcdef"), num_responses=number)
    for samples in drawn(plan, 20, seed):
        assert len(samples) == number == len({sample.model for sample in samples})


def test_models_and_pairs_of_models_meet_about_equally_often():
    plan = plan_of(*map(model, "abcdefghijkl"), num_responses=5)
    names = [[sample.model for sample in samples] for samples in drawn(plan, 6600)]
    alone = Counter(name for of_prompt in names for name in of_prompt)
    together = Counter(pair for of_prompt in names for pair in combinations(sorted(of_prompt), 2))
    # 6,600 * 5/12 = 2,750 with a standard deviation of 40; 6,600 * (5*4)/(12*11) = 1,000 with one of 29.
    assert len(alone) == 12
    assert all(abs(number - 2750) < 4.5 * 40 for number in alone.values())
    assert len(together) == 66
    assert all(abs(number - 1000) < 4.5 * 29 for number in together.values())


def test_quotas_fill_each_group():
    strong, weak = [model(name, group="strong") for name in "abc"], [model(name, group="weak") for name in "xyz"]
    plan = plan_of(*strong, *weak, quotas={"strong": 2, "weak": 1})
    for samples in drawn(plan, 50):
        assert [sample.model in "abc" for sample in samples] == [True, True, False]
    assert {sample.model for samples in drawn(plan, 50) for sample in samples} == set("abcxyz")


def test_two_of_one_model_only_where_the_plan_says_so():
    plan = plan_of(model("a", num_responses=2), model("b"), model("c"), num_responses=2)
    counts = [Counter(sample.model for sample in samples) for samples in drawn(plan, 300)]
    assert {number["a"] for number in counts} == {0, 1, 2}
    assert {number["b"] for number in counts} == {0, 1}
    # Of two samples of one model the first is taken, so that a later draw of both adds only the second.
    assert all(sample.repeat == 0 for samples in drawn(plan, 300) for sample in samples if len({samples}) == 2)


@given(st.permutations(["a", "b", "c", "d"]))
def test_a_plan_does_not_depend_on_the_order_of_its_models(order):
    plan, other = plan_of(*map(model, "abcd"), num_responses=2), plan_of(*map(model, order), num_responses=2)
    for number in range(10):
        samples = planned_samples(plan, prompt(f"p{number}"), seed=1)
        assert {*samples} == {*planned_samples(other, prompt(f"p{number}"), seed=1)}


def test_a_further_model_displaces_at_most_one_sample_of_a_prompt():
    plan, longer = plan_of(*map(model, "abcd"), num_responses=2), plan_of(*map(model, "abcde"), num_responses=2)
    for before, after in zip(drawn(plan, 200), drawn(longer, 200), strict=True):
        assert len({*before} - {*after}) == sum(sample.model == "e" for sample in after) <= 1
    assert any("e" in {sample.model for sample in samples} for samples in drawn(longer, 200))


def test_draws_and_seeds_depend_on_the_key_and_the_seed():
    plan = plan_of(*map(model, "abcdef"), num_responses=3)
    one, two = prompt("p", language="zh"), prompt("p", language="en")
    assert drawn(plan, 30, seed=0) == drawn(plan, 30, seed=0) != drawn(plan, 30, seed=1)
    assert any(planned_samples(plan, one, seed=seed) != planned_samples(plan, two, seed=seed) for seed in range(10))
    sample = planned_samples(plan, one, seed=0)[0]
    seeds = {
        request_seed(plan, sample._replace(repeat=repeat), key, seed=seed, turn=turn)
        for repeat in (0, 1) for key in (one, two) for seed in (0, 1) for turn in (0, 1)
    }  # fmt: skip
    assert len(seeds) == 16
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_a_model_may_have_a_seed_of_its_own_or_none():
    plan = plan_of(model("a", seed=7), model("b", send_seed=False))
    first, second = planned_samples(plan, prompt(), seed=0)
    assert request_seed(plan, first, prompt(), seed=0) == request_seed(plan, first, prompt(), seed=1) is not None
    assert request_seed(plan, second, prompt(), seed=0) is None


def test_models_answer_their_languages_and_categories():
    plan = plan_of(model("a", languages=["zh"]), model("b", categories=["Coding"]), model("c"))

    def names(**fields):
        return [sample.model for sample in planned_samples(plan, prompt(**fields), seed=0)]

    assert names() == names(language="zhuang") == names(language="en") == ["c"]
    assert names(language="zh") == names(language="zh-Hans") == ["a", "c"]
    assert names(language="zh-TW", category=("Reasoning", "Coding")) == ["a", "b", "c"]


def test_fewer_models_than_wanted_answer_what_they_can():
    plan = plan_of(model("a", languages=["zh"]), model("b"), num_responses=2)
    assert len(planned_samples(plan, prompt(language="en"), seed=0)) == 1


@pytest.mark.parametrize(
    ("settings", "own_system", "expected"),
    [
        ({}, None, None),
        ({"system": "Be brief."}, None, "Be brief."),
        ({"system": "Be brief."}, "You are a poet.", "You are a poet."),
        ({"answer_language": "Chinese"}, None, "Answer in Chinese."),
        ({"answer_language": "prompt", "system": "Be brief."}, None, "Be brief.\n\n" + SAME),
        ({"answer_language": "Czech"}, "You are a poet.", "You are a poet.\n\nAnswer in Czech."),
    ],
)
def test_the_system_prompt(settings, own_system, expected):
    turns = [("user", "a"), ("assistant", "b"), ("user", "c")]
    messages = [("system", own_system), *turns] if own_system else turns
    asked = Prompt(id="p", messages=tuple(Message(role=role, content=text) for role, text in messages))
    opening = opening_messages(plan_of(model("m", **settings)).models[0], asked)
    assert [(message.role, message.content) for message in opening if message.role != "system"] == turns
    systems = [message.content for message in opening if message.role == "system"]
    assert systems == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (None, ()), ({"turns": ["What is it?", "And then?"]}, ("And then?",)), ({"turns": ["Else?", "And?"]}, ()),
        ({"turns": "What is it?"}, ()), ({"turns": ["What is it?"]}, ()), ({"turns": []}, ()),
        ({"turns": ["What is it?", 3]}, ()), ({"turns": ["What is it?", " "]}, ()),
    ],
)  # fmt: skip
def test_later_turns_are_those_of_the_meta(meta, expected):
    assert later_turns(prompt(meta=meta)) == expected


def test_names_come_from_the_chat():
    chats = [
        {"model": "org/m"},
        {"kind": "local", "path": "models/one/"},
        {"kind": "recorded", "path": "r", "name": "n"},
        {"kind": "recorded", "path": "x/y.jsonl"},
    ]
    plan = plan_of(*({"chat": chat} for chat in chats))
    assert [each.name for each in plan.models] == ["org/m", "one", "n", "recorded"]


A, B, WEAK = model("a"), model("b"), model("a", group="weak")
HOSTILE = {
    "no models": ({}, "a plan without models"),
    "models of another type": ({"models": "a"}, "a plan without models"),
    "empty": ({"models": []}, "a plan without models"),
    "no chat": ({"models": [{"name": "a"}]}, "number 1: a model without a chat"),
    "misspelt": ({"models": [A, B | {"temprature": 1}]}, "(?s)number 2: unknown .*mean 'temperature'"),
    "misspelt above": ({"models": [A], "num_response": 1}, "(?s)unknown setting 'num_response'.*'num_responses'"),
    "two of one name": ({"models": [A, A]}, "(?s)two models of one name: 'a'.*num_responses"),
    "zero": ({"models": [A | {"num_responses": 0}]}, "num_responses is 0"),
    "negative": ({"models": [A], "num_responses": -2}, "num_responses is -2"),
    "a fraction": ({"models": [A], "num_responses": 1.5}, "num_responses is 1.5"),
    "more than there are": ({"models": [A, B], "num_responses": 3}, "num_responses is 3, and the models write 2"),
    "too many": ({"models": [A | {"num_responses": 10**8}]}, "(?s)write 100,000,000 responses.*up to 10,000"),
    "a quota too many": ({"models": [A | {"group": "strong"}], "quotas": {"strong": 2}}, "quota of strong models is 2"),
    "a group nobody has": ({"models": [A | {"group": "strong"}], "quotas": {"weak": 1}}, "they write 0 together"),
    "no group": ({"models": [A], "quotas": {"strong": 1}}, "without a group: a"),
    "an unknown group": ({"models": [A | {"group": "medium"}]}, "group is 'medium'"),
    "sums that differ": ({"models": [WEAK, WEAK | B], "quotas": {"weak": 1}, "num_responses": 2}, "the quotas are 1"),
    "cold": ({"models": [A | {"temperature": -1}]}, "temperature is -1"),
    "hot": ({"models": [A], "temperature": 50}, "temperature is 50"),
    "no nucleus": ({"models": [A | {"top_p": 0}]}, "top_p is 0"),
    "not a number": ({"models": [A], "temperature": float("nan")}, "temperature is nan"),
    "repeats of one answer": ({"models": [A | {"num_responses": 2, "temperature": 0}]}, "at temperature 0 are one"),
    "a control character": ({"models": [A | {"name": "a\x1b[2J"}]}, "printable"),
}  # fmt: skip


@each(("content", "message"), HOSTILE.values())
def test_wrong_plans_are_refused(content, message):
    with pytest.raises(ConfigError, match=message):
        parse_plan(content, where="plan.toml")
