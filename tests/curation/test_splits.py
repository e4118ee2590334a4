from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
