import msgspec
import numpy as np
import pytest

from steelyard.core.types import Pair, Scores
from steelyard.curation.data_checks import (
    LENGTH_EDGES,
    disputed_pairs,
    find_duplicates,
    label_margins,
    labelled_pairs,
    measure_lengths,
)
from strategies import case, judgment


def with_texts(one, *texts, authors=()):
    responses = tuple(
        msgspec.structs.replace(response, text=text, author=authors[at] if authors else None)
        for at, (response, text) in enumerate(zip(one.responses, texts, strict=True))
    )
    return msgspec.structs.replace(one, responses=responses)


def scores_of(one, *values):
    ids = [response.id for response in one.responses]
    return Scores(prompt=one.prompt.id, scores=dict(zip(ids, values, strict=True)))


def test_disputed_labels_by_hand():
    """Labels a > b > c; scores 0, 2 and 1: a > b and a > c are disputed, b > c is not. A repeated row is one vote."""
    votes = ["a>b", "b>a", "a>b", judgment("a>b", judge="k"), "a=b", "a>c"]
    one = case(responses="abc", ranking=(("a",), ("b",), ("c",)), judgments=votes)
    other = case(id="q", responses="ab", ranking=(("a",), ("b",)))
    cases = [one, other]
    pairs = labelled_pairs(cases, None)
    margin = label_margins(cases, pairs, [scores_of(one, 0.0, 2.0, 1.0), scores_of(other, 1.0, None)])
    assert margin[:3].tolist() == [-2.0, -1.0, 1.0]
    assert np.isnan(margin[3])
    summary, rows = disputed_pairs(cases, pairs, margin, 1.0, model="m", confidence=0.8)
    assert [(row.better, row.worse) for row in rows] == [("a", "b"), ("a", "c")]
    assert rows[0].probability == pytest.approx(1 / (1 + np.exp(2)))
    assert (rows[0].num_for, rows[0].num_against) == (2, 1)
    # e^-2 is 0.119 (below 0.2), e^-1 is 0.269.
    assert (summary.num_suspects, summary.num_disputed, summary.num_pairs, summary.num_unscored) == (1, 2, 4, 1)
    assert (summary.accuracy.value, summary.accuracy.n) == (pytest.approx(1 / 3), 3)


def test_pairs_without_judgments_have_no_votes_and_listed_pairs_are_the_labels():
    one = case(responses="ab", pairs=(Pair(better="b", worse="a"),), ranking=(("a",), ("b",)))
    pairs = labelled_pairs([one], None)
    assert [column.tolist() for column in pairs] == [[0], [1], [0], [0]]
    _, rows = disputed_pairs([one], pairs, np.array([-1.0]), 1.0, model="m", confidence=0.8)
    assert (rows[0].num_for, rows[0].num_against) == (None, None)


def test_without_pairs_there_is_nothing_to_dispute():
    pairs = labelled_pairs([case()], None)
    assert [len(column) for column in pairs] == [0, 0, 0, 0]
    assert sum(measure_lengths([case()], pairs).better) == 0


def test_duplicates_of_prompts_and_responses():
    poem = "请写一首关于{}雨落在我家乡旧港口的短诗,要求押韵,不超过八行"
    cases = [
        case(id="1", text=poem.format("春"), responses="ab"),
        case(id="2", text=poem.format("秋"), responses="ab"),
        case(id="3", text="איך אופים לחם?", responses="abc", ranking=(("a",), ("b", "c"))),
        case(id="4", text=poem.format("冬"), responses="ab", language="ja"),
    ]
    cases[0] = with_texts(cases[0], "Same text", "same  TEXT")
    cases[2] = with_texts(cases[2], "لا أعرف", "لا أعرف", "תשובה")
    cases[3] = with_texts(cases[3], "same text", "")
    found = find_duplicates(cases, labelled_pairs(cases, None), 0.6)
    assert (found.num_prompt_groups, found.num_prompts_in_groups) == (1, 2)
    assert found.prompt_groups[0].prompts == (("1", None), ("2", None))  # another language is no duplicate
    assert [(row.prompt, row.responses, row.is_ordered) for row in found.equal_responses] == [
        ("3", ("a", "b"), True),
        ("1", ("a", "b"), False),
    ]
    assert (found.num_equal_responses, found.num_equal_and_ordered) == (2, 1)
    # "same text" answers 1 and 4, "answer a" and "answer b" only 2 (the others were replaced).
    assert found.num_texts_of_several_prompts == 1


def test_lengths_by_hand():
    one = with_texts(
        case(responses="abc", ranking=(("a",), ("b",), ("c",))), "杆" * 10, "x" * 9, "  \n", authors=("m", "m", None)
    )
    lengths = measure_lengths([one], labelled_pairs([one], None))
    by_edge = dict(zip(LENGTH_EDGES, lengths.better, strict=True))
    # a is better twice (10 characters), b once (9); b is worse once and c, empty, twice.
    assert (by_edge[10], by_edge[1], by_edge[0]) == (2, 1, 0)
    assert dict(zip(LENGTH_EDGES, lengths.worse, strict=True))[0] == 2
    assert (lengths.num_empty, lengths.num_extreme) == (1, 0)
    assert [(row.response, row.length) for row in lengths.odd] == [("c", 0)]
    assert [(group.author, group.num_responses, group.median, group.num_empty) for group in lengths.authors] == [
        ("m", 2, 9.5, 0),
        (None, 1, 0.0, 1),
    ]


def test_each_bin_of_lengths_begins_at_its_edge():
    edges = (1, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
    cases = [
        with_texts(case(id=f"p{edge}", responses="ab", ranking=(("a",), ("b",))), "x" * edge, "x" * (edge - 1))
        for edge in edges
    ]
    lengths = measure_lengths(cases, labelled_pairs(cases, None))
    assert lengths.edges == (0, *edges)
    assert lengths.better == (0, *[1] * 9)  # one of each edge
    assert lengths.worse == (*[1] * 9, 0)  # one less is in the bin before


def test_an_extremely_long_answer_is_found_among_many():
    many = [with_texts(case(id=f"p{at}", responses="ab"), "x" * (90 + at), "y" * (110 + at)) for at in range(20)]
    many.append(with_texts(case(id="long", responses="ab"), "z" * 100, "z" * 100_000))
    lengths = measure_lengths(many, labelled_pairs(many, None))
    assert [(row.prompt, row.response) for row in lengths.odd] == [("long", "b")]
    assert measure_lengths([case()], labelled_pairs([case()], None)).num_extreme == 0


@pytest.mark.parametrize(
    ("usual", "inside", "extreme"),
    [
        # Quartiles of 100 characters have no range, which counts as half of a doubling: the fences are
        # 101 / 2^1.5 - 1 = 34.7 and 101 * 2^1.5 - 1 = 284.7.
        ((100, 100), (35, 284), (285, 34)),
        # Quartiles of log(1 + length) at log 10 and log 100: the fences are log 100 +- 3 log 10 beyond them.
        ((9, 99), (1, 99_900), (100_100,)),
    ],
)
def test_the_fences_of_extreme_lengths_by_hand(usual, inside, extreme):
    many = [with_texts(case(id=f"p{at}", responses="ab"), *("x" * length for length in usual)) for at in range(40)]
    rest = [with_texts(case(id=f"q{length}", responses="a"), "x" * length) for length in (*inside, *extreme)]
    lengths = measure_lengths([*many, *rest], labelled_pairs(many, None))
    assert [row.length for row in lengths.odd] == list(extreme)
    assert (lengths.num_empty, lengths.num_extreme) == (0, len(extreme))


def test_lists_end_after_a_hundred_and_counts_do_not():
    cases = [
        with_texts(case(id=f"p{at}", responses="ab", ranking=(("a",), ("b",))), "", "", authors=(f"m{at}", f"m{at}"))
        for at in range(101)
    ]
    pairs = labelled_pairs(cases, None)
    lengths = measure_lengths(cases, pairs)
    assert (lengths.num_empty, len(lengths.odd), len(lengths.authors)) == (202, 100, 100)
    duplicates = find_duplicates(cases, pairs, 1.0)
    assert (duplicates.num_equal_responses, len(duplicates.equal_responses)) == (101, 100)
    assert duplicates.num_texts_of_several_prompts == 0  # an empty text is none
    summary, rows = disputed_pairs(cases, pairs, -np.arange(1.0, 102.0), 1.0, model="m", confidence=0.8)
    assert (summary.num_disputed, len(rows), len(summary.listed)) == (101, 101, 100)
    assert summary.listed[0].margin == -101.0


def test_the_largest_groups_and_the_authors_with_most_responses_come_first():
    texts = ("What is the capital of France?", "How do volcanoes form on the ocean floor?")
    cases = [
        with_texts(case(id=f"p{at}", text=texts[at > 1], responses="a"), f"answer {at}", authors=(name,))
        for at, name in enumerate(("z", "y", "y", "x", "x"))
    ]
    pairs = labelled_pairs(cases, None)
    groups = find_duplicates(cases, pairs, 0.9).prompt_groups
    assert [[name for name, _ in group.prompts] for group in groups] == [["p2", "p3", "p4"], ["p0", "p1"]]
    assert [group.author for group in measure_lengths(cases, pairs).authors] == ["x", "y", "z"]


def test_the_temperature_decides_which_labels_are_suspect():
    cases = [case(id=f"p{at}", responses="ab", ranking=(("a",), ("b",))) for at in range(3)]
    pairs = labelled_pairs(cases, None)
    # Inverse temperature 2: margins of -0.6, -0.5, 0 mean probabilities of 0.231, 0.269, 0.5; a tie disputes nothing.
    summary, _ = disputed_pairs(cases, pairs, np.array([-0.6, -0.5, 0.0]), 2.0, model="m", confidence=0.75)
    assert (summary.num_suspects, summary.num_disputed) == (1, 2)
    assert (summary.accuracy.value, summary.inverse_temperature) == (0.0, 2.0)
