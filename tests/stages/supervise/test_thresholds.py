import numpy as np
import pytest

from steelyard.core.errors import EvidenceError
from steelyard.core.types import Scores
from steelyard.curation.calibration import Trial
from steelyard.curation.supervised import SUPERVISED, margins
from steelyard.stages.supervise.settings import Config
from steelyard.stages.supervise.thresholds import (
    Survey,
    by_tau,
    calibrated,
    check_some_kept,
    survey,
    table,
)
from supervision_files import judged


def batch(*cases):
    lengths = [{one.id: float(len(one.text)) for one in case.responses} for case in cases]
    lines = [
        Scores(prompt=case.prompt.id, language=case.prompt.language, scores=own)
        for case, own in zip(cases, lengths, strict=True)
    ]
    return margins(cases, lines, SUPERVISED)


def test_a_survey_takes_what_people_judged_too_and_one_id_for_one_prompt():
    both = judged("p", llm=("a>b", "b>c", "a=c"), human=("a>b", "c>b", "b>c", "a>c"))
    english = judged("p", llm=("b>a",), human=("b>a",), language="en")
    found = survey([batch(both), batch(english, judged("q"))], Config())
    assert found.margins.tolist() == [2.0, 1.0, -2.0, 2.0]
    # People are split on b, c: left out. Both cases of p are one prompt.
    assert found.trial.prompt.tolist() == [0, 0]
    assert found.trial.is_right.tolist() == [True, True]
    assert (found.num_scores, found.num_unscored) == (9, 0)
    strictly = survey([batch(both)], Config(human_ties="wrong"))
    assert strictly.trial.is_right.tolist() == [True, False]


def some(margin, right):
    trial = Trial(np.arange(len(right)), np.array(margin, float)[: len(right)], np.array(right, bool))
    return Survey(np.array(margin, float), trial, len(margin) * 2, 0)


def test_rows_by_tau_count_by_hand():
    found = some([2.0, 1.0, -1.0, np.nan, 3.0], [True, False, True])
    rows = by_tau(found, found.trial, (2.0, 0.0), seed=0)
    assert [(row["tau"], row["num_kept"], row["coverage"]) for row in rows] == [(0.0, 3, 0.6), (2.0, 2, 0.4)]
    assert [(row["precision"]["value"], row["precision"]["n"]) for row in rows] == [(0.5, 2), (1.0, 1)]
    lines = table(rows).splitlines()
    assert "60.0%" in lines[1]
    assert lines[2].split()[:4] == ["2", "2", "40.0%", "1.000"]
    assert table(by_tau(found, found.trial._replace(margin=-found.trial.margin), (5.0,), seed=0)).endswith("-")


def test_a_calibration_without_a_key_is_refused():
    cases = some([1.0], [True])
    empty = some([], [])
    with pytest.raises(EvidenceError, match="no pair is judged strictly both by people and"):
        calibrated(cases, empty, Config(precision=0.9), where="h.jsonl")
    with pytest.raises(EvidenceError, match=r"certify no precision at all|at most"):
        calibrated(cases, some([1.0] * 3, [True] * 3), Config(precision=0.9), where="h.jsonl")
    enough = some([1.0] * 100, [True] * 100)
    assert calibrated(cases, enough, Config(precision=0.9), where="h.jsonl").tau == 0.0


def test_a_tau_that_keeps_nothing_shows_what_others_keep():
    with pytest.raises(EvidenceError, match="tau 4 drops everything") as error:
        check_some_kept(some([1.0, 2.0, 3.0], []), 4.0, where="c.jsonl", do="take a smaller tau")
    assert "100.0%" in str(error.value)
    with pytest.raises(EvidenceError, match="agrees with none of 2"):
        check_some_kept(some([-1.0, np.nan], []), 0.0, where="c.jsonl", do="")
    check_some_kept(some([1.0], []), 1.0, where="c.jsonl", do="")
