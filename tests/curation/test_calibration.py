import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
import scipy.stats  # noqa: F401 - `p_value` imports it: over a second, which no example of a property should take
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.errors import EvidenceError
from steelyard.core.types import Scores
from steelyard.curation.calibration import (
    LabelledVerdicts,
    MarginSurvey,
    calibrate,
    calibrate_threshold,
    candidate_thresholds,
    check_some_kept,
    is_kept,
    p_value,
    rows_by_threshold,
    survey_margins,
    threshold_table,
)
from steelyard.curation.supervised import with_margins
from steelyard.curation.supervision import SUPERVISED
from supervision_files import judged


def trial(*rows):
    """Entries (prompt, margin, is right)."""
    prompt, margin, right = zip(*rows, strict=True)
    return LabelledVerdicts(np.array(prompt), np.array(margin, float), np.array(right, bool))


def test_one_verdict_a_prompt_is_the_exact_binomial():
    # 10 kept, 1 wrong, wanted 0.7: P(at most 1 wrong of 10 at 0.3) by hand. The two below threshold do not count.
    rows = [(index, 1.0, index > 0) for index in range(10)] + [(10, 0.4, False), (11, math.nan, False)]
    by_hand = sum(comb(10, wrong) * Fraction(3, 10) ** wrong * Fraction(7, 10) ** (10 - wrong) for wrong in (0, 1))
    assert p_value(trial(*rows), 0.5, 0.7) == pytest.approx(float(by_hand))
    assert p_value(trial((0, -1.0, True)), 0.0, 0.7) == 1.0


def test_several_verdicts_a_prompt_are_bet_on_as_one():
    # Prompt 0: of 2 verdicts 1 kept and right; prompt 1: both kept, one wrong. Wanted 0.6.
    rows = trial((0, 1.0, True), (0, -1.0, False), (1, 2.0, True), (1, 1.0, False))
    observed = [0 - 0.4 * 0.5, 0.5 - 0.4 * 1.0]
    stakes = [share / 0.6 for share in (0.9, 0.6, 0.35, 0.18, 0.08)]
    won = [math.prod(1 - stake * own for own in observed) for stake in stakes]
    average = sum(weight * own for weight, own in zip((0.3, 0.3, 0.25, 0.1, 0.05), won, strict=True))
    assert p_value(rows, 0.0, 0.6) == pytest.approx(min(1, 1 / average))


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(-2, 2), st.booleans()), min_size=1, max_size=30),
    st.floats(0, 2),
    st.floats(0.05, 0.95),
)
def test_p_values_lie_between_nothing_and_one(rows, threshold, precision):
    p = p_value(trial(*rows), threshold, precision)
    assert 0 <= p <= 1
    if not is_kept(trial(*rows).margin, threshold).any():
        assert p == pytest.approx(1.0)


def test_the_smallest_certified_tau_is_chosen_and_a_failure_ends_the_sequence():
    # One verdict a prompt. At margins 7, 6, 5: 100 each and all right; at 4: 100, of which 90 wrong; below: all right.
    rows = [(10 * place + margin, margin, margin != 4 or place < 10) for place in range(100) for margin in range(1, 8)]
    found = calibrate(trial(*rows), range(1, 8), precision=0.8, confidence=0.95)
    # Starts are 1, 3, 5 and 7. From 7 to 5 all are right. At 4: 90 of 400 wrong, the end. At 3: 90 of 500, p 0.14;
    # at 1: 90 of 700, p below 0.0001, and a start of its own.
    assert [point.is_certified for point in found.points] == [True, False, False, False, True, True, True]
    assert found.threshold == 1
    assert [point.num_kept for point in found.points] == [700, 600, 500, 400, 300, 200, 100]
    # Without the two easiest margins the smallest threshold has 90 of 500 wrong too.
    fewer = trial(*[row for row in rows if row[1] not in (1, 2)])
    assert [point.is_certified for point in calibrate(fewer, range(1, 8), precision=0.8, confidence=0.95).points] == [
        False, False, False, False, True, True, True,
    ]  # fmt: skip
    assert calibrate(fewer, range(1, 5), precision=0.8, confidence=0.95).threshold is None


def test_points_count_by_hand():
    rows = trial((0, 1.0, True), (0, -1.0, False), (1, 2.0, True), (1, 1.0, False), (2, math.nan, True))
    point = calibrate(rows, (0.0,), precision=0.9, confidence=0.9).points[0]
    assert (point.num_kept, point.num_right, point.num_prompts, point.coverage) == (3, 2, 2, 0.6)
    assert point.precision == pytest.approx(2 / 3)
    # By prompt: right (1/2 + 1/2) of kept (1/2 + 1).
    assert point.precision_by_prompt == pytest.approx(1 / 1.5)
    assert not point.is_certified


def test_candidates_keep_even_shares_of_what_agrees():
    assert candidate_thresholds(np.array([-1.0, math.nan, *range(1, 101)])) == (0.0, *range(6, 97, 5))
    assert candidate_thresholds(np.array([-1.0, 0.0])) == (0.0,)


MARGINS = np.array([-1.0, 0.5, 1.0, 2.0])
SHARES = {"easy": np.array([0.2, 0.3, 0.3, 0.2]), "hard": np.array([0.2, 0.5, 0.2, 0.1])}
RIGHT = {"easy": np.array([0.6, 0.93, 0.96, 0.99]), "hard": np.array([0.3, 0.5, 0.6, 0.8])}
SIZE = {"easy": 4, "hard": 9}
HARD = 0.2


def precisions(thresholds):
    """The true precision at each threshold, by enumeration: a prompt is drawn, and then one of its verdicts."""
    found = []
    for threshold in thresholds:
        kept = is_kept(MARGINS, threshold)
        mass = {"easy": 1 - HARD, "hard": HARD}
        right = sum(mass[kind] * (SHARES[kind] * RIGHT[kind])[kept].sum() for kind in mass)
        found.append(right / sum(mass[kind] * SHARES[kind][kept].sum() for kind in mass))
    return found


def drawn(random, num_prompts, *, sizes=SIZE):
    """Prompts whose verdicts are right together or wrong together: as dependent as verdicts can be."""
    rows = []
    for prompt in range(num_prompts):
        kind = "hard" if random.random() < HARD else "easy"
        luck, level = random.random(), random.choice(4, sizes[kind], p=SHARES[kind])
        rows += [(prompt, MARGINS[one], luck < RIGHT[kind][one]) for one in level]
    return trial(*rows)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [SIZE, {"easy": 1, "hard": 1}], ids=["dependent", "one a prompt"])
def test_a_precision_that_is_not_there_is_certified_as_rarely_as_promised(sizes):
    thresholds = (0.0, 1.0, 2.0)
    true = precisions(thresholds)
    assert true == sorted(true)
    # Wanted: a hair above the true precision at the middle threshold, so that 0 and 1 are both wrong answers, 1 barely.
    wanted, risk, num_runs = true[1] + 1e-9, 0.1, 600
    random = np.random.default_rng(7)
    chosen = [
        calibrate(drawn(random, 150, sizes=sizes), thresholds, precision=wanted, confidence=1 - risk).threshold
        for _ in range(num_runs)
    ]
    num_wrong = sum(threshold is not None and threshold < 2.0 for threshold in chosen)
    assert num_wrong <= num_runs * risk + 3 * math.sqrt(num_runs * risk * (1 - risk))


@pytest.mark.slow
def test_a_binomial_over_dependent_verdicts_would_break_the_promise():
    # The simulation has teeth: the same draws, each verdict taken for independent, are wrong far more often.
    true, random = precisions((0.0,))[0], np.random.default_rng(8)
    runs = [drawn(random, 150, sizes={"easy": 6, "hard": 6}) for _ in range(200)]
    alone = [run._replace(prompt=np.arange(len(run.prompt))) for run in runs]
    assert np.mean([p_value(run, 0.0, true) <= 0.1 for run in runs]) <= 0.1 + 3 * math.sqrt(0.09 / 200)
    assert np.mean([p_value(run, 0.0, true) <= 0.1 for run in alone]) > 0.2


def test_a_precision_that_is_there_is_found():
    random = np.random.default_rng(9)
    chosen = [
        calibrate(drawn(random, 300), (0.0, 1.0, 2.0), precision=0.75, confidence=0.9).threshold for _ in range(50)
    ]
    assert precisions((0.0,))[0] > 0.8
    assert np.mean([threshold == 0.0 for threshold in chosen]) > 0.5


TARGET = {"precision": 0.9, "confidence": 0.95, "seed": 0}


def batch(*cases):
    lengths = [{one.id: float(len(one.text)) for one in case.responses} for case in cases]
    lines = [
        Scores(prompt=case.prompt.id, language=case.prompt.language, scores=own)
        for case, own in zip(cases, lengths, strict=True)
    ]
    (scored,) = with_margins(zip(cases, lines, strict=True), SUPERVISED)
    return scored


def test_a_survey_takes_what_people_judged_too_and_one_id_for_one_prompt():
    both = judged("p", llm=("a>b", "b>c", "a=c"), human=("a>b", "c>b", "b>c", "a>c"))
    english = judged("p", llm=("b>a",), human=("b>a",), language="en")
    found = survey_margins([batch(both), batch(english, judged("q"))], human_ties="leave_out")
    assert found.margins.tolist() == [2.0, 1.0, -2.0, 2.0]
    # People are split on b, c: left out. Both cases of p are one prompt.
    assert found.labelled.prompt.tolist() == [0, 0]
    assert found.labelled.is_right.tolist() == [True, True]
    assert (found.num_scores, found.num_unscored) == (9, 0)
    strictly = survey_margins([batch(both)], human_ties="wrong")
    assert strictly.labelled.is_right.tolist() == [True, False]


def some(margin, right):
    labelled = LabelledVerdicts(np.arange(len(right)), np.array(margin, float)[: len(right)], np.array(right, bool))
    return MarginSurvey(np.arange(len(margin)), np.array(margin, float), labelled, len(margin) * 2, 0)


def test_rows_by_threshold_count_by_hand():
    found = some([2.0, 1.0, -1.0, np.nan, 3.0], [True, False, True])
    rows = rows_by_threshold(found, found.labelled, (2.0, 0.0), seed=0)
    assert [(row.threshold, row.num_kept, row.coverage) for row in rows] == [(0.0, 3, 0.6), (2.0, 2, 0.4)]
    assert [(row.precision.value, row.precision.n) for row in rows] == [(0.5, 2), (1.0, 1)]
    lines = threshold_table(rows).splitlines()
    assert "60.0%" in lines[1]
    assert lines[2].split()[:4] == ["2", "2", "40.0%", "1.000"]
    turned = found.labelled._replace(margin=-found.labelled.margin)
    assert threshold_table(rows_by_threshold(found, turned, (5.0,), seed=0)).endswith("-")


def test_a_calibration_without_a_key_is_refused():
    cases = some([1.0], [True])
    empty = some([], [])
    with pytest.raises(EvidenceError, match="no pair is judged strictly both by people and"):
        calibrate_threshold(cases, empty, **TARGET, where="h.jsonl")
    with pytest.raises(EvidenceError, match=r"certify no precision at all|at most"):
        calibrate_threshold(cases, some([1.0] * 3, [True, True, False]), **TARGET, where="h.jsonl")
    enough = some([1.0] * 100, [True] * 99 + [False])
    assert calibrate_threshold(cases, enough, **TARGET, where="h.jsonl").threshold == 0.0


def test_a_calibration_on_verdicts_that_contradict_people_nowhere_is_refused():
    # A copy of people's verdicts would certify every threshold.
    copied = some([1.0] * 100, [True] * 100)
    with pytest.raises(EvidenceError, match=r"contradict people in none of 100 verdicts .*their verdicts are people's"):
        calibrate_threshold(some([1.0], [True]), copied, **TARGET, where="h.jsonl")


def test_a_tau_that_keeps_nothing_shows_what_others_keep():
    with pytest.raises(EvidenceError, match="threshold 4 drops everything") as error:
        check_some_kept(some([1.0, 2.0, 3.0], []), 4.0, where="c.jsonl")
    assert "100.0%" in str(error.value)
    with pytest.raises(EvidenceError, match="agrees with none of 2"):
        check_some_kept(some([-1.0, np.nan], []), 0.0, where="c.jsonl")
    check_some_kept(some([1.0], []), 1.0, where="c.jsonl")
