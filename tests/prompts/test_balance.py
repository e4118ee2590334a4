from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.errors import ConfigError
from steelyard.core.types import Prompt
from steelyard.prompts.balance import WantedShares, balanced, check_shares, group_shares


def prompts_of(numbers):
    return [
        Prompt(id=f"{category}-{language}-{number}", messages=(), category=(category,), language=language)
        for (category, language), size in numbers.items()
        for number in range(size)
    ]


def test_the_group_that_is_short_of_its_share_bounds_the_total():
    prompts = prompts_of({("a", "en"): 90, ("b", "en"): 10})
    chosen = balanced(prompts, WantedShares({"a": 0.5, "b": 0.5}, {}), seed=0)
    # 10 of b allow 10 or 11 of a: 21 prompts have shares of 10.5, rounded.
    assert Counter(prompts[place].category[0] for place in chosen) == {"a": 11, "b": 10}


def test_groups_without_a_share_are_left_out():
    prompts = prompts_of({("a", "en"): 4, ("b", "en"): 4, ("c", "en"): 4})
    chosen = balanced(prompts, WantedShares({"a": 0.5, "b": 0.5}, {}), seed=0)
    assert {prompts[place].category[0] for place in chosen} == {"a", "b"}
    assert len(chosen) == 8


def test_the_choice_depends_on_the_seed_and_not_on_the_order():
    prompts = prompts_of({("a", "en"): 50, ("b", "zh"): 10})
    shares = WantedShares({}, {"en": 0.5, "zh": 0.5})
    names = {prompts[place].id for place in balanced(prompts, shares, seed=1)}
    reverse = prompts[::-1]
    assert {reverse[place].id for place in balanced(reverse, shares, seed=1)} == names
    assert {prompts[place].id for place in balanced(prompts, shares, seed=2)} != names


@given(
    numbers=st.fixed_dictionaries({cell: st.integers(0, 4) for cell in product("ab", ("en", "zh"))}),
    first=st.sampled_from([0.25, 0.5, 0.75]),
    second=st.sampled_from([0.25, 0.5, 0.75]),
)
def test_no_larger_total_meets_both_kinds_of_shares(numbers, first, second):
    prompts = prompts_of(numbers)
    shares = WantedShares({"a": first, "b": 1 - first}, {"en": second, "zh": 1 - second})
    categories, languages = Counter(p.category[0] for p in prompts), Counter(p.language for p in prompts)
    if len(categories) < 2 or len(languages) < 2:
        with pytest.raises(ConfigError):
            balanced(prompts, shares, seed=0)
        return
    chosen = [prompts[place] for place in balanced(prompts, shares, seed=0)]
    after = {cell: sum((p.category[0], p.language) == cell for p in chosen) for cell in numbers}
    fits = [
        sum(table)
        for table in product(*(range(size + 1) for size in numbers.values()))
        if meets(dict(zip(numbers, table, strict=True)), first, second)
    ]
    assert meets(after, first, second)
    assert len(chosen) == max(fits)


def test_totals_that_fail_by_rounding_do_not_hide_larger_ones():
    prompts = prompts_of({("a", "en"): 0, ("a", "zh"): 4, ("b", "en"): 4, ("b", "zh"): 0})
    shares = WantedShares({"a": 0.5, "b": 0.5}, {"en": 0.5, "zh": 0.5})
    # Five and seven fail: one prompt more of a category than of the language that all of them have.
    assert len(balanced(prompts, shares, seed=0)) == 8


def meets(table, first, second):
    """Whether both shares are met to the nearest prompt; a half is rounded either way."""
    total = sum(table.values())
    a = sum(number for (category, _), number in table.items() if category == "a")
    en = sum(number for (_, language), number in table.items() if language == "en")
    # Of two equal remainders the first group takes the prompt.
    return a == int(first * total + 0.5) and en == int(second * total + 0.5)


@pytest.mark.parametrize("shares", [{"a": 0.5, "b": 0.6}, {"a": 1.5, "b": -0.5}, {"a": 1.0, "b": 0.0}])
def test_shares_are_above_0_and_sum_to_1(shares):
    with pytest.raises(ConfigError, match="share"):
        check_shares(WantedShares(shares, {}))


def test_a_share_without_prompts_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"no prompt is left of language 'fr'"):
        balanced(prompts_of({("a", "en"): 3}), WantedShares({}, {"en": 0.5, "fr": 0.5}), seed=0)


def test_groups_are_listed_before_and_after():
    prompts = prompts_of({("a", "en"): 3, ("b", "zh"): 1})
    rows = group_shares(prompts, prompts[2:], WantedShares({"a": 0.5, "b": 0.5}, {}))
    assert [(row.kind, row.name, row.wanted, row.num_before, row.num_after) for row in rows] == [
        ("category", "a", 0.5, 3, 1),
        ("category", "b", 0.5, 1, 1),
        ("language", "en", None, 3, 1),
        ("language", "zh", None, 1, 1),
    ]
