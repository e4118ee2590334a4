import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.text import num_characters
from steelyard.core.types import Case, Response, Scores
from steelyard.curation.debiasing import (
    Balance,
    Config,
    balance_sides,
    count_sides,
    group_of,
    is_matched,
    priority,
    sides_by_author,
    sides_by_value,
    survey_pairs,
)
from steelyard.ranking.pairs import IndexedPair
from strategies import case
from supervision_files import judged


@given(
    st.lists(
        st.tuples(st.sampled_from([-1, 0, 1]), st.integers(0, 3), st.integers(0, 5) | st.integers(0, 2**64 - 1)),
        max_size=60,
    )
)
def test_each_group_keeps_its_smaller_side_and_as_many_of_the_larger(rows):
    side, group, priorities = (
        np.array([row[place] for row in rows], kind) for place, kind in ((0, int), (1, int), (2, np.uint64))
    )
    kept = balance_sides(side, group, priorities)
    assert kept[side == 0].all()
    for number in range(4):
        here = group == number
        more, less = here & (side == 1), here & (side == -1)
        assert (more & kept).sum() == (less & kept).sum() == min(more.sum(), less.sum())
        for own in (more, less):  # nobody stays whose number is above that of one who goes
            stays, goes = priorities[own & kept], priorities[own & ~kept]
            assert not len(stays) or not len(goes) or stays.max() <= goes.min()


def test_the_draw_is_even_and_the_seed_changes_it():
    one = case(responses="ab")
    cases = [msgspec.structs.replace(one, prompt=msgspec.structs.replace(one.prompt, id=f"p{n}")) for n in range(4000)]
    side = np.array([1, 1, 1, -1] * 1000)
    kept = {
        seed: balance_sides(
            side,
            np.zeros(4000, int),
            np.array([priority(own, IndexedPair(0, 1), seed=seed) for own in cases], np.uint64),
        )
        for seed in (0, 1)
    }
    assert kept[0].sum() == kept[1].sum() == 2000
    assert (kept[0] != kept[1]).any()
    thirds = [kept[0][place::4].sum() for place in range(3)]  # 1000 of 3000: each place a third, give or take
    assert all(abs(third - 1000 / 3) < 4 * 15 for third in thirds)


def test_counts_before_and_after_by_hand():
    side, group = np.array([1, 1, -1, 0, 1, -1]), np.array([0, 0, 0, 0, 1, 1])
    assert count_sides(side, group, 3) == (
        Balance(2, 1, 1, 2 / 3),
        Balance(1, 1, 0, 0.5),
        Balance(0, 0, 0, None),
    )
    assert not len(balance_sides(np.array([], int), np.array([], int), np.array([], np.uint64)))


def test_sides_by_a_number_are_the_signs_of_differences():
    one = case(responses="abc", language="zh", category=("math", "algebra"))
    one = msgspec.structs.replace(
        one,
        responses=tuple(Response(id=name, text=text) for name, text in zip("abc", ("好", "好好", "👍👍"), strict=True)),
    )
    pairs = (IndexedPair(0, 1), IndexedPair(1, 0), IndexedPair(1, 2))
    lengths = [1, 2, 2]
    found = sides_by_value(one, pairs, lengths, "both")
    assert [own.side for own in found] == [-1, 1, 0]
    assert {own.group for own in found} == {("math", "zh")}


@pytest.mark.parametrize(
    ("within", "group"),
    [("overall", ()), ("category", ("uncategorised",)), ("language", ("en",)), ("both", ("uncategorised", "en"))],
)
def test_groups_name_what_is_not_given(within, group):
    assert group_of(case(language="en"), within) == group
    assert group_of(case(), "language") == ("unspecified",)


def test_authors_are_balanced_two_by_two():
    one = case(responses="abcd")
    authors = ("llama", "gpt", "llama", None)
    one = msgspec.structs.replace(
        one,
        responses=tuple(
            msgspec.structs.replace(own, author=author) for own, author in zip(one.responses, authors, strict=True)
        ),
    )
    found = sides_by_author(
        one, (IndexedPair(0, 1), IndexedPair(1, 2), IndexedPair(0, 2), IndexedPair(3, 0)), "overall"
    )
    assert [own.side for own in found] == [1, -1, 0, 0]
    assert [own.group for own in found] == [("gpt", "llama"), ("gpt", "llama"), (), ()]


def test_matched_lengths_differ_by_a_share_of_the_longer():
    pair = IndexedPair(0, 1)
    assert is_matched(pair, (90, 100), 0.1)
    assert is_matched(pair, (100, 90), 0.1)
    assert not is_matched(pair, (89, 100), 0.1)
    assert is_matched(pair, (0, 0), 0.0)
    assert not is_matched(pair, (0, 1), 0.9)


def test_every_pair_is_measured_in_order():
    first = Case(
        prompt=judged("p").prompt, responses=judged("p").responses, ranking=(("c",), ("a", "b"))
    )  # fmt: skip
    second = case("q", "ab", ranking=(("a",), ("b",)), language="en")
    lines = Scores(prompt="p", language="zh", scores={"a": 1.0, "b": None, "c": 4.0})
    found = survey_pairs([(first, lines), (case("n"), None), (second, None)], Config(within="language"), num_characters)
    # Lengths are 4, 2, 1 in p: c beats a and b, both longer; the answers of q are equally long.
    assert found.side.tolist() == [-1, -1, 0]
    assert found.prompt.tolist() == [0, 0, 1]
    assert found.groups == (("zh",), ("en",))
    assert found.pairs_of_case.tolist() == [2, 0, 1]
    assert found.is_longer.tolist() == [False, False, False]
    assert found.is_matched.tolist() == [False, False, True]
    np.testing.assert_array_equal(found.margin, [3.0, np.nan, np.nan])
    assert len(set(found.priority.tolist())) == 3


def test_spellings_of_a_group_are_balanced_together_and_named_by_the_most_frequent():
    spelled = [("zh", "Code"), ("zh-CN", "code"), ("zho_Hans", "Code"), ("zh", "Code"), ("zh-TW", "code")]
    cases = [
        msgspec.structs.replace(
            judged(f"p{number}", llm=()),
            prompt=case(f"p{number}", language=language, category=(category,)).prompt,
            ranking=(("a",), ("b",)),
        )
        for number, (language, category) in enumerate(spelled)
    ]
    survey = survey_pairs([(one, None) for one in cases], Config(within="both"), num_characters)
    assert survey.groups == (("Code", "zh"), ("code", "zh-TW"))
    assert survey.group.tolist() == [0, 0, 0, 0, 1]
    authors = Config(by="author", within="category")
    written = [
        msgspec.structs.replace(
            one,
            responses=tuple(msgspec.structs.replace(each, author=each.id.upper()) for each in one.responses),
        )
        for one in cases
    ]
    assert survey_pairs([(one, None) for one in written], authors, num_characters).groups == (("Code", "A", "B"),)


def test_repeats_of_a_prompt_under_new_ids_are_one_prompt():
    texts = ("Wie heißt sie?", "wie  heißt sie?\u200b", "Anders")
    cases = [case(f"p{number}", "ab", text=text, ranking=(("a",), ("b",))) for number, text in enumerate(texts)]
    survey = survey_pairs([(one, None) for one in cases], Config(), num_characters)
    assert survey.prompt.tolist() == [0, 0, 1]
