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
from strategies import case


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
    """Labels a > b > c; scores 0, 2 and 1: a > b and a > c are disputed, b > c is not."""
    one = case(responses="abc", ranking=(("a",), ("b",), ("c",)), judgments=["a>b", "b>a", "a>b", "a=b", "a>c"])
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
    assert [column.tolist() for column in pairs] == [[0], [1], [0]]
    _, rows = disputed_pairs([one], pairs, np.array([-1.0]), 1.0, model="m", confidence=0.8)
    assert (rows[0].num_for, rows[0].num_against) == (None, None)


def test_without_pairs_there_is_nothing_to_dispute():
    pairs = labelled_pairs([case()], None)
    assert [len(column) for column in pairs] == [0, 0, 0]
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


def test_an_extremely_long_answer_is_found_among_many():
    many = [with_texts(case(id=f"p{at}", responses="ab"), "x" * (90 + at), "y" * (110 + at)) for at in range(20)]
    many.append(with_texts(case(id="long", responses="ab"), "z" * 100, "z" * 100_000))
    lengths = measure_lengths(many, labelled_pairs(many, None))
    assert [(row.prompt, row.response) for row in lengths.odd] == [("long", "b")]
    assert measure_lengths([case()], labelled_pairs([case()], None)).num_extreme == 0
