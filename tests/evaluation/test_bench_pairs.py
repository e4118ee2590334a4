import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluated_cases import select_pairs
from reference_measures import reference_row
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Pair, Scores
from steelyard.evaluation.bench_pairs import count_pairs, items_of, values_of
from steelyard.evaluation.columns import bench_columns, score_columns
from steelyard.statistics.groups import Cell, cell_of, prompt_names
from strategies import case


def line(one, *scores):
    return Scores(
        prompt=one.prompt.id, scores=dict(zip((response.id for response in one.responses), scores, strict=True))
    )


def counted(bench_pairs, lines):
    return count_pairs(bench_pairs.columns, values_of(bench_pairs.columns, score_columns(lines).score))


def table(cases, lines, rule="strict", choice=None):
    bench_pairs = select_pairs(cases, choice, rule)
    return items_of(bench_pairs, counted(bench_pairs, lines), num_resamples=1).statistics.tolist()


def test_pairs_across_tiers_by_hand():
    one = case(responses="abc", ranking=(("b",), ("a", "c")))
    assert table([one], [line(one, 1, 2, 3)]) == [[2, 1, 1, 0]]  # b > a holds, b > c does not; a and c are not ordered
    assert table([one], [line(one, 1, 4, 3)]) == [[2, 2, 1, 1]]
    assert table([one], [line(one, 4, 4, 3)]) == [[2, 1, 1, 0]]


tiers = st.lists(st.integers(0, 3), min_size=5, max_size=5)
scores = st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]), min_size=5, max_size=5)


@given(st.lists(st.tuples(tiers, scores), min_size=1, max_size=5), st.sampled_from(["strict", "cheems"]))
def test_equals_a_plain_loop_over_ranks(bench, rule):
    cases, lines, expected = [], [], []
    for index, (ranks, values) in enumerate(bench):
        ranking = tuple(
            tuple(name for name, rank in zip("abcde", ranks, strict=True) if rank == tier)
            for tier in sorted(set(ranks))
        )
        cases.append(case(f"p{index}", ranking=ranking))
        lines.append(line(cases[-1], *values))
        pairs = [(values[i], values[j]) for i in range(5) for j in range(5) if ranks[i] < ranks[j]]
        if pairs or rule == "cheems":
            expected.append(list(reference_row(pairs, rule)))
    if not any(row[0] for row in expected):
        with pytest.raises(EvidenceError, match="comparable pair"):
            select_pairs(cases, None, rule)
        return
    assert table(cases, lines, rule) == expected


@given(st.permutations("abcde"), scores)
def test_the_order_of_the_responses_does_not_matter(order, values):
    ranking = (("a", "b"), ("c",), ("d", "e"))
    score_of = dict(zip("abcde", values, strict=True))
    one, other = case(ranking=ranking), case(responses="".join(order), ranking=ranking)
    assert table([one], [line(one, *values)]) == table([other], [line(other, *(score_of[name] for name in order))])


def test_a_listed_pair_counts_once_whatever_its_weight():
    pairs = (Pair(better="a", worse="b", weight=9.0), Pair(better="c", worse="b"), Pair(better="a", worse="b"))
    one = case(responses="abc", pairs=pairs, ranking=(("c",), ("b",), ("a",)))
    assert table([one], [line(one, 3, 2, 1)]) == [[2, 1, 1, 0]]
    assert table([one], [line(one, 3, 2, 1)], choice="tiers") == [[3, 0, 1, 0]]


def test_a_case_without_comparable_pairs_counts_in_the_published_rule_alone():
    cases = [case("p", "ab", ranking=(("a",), ("b",))), case("q", "ab", ranking=(("a", "b"),)), case("r", "ab")]
    lines = [line(one, 1, 0) for one in cases]
    assert table(cases, lines) == [[1, 1, 1, 1]]
    assert table(cases, lines, "cheems") == [[1, 1, 1, 1], [0, 0, 1, 1]]
    assert select_pairs(cases, None, "strict").columns.included.tolist() == [True, False, False]


def test_two_models_stand_side_by_side():
    cases = [case("p", "ab", ranking=(("a",), ("b",)))]
    bench_pairs = select_pairs(cases, None, "strict")
    good, bad = (counted(bench_pairs, [line(cases[0], *values)]) for values in ((1, 0), (0, 1)))
    assert items_of(bench_pairs, good, bad, num_resamples=5).statistics.tolist() == [[1, 1, 1, 1, 1, 0, 1, 0]]


def test_a_null_score_leaves_its_pairs_unscored():
    one = case(responses="abc", ranking=(("a",), ("b",), ("c",)))
    found = counted(select_pairs([one], None, "strict"), [line(one, 2, None, 1)])
    assert np.array(found)[:, 0].tolist() == [1, 0, 0, 2]


def test_cells():
    given = case("p", category=("数学", "几何"), subset="s", language="zh")
    assert cell_of(given) == Cell("数学", "s", "zh")
    assert cell_of(case("p")).category == "uncategorised"


def test_cases_whose_prompt_shares_a_name_are_drawn_together():
    ranking = (("a",), ("b",))
    cases = [case(name, "ab", text=text, ranking=ranking) for name, text in (("p", "甲"), ("q", "乙"), ("r", "甲"))]
    assert select_pairs(cases, None, "strict").units == ("p", "q", "r")
    together = select_pairs(cases, None, "strict", prompt_names)
    assert together.units == ("p", "q", "p")
    assert [stratum.num_units for stratum in together.layout.strata] == [2]


def test_pairs_that_a_choice_adds_to_the_listed_ones_are_counted():
    curated = case(responses="abc", ranking=(("a",), ("b",), ("c",)), pairs=(Pair(better="a", worse="b"),))
    cases = [curated, case(responses="ab", ranking=(("a",), ("b",)))]
    assert bench_columns(cases, "tiers", "strict").num_unlisted == 2
    assert bench_columns(cases, None, "strict").num_unlisted == 0
