import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.core.errors import EvidenceError
from steelyard.core.plugins import build
from steelyard.core.types import Response
from steelyard.curation.filter_study import Config, PairColumns, VerdictMargins, read_study
from steelyard.curation.filter_trials import (
    ALL,
    ARMS,
    BY_LENGTH,
    CEILING,
    FILTERED,
    HUMAN,
    NOT_CONFIDENT,
    ORACLE,
    RANDOM,
    SELF,
    arm_pairs,
    fit_pairs,
    margins_of_pairs,
    run_trials,
    splits,
    verdict_margins,
)
from steelyard.io.cases import write_cases
from supervision_files import judged


@settings(max_examples=40, deadline=None)
@given(st.integers(6, 60), st.integers(2, 5), st.floats(0.05, 0.9), st.integers(0, 5))
def test_every_prompt_is_tested_once_a_repetition_and_nothing_is_in_two_parts(num_prompts, num_folds, share, seed):
    found = list(splits(num_prompts, num_folds, share, 2, seed=seed))
    for repetition in range(2):
        own = [split for split in found if split.repetition == repetition]
        assert sorted(np.concatenate([split.test for split in own]).tolist()) == list(range(num_prompts))
    for split in found:
        parts = np.concatenate([split.human, split.judged, split.test])
        assert sorted(parts.tolist()) == list(range(num_prompts))
        assert len(split.human) >= 2


def test_a_smaller_share_has_prompts_of_a_larger_one_and_the_same_tests():
    for small, large in zip(splits(40, 4, 0.1, 2, seed=3), splits(40, 4, 0.5, 2, seed=3), strict=True):
        assert set(small.human.tolist()) < set(large.human.tolist())
        assert small.test.tolist() == large.test.tolist()


def columns(*rows):
    return PairColumns(*(np.array(column) for column in zip(*rows, strict=True)))


def rows(pairs):
    return [tuple(row) for row in np.stack(pairs, axis=1).tolist()]


def arms(has_key=(True, True, True, True)):
    human = columns((9, 0, 1))
    judged = columns((0, 0, 1), (1, 1, 0), (2, 0, 1), (3, 0, 1))
    asked = VerdictMargins(np.arange(4), np.array([2.0, -1.0, -4.0, 0.0]), np.array([3.0, -1, 1, 0]))
    right = np.array([True, True, False, True])
    return arm_pairs(human, judged, asked, (np.array(has_key), right & np.array(has_key)), names=("x",))


def test_what_each_arm_learns_by_hand():
    found = {name: rows(pairs) for name, pairs in arms().items()}
    assert all(own[0] == (9, 0, 1) for own in found.values())
    other = {name: own[1:] for name, own in found.items()}
    assert other[HUMAN] == []
    assert other[ALL] == [(0, 0, 1), (1, 1, 0), (2, 0, 1), (3, 0, 1)]
    assert other[FILTERED] == [(0, 0, 1)]
    assert len(other[RANDOM]) == 1
    assert set(other[RANDOM]) < set(other[ALL])
    assert other[BY_LENGTH] == [(0, 0, 1), (2, 0, 1)]
    # absolute margins 0, 1, 2, 4: their median is 1.5, and only -4 is below its negative
    assert other[NOT_CONFIDENT] == [(0, 0, 1), (1, 1, 0), (3, 0, 1)]
    assert other[ORACLE] == [(0, 0, 1), (1, 1, 0), (3, 0, 1)]
    # the model's own labels: verdicts that it is against are turned, and where it says nothing there is none
    assert other[SELF] == [(0, 0, 1), (1, 0, 1), (2, 1, 0)]


def test_without_a_key_there_is_no_oracle():
    assert ORACLE not in arms((False,) * 4)


@pytest.mark.parametrize("seed", range(3))
def test_the_random_arm_is_as_large_as_the_filtered_one(seed):
    draws = np.random.default_rng(seed)
    judged = columns(*((number, 0, 1) for number in range(30)))
    asked = VerdictMargins(np.arange(30), draws.normal(size=30), draws.normal(size=30))
    found = arm_pairs(columns((99, 0, 1)), judged, asked, (np.ones(30, bool), np.ones(30, bool)), names=(seed,))
    assert len(found[RANDOM].case) == len(found[FILTERED].case)


def noisy(number, *, wrong, human=True):
    """People prefer the answer of good marks; the judge too, but for a share of verdicts drawn by chance."""
    draws = np.random.default_rng(0)
    found = []
    for index in range(number):
        marks = ["".join(draws.choice(list(letters), 3)) for letters in ("ABCD", "WXYZ")]
        verdict = "a<b" if draws.random() < wrong else "a>b"
        found.append(
            judged(str(index), llm=(verdict,), human=("a>b",) if human else (), texts=(f"{marks[0]}1", f"{marks[1]}2"))
        )
    return found


def trials(tmp_path, cases, **settings):
    write_cases(tmp_path / "cases.jsonl", cases)
    model = build("models", "ngram", {"train": str(tmp_path / "cases.jsonl"), "longest": 1, "min_documents": 1})
    config = Config(**{"judge": "gpt", "repetitions": 1, "folds": 3} | settings)
    return run_trials(model, read_study(cases, config, where="cases.jsonl"), config)


def by_arm(trial):
    return {row.arm: row for row in trial.arms}


def test_a_filter_mends_what_a_judge_that_is_mostly_wrong_would_spoil(tmp_path):
    (trial,) = trials(tmp_path, noisy(60, wrong=0.9), human_shares=(0.2,))
    found = by_arm(trial)
    assert list(found) == list(ARMS)
    # learnt from 90 % wrong verdicts the model is wrong; people's few pairs, and what agrees with them, are right
    assert found[ALL].accuracy.value < 0.2
    for name in (HUMAN, FILTERED, ORACLE, CEILING):
        assert found[name].accuracy.value > 0.8, name
    assert found[FILTERED].minus_all.low > 0
    assert found[FILTERED].minus_random.value >= 0
    assert found[ALL].accuracy.n == 60
    # three folds of twenty: of the 40 others a fifth is people's, and each has one pair
    assert found[HUMAN].num_pairs == 8
    assert found[ALL].num_pairs == found[CEILING].num_pairs == 40
    assert found[RANDOM].num_pairs == found[FILTERED].num_pairs


def test_with_a_judge_who_is_always_right_all_verdicts_are_as_good_as_peoples(tmp_path):
    (trial,) = trials(tmp_path, noisy(40, wrong=0.0), human_shares=(0.5,))
    found = by_arm(trial)
    assert found[ALL].accuracy.value == found[CEILING].accuracy.value == 1.0
    itself = found[ALL].minus_all
    assert (itself.value, itself.n) == (0.0, 40)
    assert itself.low < 0 < itself.high  # forty prompts leave room for some


def test_verdicts_on_answers_that_people_did_not_judge_have_no_oracle(tmp_path):
    cases = []
    for case in noisy(30, wrong=0.0):
        own = [one for one in case.judgments if one.kind == "human"]
        other = [msgspec.structs.replace(one, left="c", right="d") for one in case.judgments if one.kind != "human"]
        more = (Response(id="c", text="AB"), Response(id="d", text="YZ"))
        cases.append(msgspec.structs.replace(case, responses=(*case.responses[:2], *more), judgments=(*own, *other)))
    (trial,) = trials(tmp_path, cases, human_shares=(0.5,))
    assert ORACLE not in by_arm(trial)
    assert by_arm(trial)[ALL].accuracy.value == 1.0


def test_too_few_prompts_and_shares_without_a_peoples_pair_are_refused(tmp_path):
    with pytest.raises(EvidenceError, match="too few for 3 folds"):
        trials(tmp_path, noisy(5, wrong=0.0))
    silent = [*noisy(1, wrong=0.0), *(judged(f"s{number}") for number in range(40))]
    with pytest.raises(EvidenceError, match="human_shares"):
        trials(tmp_path, silent, human_shares=(0.1,))
    assert trials(tmp_path, noisy(5, wrong=0.0), human_shares=()) == ()


def test_a_model_learns_the_pairs_that_it_is_given_and_no_others(tmp_path):
    texts = ("好好", "坏坏", "中")
    cases = [judged(str(number), human=("a>b",), llm=("a<b", "b>c"), texts=texts) for number in range(12)]
    write_cases(tmp_path / "cases.jsonl", cases)
    model = build("models", "ngram", {"train": str(tmp_path / "cases.jsonl"), "min_documents": 1})
    study = read_study(cases, Config(judge="gpt"), where="cases.jsonl")
    good = fit_pairs(model, study, columns(*((number, 0, 1) for number in range(6))))
    other = fit_pairs(model, study, columns(*((number, 1, 0) for number in range(6))))
    asked = columns((11, 0, 1), (11, 1, 0), (10, 0, 1))
    first, turned, third = margins_of_pairs(good, study, asked).tolist()
    assert first > 0
    assert turned == -first
    assert third == first
    assert (margins_of_pairs(other, study, asked)[:1] < 0).all()
    found = verdict_margins(good, study, np.arange(len(study.judged.case)) < 2)
    assert found.prompt.tolist() == [0, 0]
    assert found.margin[0] < 0  # the judge prefers b to a
    assert found.longer.tolist() == [0, 1]
