import msgspec
import numpy as np
import pytest

from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.plugins import build
from steelyard.core.types import Pair
from steelyard.curation.filter_study import (
    Config,
    PairColumns,
    fit_pairs,
    margins_of_pairs,
    num_unlisted,
    read_study,
    verdict_margins,
)
from steelyard.io.cases import write_cases
from supervision_files import judged


def study(cases, **settings):
    return read_study(cases, Config(judge="gpt", **settings), where="cases.jsonl")


def pairs(columns):
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_what_people_and_the_judge_say_of_pairs_by_hand():
    cases = [
        judged("1", human=("a>b", "a>b", "a<b"), llm=("a<b", "b>c")),
        judged("2", human=("a<b", "a<b"), llm=("a<b", "a=c")),
        judged("3", human=("a>b", "a<b"), llm=("a>b",)),  # people tie: nothing is right
    ]
    found = study(cases)
    assert pairs(found.human) == [(0, 0, 1), (1, 1, 0)]
    assert pairs(found.judged) == [(0, 1, 0), (0, 1, 2), (1, 1, 0), (2, 0, 1)]
    assert found.has_key.tolist() == [True, False, True, False]
    assert found.is_right.tolist() == [False, False, True, False]
    assert found.longer.tolist() == [-2, 1, -2, 2]  # the answers have 4, 2 and 1 characters
    assert found.prompt.tolist() == [0, 1, 2]
    assert found.trains.tolist() == [True, True]
    assert study(cases, train_on="unanimous").trains.tolist() == [False, True]


def test_verdicts_on_pairs_that_curation_left_out_are_counted():
    curated = judged("1", human=("a>b",), llm=("b>a", "b>c", "a>c"))
    curated = msgspec.structs.replace(curated, pairs=(Pair(better="a", worse="b"), Pair(better="a", worse="c")))
    assert num_unlisted(study([curated, judged("2", llm=("a>b",))])) == 1
    assert num_unlisted(study([judged("1", human=("a>b",), llm=("b>c",))])) == 0


def test_unanimous_is_of_a_pair_not_of_a_case():
    cases = [judged("1", human=("a>b", "a>b", "b>c", "b>c", "b<c", "a>c", "a=c", "a>c"))]
    found = study(cases, train_on="unanimous")
    assert pairs(found.human) == [(0, 0, 1), (0, 0, 2), (0, 1, 2)]
    assert found.trains.tolist() == [True, False, False]


def test_at_most_so_many_verdicts_a_prompt_and_the_same_again():
    cases = [judged(str(number), llm=("a>b", "b>c", "a>c"), human=("a>b",)) for number in range(4)]
    found = study(cases, max_pairs=2)
    assert found.judged.case.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert pairs(study(cases, max_pairs=2).judged) == pairs(found.judged)
    assert any(pairs(study(cases, max_pairs=2, seed=seed).judged) != pairs(found.judged) for seed in range(1, 6))


def test_a_judge_that_is_not_there_and_people_that_say_nothing():
    with pytest.raises(ConfigError, match="did you mean 'gpt'"):
        read_study([judged("1", human=("a>b",))], Config(judge="gtp"), where="cases.jsonl")
    with pytest.raises(EvidenceError, match="people prefer no answer"):
        study([judged("1")])
    with pytest.raises(EvidenceError, match="prefers no answer anywhere"):
        study([judged("1", llm=("a=b",), human=("a>b",))])


def columns(*rows):
    return PairColumns(*(np.array(column) for column in zip(*rows, strict=True)))


def test_a_model_learns_the_pairs_that_it_is_given_and_no_others(tmp_path):
    texts = ("好好", "坏坏", "中")
    cases = [judged(str(number), human=("a>b",), llm=("a<b", "b>c"), texts=texts) for number in range(12)]
    write_cases(tmp_path / "cases.jsonl", cases)
    model = build("models", "ngram", {"train": str(tmp_path / "cases.jsonl"), "min_documents": 1})
    found_pairs = read_study(cases, Config(judge="gpt"), where="cases.jsonl")
    good = fit_pairs(model, found_pairs, columns(*((number, 0, 1) for number in range(6))))
    other = fit_pairs(model, found_pairs, columns(*((number, 1, 0) for number in range(6))))
    asked = columns((11, 0, 1), (11, 1, 0), (10, 0, 1))
    first, turned, third = margins_of_pairs(good, found_pairs, asked).tolist()
    assert first > 0
    assert turned == -first
    assert third == first
    assert (margins_of_pairs(other, found_pairs, asked)[:1] < 0).all()
    found = verdict_margins(good, found_pairs, np.arange(len(found_pairs.judged.case)) < 2)
    assert found.prompt.tolist() == [0, 0]
    assert found.margin[0] < 0  # the judge prefers b to a
    assert found.longer.tolist() == [0, 1]
