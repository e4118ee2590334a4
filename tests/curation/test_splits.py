from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.core.types import Case, Message, Prompt
from steelyard.curation.data_checks import find_duplicates, labelled_pairs
from steelyard.curation.splits import group_related, root_text, split_cases
from strategies import case

PARTS = {"train": 0.7, "held_out": 0.1, "test": 0.2}


def many(number=200):
    return [
        case(
            id=f"p{index}", text=f"question {index}", category=("ab"[index % 2],), language=("zh", "en")[index % 4 // 2]
        )
        for index in range(number)
    ]


def test_every_stratum_has_its_share():
    cases = many()
    chosen = split_cases(cases, PARTS, seed=0)
    for category in "ab":
        for language in ("zh", "en"):
            here = Counter(
                part
                for one, part in zip(cases, chosen, strict=True)
                if one.prompt.category == (category,) and one.prompt.language == language
            )
            assert here == {"train": 35, "held_out": 5, "test": 10}


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("qrstuvwx")), min_size=2, max_size=24),
    st.integers(0, 5),
)
def test_what_belongs_together_is_never_divided(pairs, seed):
    cases = [case(id=name, text=root, language=str(index)) for index, (name, root) in enumerate(pairs)]
    chosen = split_cases(cases, PARTS, seed=seed)
    for one, part in zip(cases, chosen, strict=True):
        for other, its_part in zip(cases, chosen, strict=True):
            if one.prompt.id == other.prompt.id or root_text(one) == root_text(other):
                assert part == its_part


def test_the_order_of_cases_changes_nothing_and_the_seed_does():
    cases = many(60)
    chosen = dict(zip([one.prompt.id for one in cases], split_cases(cases, PARTS, seed=1), strict=True))
    backwards = split_cases(cases[::-1], PARTS, seed=1)
    assert dict(zip([one.prompt.id for one in cases[::-1]], backwards, strict=True)) == chosen
    assert split_cases(cases, PARTS, seed=2) != split_cases(cases, PARTS, seed=1)


@pytest.mark.parametrize(("text", "root"), [("  Ｈello\n World ", "hello world"), ("你好", "你好")])
def test_roots_differ_only_in_words(text, root):
    assert root_text(case(text=text)) == root


NEAR = (
    ("a", "Write a short poem about the autumn rain that falls on the old harbour of my home town"),
    ("b", "Write a short poem about the autumn rain that falls on the old harbour of my home town!"),
    ("c", "请写一首关于秋天的雨落在我家乡旧港口的短诗,要求押韵"),
    ("d", "请写一首关于秋天的雨落在我家乡旧港口的短诗,要求押韵。"),
    ("e", "What is the capital of France?"),
)


def test_near_duplicates_belong_together_only_if_asked():
    cases = [case(id=name, text=text) for name, text in NEAR]
    assert group_related(cases) == (((0,), (1,), (2,), (3,), (4,)), 0)
    assert group_related(cases, 0.7) == (((0, 1), (2, 3), (4,)), 2)


@pytest.mark.parametrize("seed", range(6))
def test_near_duplicates_are_never_divided(seed):
    cases = [case(id=name, text=text) for name, text in NEAR]
    chosen = split_cases(cases, {"train": 0.5, "test": 0.5}, seed=seed, related=group_related(cases, 0.7))
    assert chosen[0] == chosen[1]
    assert chosen[2] == chosen[3]


def conversation(name, *turns):
    """Return a case without responses; the turns are (role, text)."""
    messages = tuple(Message(role=role, content=text) for role, text in turns)
    return Case(prompt=Prompt(id=name, messages=messages), responses=())


def test_conversations_alike_after_a_short_first_turn_are_never_divided():
    rest = (
        ("assistant", "Maria has so many of them. She goes to the market in the old harbour and sells three."),
        ("user", "How many are left in her basket at the end of the day? Answer with the number alone."),
    )
    cases = [conversation(f"p{number}", ("user", f"{number}?"), *rest) for number in range(1000, 1040)]
    assert group_related(cases, 0.8) == ((tuple(range(40)),), 39)
    assert group_related(cases).num_near_duplicates == 0
    assert find_duplicates(cases, labelled_pairs(cases, None), 0.8).num_prompts_in_groups == 40


def test_a_shared_system_prompt_makes_no_near_duplicates():
    system = ("system", "You are the assistant of a shop. Answer politely and name the source of each fact. " * 3)
    questions = ("What is the capital of France?", "Sort a list in Python", "Write a poem about the rain")
    cases = [conversation(text, system, ("user", text)) for text in questions]
    assert group_related(cases, 0.8).num_near_duplicates == 0
    assert find_duplicates(cases, labelled_pairs(cases, None), 0.8).num_prompt_groups == 0


def test_one_question_under_two_system_prompts_stays_together_and_is_no_duplicate():
    roles = ("You are Sherlock Holmes.", "You are a pirate of the seven seas.")
    cases = [conversation(role, ("system", role), ("user", "Who are you?")) for role in roles]
    assert group_related(cases, 0.8).groups == ((0, 1),)
    assert find_duplicates(cases, labelled_pairs(cases, None), 0.8).num_prompt_groups == 0


def test_only_the_named_strata_have_their_share():
    # Sources and languages go together here, so that a half by source alone need not halve a category.
    cases = [
        case(id=f"p{index}", text=f"q{index}", source="st"[index % 2], category=(f"c{index}",)) for index in range(40)
    ]
    chosen = split_cases(cases, {"train": 0.75, "test": 0.25}, seed=0, strata=("source",))
    for source in "st":
        here = Counter(part for one, part in zip(cases, chosen, strict=True) if one.prompt.source == source)
        assert here == {"train": 15, "test": 5}
    assert Counter(split_cases(cases, {"train": 0.75, "test": 0.25}, seed=0, strata=())) == {"train": 30, "test": 10}
