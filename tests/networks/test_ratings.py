"""Ratings as targets: their mean over raters, ranges, dimensions, and input that has nothing to learn from."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.types import Rating
from steelyard.networks.conversation import Rendering
from steelyard.networks.ratings import (
    check_ratings,
    rated_responses,
    rating_scale,
    scale_sentence,
    target_of,
    targets_of,
)
from steelyard.networks.settings import TargetScale
from steelyard.training.config import Config, check_settings
from steelyard.training.examples import UNRATED, EvidenceChoice, make_examples
from strategies import case

STARS = (1.0, 5.0)


def rating(response, value, *, rater="x", dimension="stars", scale=STARS, kind="human"):
    return Rating(response=response, rater=rater, kind=kind, dimension=dimension, value=value, range=scale)


def rated(*ratings, id="p", responses="abc"):
    return case(id, responses, ranking=None, ratings=ratings)


def scale_of(*cases, dimensions=None, link="identity", center="data"):
    return rating_scale(cases, dimensions, link, center=center, where="c.jsonl")


def test_a_response_has_the_mean_of_its_raters_and_their_number_as_weight():
    one = rated(
        rating("a", 5, rater="x"),
        rating("a", 2, rater="y"),
        rating("b", 1),
        rating("b", 3),  # the same rater again: one rater, whose mean is 2
    )
    assert list(rated_responses(one, {"stars": 1.0}, {"stars": STARS})) == [(0, 3.5, 2), (1, 2.0, 1)]


def test_targets_are_standardised_with_the_weights_of_the_raters():
    # Values 5 (two raters) and 2 (one): mean 4, variance (2 * 1 + 1 * 4) / 3 = 2.
    one = rated(rating("a", 5, rater="x"), rating("a", 5, rater="y"), rating("b", 2))
    scale = scale_of(one)
    assert (scale.mean, scale.num_ratings, scale.lowest, scale.highest) == (4, 2, 1, 5)
    assert scale.spread == pytest.approx(math.sqrt(2))
    first, second = targets_of(one, scale)
    assert first == (0, pytest.approx(1 / math.sqrt(2)), 2)
    assert second == (1, pytest.approx(-2 / math.sqrt(2)), 1)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.floats(1, 5), st.integers(1, 3)), min_size=2, max_size=8))
def test_standardised_targets_have_mean_0_and_variance_1(rows):
    names = "abcdefgh"[: len(rows)]
    ratings = [
        rating(name, value, rater=str(rater))
        for name, (value, number) in zip(names, rows, strict=True)
        for rater in range(number)
    ]
    if max(value for value, _ in rows) - min(value for value, _ in rows) < 1e-3:
        return
    one = rated(*ratings, responses=names)
    targets = targets_of(one, scale_of(one))
    total = sum(target.weight for target in targets)
    assert sum(target.weight * target.target for target in targets) / total == pytest.approx(0, abs=1e-9)
    assert sum(target.weight * target.target**2 for target in targets) / total == pytest.approx(1)


def test_targets_relative_to_a_prompt_have_its_mean_taken_off():
    # Prompt p: 5 by two raters and 2 by one, mean 4: +1, -2. Prompt q: 2 and 1, mean 1.5: +0.5, -0.5.
    # Variance (2 * 1 + 4 + 0.25 + 0.25) / 5 = 1.3. A prompt with one rated answer counts nowhere.
    one = rated(rating("a", 5, rater="x"), rating("a", 5, rater="y"), rating("b", 2))
    easier, single = rated(rating("a", 2), rating("c", 1), id="q"), rated(rating("b", 5), id="r")
    scale = scale_of(one, easier, single, center="prompt")
    assert (scale.mean, scale.num_ratings, scale.center) == (0, 4, "prompt")
    assert scale.spread == pytest.approx(math.sqrt(1.3))
    found = [[(each.response, each.weight, each.target * scale.spread) for each in targets_of(case, scale)]
             for case in (one, easier, single)]  # fmt: skip
    assert found == [
        [(0, 2, pytest.approx(1)), (1, 1, pytest.approx(-2))],
        [(0, 1, pytest.approx(0.5)), (2, 1, pytest.approx(-0.5))],
        [],
    ]
    assert ", less the mean of their prompt: 4 responses" in scale_sentence([one, easier, single], scale)


def test_prompts_that_rate_all_alike_have_nothing_relative_to_learn():
    alike = [rated(rating("a", value), rating("b", value), id=f"p{value}") for value in (1, 5)]
    with pytest.raises(
        EvidenceError, match=r"(?s)no prompt has two responses with different ratings of stars.*rating_center=data"
    ):
        scale_of(*alike, rated(rating("a", 3)), center="prompt")


def test_prompts_without_two_rated_responses_are_counted_as_such():
    one = rated(rating("a", 5), rating("b", 1))
    read = made([one, rated(rating("a", 2), id="q"), case("r")],
                EvidenceChoice(ratings=scale_of(one, center="prompt"), pair_weight=0.0))  # fmt: skip
    assert read.dropped == {"fewer than two rated responses": 1, "no rating": 1}
    assert [len(example.ratings) for example in read.examples] == [2]


def test_shares_of_the_range_are_the_targets_of_the_cross_entropy():
    one = rated(rating("a", 5), rating("b", 2), rating("c", 1))
    targets = targets_of(one, scale_of(one, link="logistic"))
    assert [target.target for target in targets] == [1, 0.25, 0]


def test_labels_without_a_range_are_shares_only_between_0_and_1():
    labels = rated(rating("a", 1, scale=None), rating("b", 0, scale=None))
    scale = scale_of(labels, link="logistic")
    assert (scale.lowest, scale.highest) == (0, 1)
    stars = rated(rating("a", 4, scale=None), rating("b", 0, scale=None))
    with pytest.raises(EvidenceError, match=r"(?s)have no range, and lie from 0 to 4.*loss=mean-squared-error"):
        scale_of(stars, link="logistic")
    assert scale_of(stars).lowest is None


def test_other_ranges_are_mapped_to_the_commonest_and_this_is_stated():
    # 75 of 0 to 100 is three quarters of the way: 4 of 1 to 5.
    one = rated(rating("a", 5), rating("b", 1), rating("c", 75, scale=(0.0, 100.0)))
    scale = scale_of(one)
    assert [each.value for each in rated_responses(one, scale.dimensions, scale.ranges)] == [5, 1, 4]
    sentence = scale_sentence([one], scale)
    assert "from 1 to 5: 3 responses by 3 human ratings" in sentence
    assert "1 rating of other ranges is mapped to it" in sentence


def test_several_dimensions_are_a_weighted_sum_of_responses_that_have_all():
    one = rated(
        rating("a", 4, dimension="helpful"),
        rating("a", 1, dimension="verbose"),
        rating("b", 2, dimension="helpful"),
        rating("b", 5, dimension="verbose"),
        rating("c", 3, dimension="helpful"),
    )
    weights = {"helpful": 1.0, "verbose": -0.5}
    scale = scale_of(one, dimensions=weights)
    assert [tuple(each) for each in rated_responses(one, weights, scale.ranges)] == [(0, 3.5, 1), (1, -0.5, 1)]
    assert (scale.lowest, scale.highest) == (1 - 2.5, 5 - 0.5)


def test_raters_of_unequally_rated_dimensions_are_those_of_the_variance_of_the_sum():
    one = rated(*(rating("a", 4, dimension="u", rater=name) for name in "xyz"), rating("a", 4, dimension="v"))
    # Var(u + v) = s²/3 + s²/1, which is that of 2 dimensions with 2 / (4/3) = 1.5 raters each.
    (only,) = rated_responses(one, {"u": 1.0, "v": 1.0}, {"u": STARS, "v": STARS})
    assert only.num_raters == pytest.approx(1.5)


def test_an_unknown_dimension_is_named_with_the_nearest():
    with pytest.raises(EvidenceError, match=r"(?s)c\.jsonl: no case has a rating of 'star'.*stars"):
        scale_of(rated(rating("a", 4), rating("b", 2)), dimensions="star")


def test_one_of_several_dimensions_must_be_chosen():
    both = rated(rating("a", 4), rating("b", 2), rating("a", 1, dimension="length"))
    with pytest.raises(EvidenceError, match=r"(?s)rated in several dimensions: length, stars.*dimensions=stars"):
        scale_of(both)


def test_cases_without_ratings_are_refused_with_a_loss_of_pairs():
    with pytest.raises(EvidenceError, match=r"(?s)no case has a rating.*loss=bradley-terry"):
        scale_of(case())


@pytest.mark.parametrize("ratings", [(("a", 4), ("b", 4), ("c", 4)), (("a", 4),)])
def test_equal_ratings_and_a_single_one_have_nothing_to_learn(ratings):
    with pytest.raises(EvidenceError, match=r"rated responses? (is|are all) 4: nothing can be learned"):
        scale_of(rated(*(rating(*each) for each in ratings)))


def test_no_response_with_every_dimension_is_refused():
    one = rated(rating("a", 4, dimension="u"), rating("b", 4, dimension="v"))
    with pytest.raises(EvidenceError, match="no response has a rating of each dimension: u, v"):
        scale_of(one, dimensions={"u": 1.0, "v": 1.0})


def test_ratings_outside_their_range_are_counted_and_named():
    one = rated(rating("a", 4), rating("b", 9), rating("c", 0))
    expected = r"2 ratings are outside their ranges: p / b \(stars 9 on 1 to 5\), p / c \(stars 0 on 1 to 5\)"
    with pytest.raises(EvidenceError, match=expected):
        scale_of(one)
    scale = scale_of(rated(rating("a", 4), rating("b", 2)))
    with pytest.raises(EvidenceError, match=r"h\.jsonl: 2 ratings are outside"):
        check_ratings([one], scale, where="h.jsonl")
    with pytest.raises(EvidenceError, match=r"1 rating is outside its range: p / b \(stars 3 on 3 to 3\)"):
        scale_of(rated(rating("a", 4), rating("b", 3, scale=(3.0, 3.0))))


@pytest.mark.parametrize("dimensions", [{}, {"stars": 0.0}, {"stars": math.nan}])
def test_a_table_of_dimensions_needs_weights(dimensions):
    with pytest.raises(ConfigError, match="weights other than 0"):
        check_settings(Config(loss="mean-squared-error", dimensions=dimensions))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"dimensions": "stars"}, "(?s)with loss=bradley-terry, which reads pairs.*loss=mean-squared-error"),
        ({"pair_weight": 1.0}, "with loss=bradley-terry, which reads pairs"),
        ({"metric": "pearson"}, "metric=pearson with loss=bradley-terry"),
        ({"loss": "mean-squared-error", "kind": "implicit"}, "unit of the ratings"),
        ({"loss": "mean-squared-error", "calibrate_rewards": "standardise"}, "unit of the ratings"),
        ({"loss": "mean-squared-error", "label_smoothing": 0.1}, "label_smoothing=0"),
        ({"loss": "mean-squared-error", "pair_weight": -1.0}, "0 or more"),
        ({"rating_center": "prompt"}, "rating_center with loss=bradley-terry"),
        ({"loss": "binary-cross-entropy", "rating_center": "prompt"}, "targets are shares of a range"),
    ],
)
def test_settings_that_contradict_the_loss_are_refused(changes, problem):
    with pytest.raises(ConfigError, match=problem):
        check_settings(Config(**changes))


def test_rewards_are_not_shrunk_by_default_where_ratings_fix_their_level():
    assert Config(loss="mean-squared-error").weight_of_squares == 0
    assert Config(loss="mean-squared-error", regulariser=0.2).weight_of_squares == 0.2
    assert Config().weight_of_squares == 0.1


def made(cases, choice, **rendering):
    settings = Rendering(template=tiny.CHATML, **rendering)
    return make_examples(cases, tiny.tokenizer(), settings, choice, where="c.jsonl")


def test_examples_hold_the_rated_responses_and_count_the_others():
    one = rated(rating("c", 5), rating("a", 1))
    read = made([one, case("q")], EvidenceChoice(ratings=scale_of(one), pair_weight=0.0))
    (example,) = read.examples
    assert [(each.response, each.weight) for each in example.ratings] == [(0, 1), (1, 1)]
    assert [each.target for each in example.ratings] == pytest.approx([-1, 1])
    assert (len(example.rows), example.pairs, read.num_ratings) == (2, (), 2)
    assert read.dropped == {"no rating": 1}
    assert read.noted[UNRATED] == 1 + len(case("q").responses)


def test_pairs_beside_ratings_have_the_factor_of_their_weight():
    one = case("p", "abc", ranking=(("a",), ("b",)), ratings=(rating("a", 5), rating("c", 1)))
    (example,) = made([one], EvidenceChoice(ratings=scale_of(one), pair_weight=0.25)).examples
    assert [tuple(pair) for pair in example.pairs] == [(0, 1, 0.25, 0.0)]
    assert [each.response for each in example.ratings] == [0, 2]


def test_held_out_cases_without_pairs_have_those_that_their_ratings_order():
    one = rated(rating("a", 2), rating("b", 5), rating("c", 2))
    (example,) = made([one], EvidenceChoice(ratings=scale_of(one), is_held_out=True)).examples
    assert {(pair.better, pair.worse) for pair in example.pairs} == {(1, 0), (1, 2)}
    ranked = case("p", "abc", ranking=(("c",), ("a", "b")), ratings=(rating("a", 2), rating("b", 5)))
    (example,) = made([ranked], EvidenceChoice(ratings=scale_of(one), is_held_out=True)).examples
    assert {(pair.better, pair.worse) for pair in example.pairs} == {(2, 0), (2, 1)}


def test_rated_answers_over_the_limit_are_left_out_and_counted():
    texts = {"a": "word " * 90, "b": "short", "c": "word"}
    one = rated(rating("a", 2), rating("b", 5), rating("c", 2))
    long = one.__replace__(responses=tuple(each.__replace__(text=texts[each.id]) for each in one.responses))
    read = made([long], EvidenceChoice(ratings=scale_of(one), pair_weight=0.0), max_length=60)
    assert read.num_ratings == 2
    summary = read.length.summary()
    assert (summary.num_too_long, summary.num_pairs, summary.num_prompts, summary.num_prompts_over) == (1, 0, 1, 0)
    first, second, third = read.length.sentences()
    assert first.startswith("1 of 3 (33.3%) answers is longer")
    assert "0 of 1 (0.0%) prompt" in second
    assert "to keep them whole" in third


def test_cases_with_ratings_alone_are_refused_for_pairs_with_a_remedy_that_names_the_loss():
    with pytest.raises(EvidenceError, match=r"(?s)a comparable pair.*train on their ratings: loss=mean-squared-error"):
        made([rated(rating("a", 2), rating("b", 5))], EvidenceChoice())
    several = rated(rating("a", 2), rating("b", 5), rating("a", 1, dimension="length"))
    with pytest.raises(EvidenceError, match="loss=mean-squared-error, dimensions=stars"):
        made([several], EvidenceChoice())


def test_a_target_is_the_inverse_of_the_way_back_to_the_rating():
    scale = TargetScale(
        dimensions={"stars": 1.0}, ranges={"stars": STARS}, lowest=1, highest=5, mean=3.5, spread=0.5, num_ratings=9,
        link="identity",
    )  # fmt: skip
    # The saved head includes the spread: reward * spread + mean is the rating.
    assert target_of(4.25, scale) * scale.spread + scale.mean == 4.25
