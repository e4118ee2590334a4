import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from simulated_panels import panel_cases, reliability_of
from steelyard.core.text import natural_order
from steelyard.ranking.judge_reliability import (
    FEWEST_VERDICTS,
    MOST_JUDGES,
    _median_of_others,
    replaced,
)
from steelyard.statistics.intervals import Estimate
from strategies import case, judgment


def test_agreement_by_hand():
    """Ten prompts: ann and bob agree on all, cat agrees with both on two, and each has one tie more on two."""
    cases = [
        case(
            id=f"p{number}",
            responses="ab",
            judgments=[
                judgment("a>b", judge="ann"),
                judgment("a>b", judge="bob"),
                judgment("a>b" if number < 2 else "a=b" if number < 4 else "b>a", judge="cat"),
            ],
        )
        for number in range(10)
    ]
    cat, ann, bob = reliability_of(cases).judges
    assert (cat.judge, cat.agreement.value, cat.num_pairs) == ("cat", 0.2, 10)
    # Strict on both sides: 8 of 10 pairs, 2 of them alike.
    assert cat.agreement_of_strict.value == pytest.approx(2 / 8)
    # Ann agrees with bob on all and with cat on two: (1 + 0.2) / 2.
    assert ann.agreement.value == pytest.approx(0.6)
    assert cat.below_median.value == pytest.approx(0.4)
    assert ann.below_median.value == pytest.approx((0.6 + 0.2) / 2 - 0.6)
    # Chance: cat says a 0.2, b 0.6, tie 0.2; the others always a. Kappa is (0.2 - 0.2) / (1 - 0.2).
    assert cat.kappa.value == pytest.approx(0.0)
    assert bob.agreement == ann.agreement


def test_the_median_of_the_others():
    values = np.array([[0.1, 0.5, 0.9], [0.3, 0.3, 0.2]])
    assert _median_of_others(values).tolist() == [[0.7, 0.5, 0.3], [0.25, 0.25, 0.3]]
    assert _median_of_others(np.array([[4.0, 1.0, 3.0, 2.0]])).tolist() == [[2.0, 3.0, 2.0, 3.0]]


def test_a_judge_that_answers_at_random_is_named_in_nearly_every_panel():
    """Three judges of 150 prompts, 0.85 right where a prompt is not hard; the third guesses."""
    named = [reliability_of(panel_cases(150, (0.85, 0.85, 0.5), seed=seed)).judges[0] for seed in range(20)]
    assert sum(judge.judge == "j2" and judge.stands_out for judge in named) >= 18


def test_a_fair_panel_is_accused_at_most_at_the_level():
    """Five equal judges, forty panels: at a true rate of 5% six or more accusations have a probability of 1.4%."""
    accused = sum(
        any(judge.stands_out for judge in reliability_of(panel_cases(60, (0.8,) * 5, seed=seed)).judges)
        for seed in range(40)
    )
    assert accused <= 5


def test_with_two_judges_nobody_can_be_compared():
    both = reliability_of(panel_cases(40, (0.9, 0.5), seed=1, judges_a_prompt=2)).judges
    assert both[0].agreement == both[1].agreement
    assert all(judge.below_median is None and not judge.stands_out for judge in both)


def test_few_prompts_of_one_judge_are_no_evidence_against_it():
    cases = panel_cases(100, (0.9, 0.9, 0.9), seed=2)
    lone = [msgspec.structs.replace(one, judgments=(*one.judgments, judgment("c>a", judge="new"))) for one in cases[:9]]
    new = next(judge for judge in reliability_of([*lone, *cases[9:]]).judges if judge.judge == "new")
    assert new.agreement.value < 0.3
    assert new.p is None
    assert not new.stands_out


def test_a_judge_that_declines_is_named_with_its_batch():
    cases = panel_cases(200, (0.9, 0.9, 0.9), seed=3, late={1: 0.3}, batches=10)
    found = reliability_of(cases, batch=30)
    assert found.ordered_by == "batch"
    changed = {judge.judge: judge.change for judge in found.judges if judge.change}
    # Batches 1 to 5 are the first half. The agreement of the other two falls with it, by half as much.
    assert changed["j1"].since in ("batch 5", "batch 6", "batch 7")
    assert changed["j1"].before.value - changed["j1"].after.value > 0.15


@pytest.mark.parametrize(
    ("below", "p", "stands_out"),
    [(0.3, 0.049, True), (0.3, 0.05, False), (-0.3, 0.001, False), (0.0, 0.001, False), (None, None, False)],
)
def test_a_judge_stands_out_below_the_median_with_a_p_value_below_the_level(below, p, stands_out):
    judge = reliability_of(panel_cases(20, (0.9, 0.9, 0.9), seed=1)).judges[0]
    compared = None if below is None else Estimate(below, below - 0.1, below + 0.1, 10)
    assert replaced(judge, below_median=compared, p=p).stands_out is stands_out


def test_the_p_value_is_that_of_the_interval_s_end_nearest_to_0():
    judges = reliability_of(panel_cases(100, (0.9, 0.85, 0.7), seed=4)).judges
    worst = min(judges, key=lambda judge: judge.p)
    below = worst.below_median
    assert below.value > 0
    # Each of the 100 prompts has a verdict of all three judges: 99 degrees of freedom, and three tests.
    t = below.value / (below.value - below.low) * stats.t.ppf(0.975, 99)
    assert 0 < worst.p < 1
    assert worst.p == pytest.approx(3 * 2 * stats.t.sf(t, 99))


def test_long_agreement_over_time_is_kept_of_one_half_of_the_prompts(monkeypatch):
    cases = panel_cases(400, (0.9, 0.9, 0.9), seed=3, late={1: 0.3}, batches=10)
    whole = reliability_of(cases, batch=30)
    monkeypatch.setattr("steelyard.ranking.judge_reliability._MOST_ENTRIES", 900)  # of 400 prompts of three judges
    halved = reliability_of(cases, batch=30)
    (all_prompts, half) = (next(one for one in found.judges if one.judge == "j1") for found in (whole, halved))
    assert all_prompts.change.before.n + all_prompts.change.after.n == 400
    assert 160 < half.change.before.n + half.change.after.n < 240
    assert half.change.since in ("batch 5", "batch 6", "batch 7")
    assert (half.agreement, half.p) == (all_prompts.agreement, all_prompts.p)


def test_nothing_is_said_of_changes_without_an_order():
    cases = panel_cases(200, (0.9, 0.9, 0.9), seed=3, late={1: 0.3})
    assert reliability_of(cases).ordered_by is None
    named = [
        msgspec.structs.replace(
            one,
            judgments=tuple(
                msgspec.structs.replace(each, batch="trial" if at % 2 else "formal") for each in one.judgments
            ),
        )
        for at, one in enumerate(cases)
    ]
    assert reliability_of(named).ordered_by is None


def test_times_order_judgments_whatever_their_order_in_the_file():
    cases = [
        msgspec.structs.replace(
            one,
            judgments=tuple(
                msgspec.structs.replace(each, meta={"created_at": f"2026-03-{1 + at // 10:02}T10:00:00Z"})
                for each in one.judgments
            ),
        )
        for at, one in enumerate(panel_cases(200, (0.9, 0.9, 0.9), seed=3, late={1: 0.3}))
    ]
    found = reliability_of(cases[::-1])
    assert found.ordered_by == "time"
    change = next(judge.change for judge in found.judges if judge.judge == "j1")
    assert change.since.startswith("2026-03-1")
    assert change.before.value > change.after.value


def test_the_numbers_of_batches_count_as_numbers():
    names = ["batch 10", "Batch 9", "batch 1b", "batch 1"]
    assert sorted(names, key=natural_order) == ["batch 1", "batch 1b", "Batch 9", "batch 10"]
    assert natural_order("批次２") > natural_order("批次1")


@pytest.mark.parametrize(
    ("short", "shown", "constant"),
    [
        ("a>b", None, "left"),
        ("a=b", None, "tie"),
        ("b>a", ("b", "a"), "first_shown"),
        ("a<b", ("a", "b"), "last_shown"),
    ],
)
def test_a_judge_with_one_answer_is_called_constant(short, shown, constant):
    def cases(number):
        return [
            case(
                id=f"p{at}",
                responses="ab",
                judgments=[
                    judgment(short, judge="same", shown=shown),
                    judgment("a>b" if at % 2 else "a<b", judge="x", shown=("a", "b") if at % 3 else ("b", "a")),
                    judgment("a>b" if at % 3 else "a<b", judge="y"),
                ],
            )
            for at in range(number)
        ]

    def of(number):
        return {judge.judge: judge.constant for judge in reliability_of(cases(number)).judges}

    assert of(FEWEST_VERDICTS) == {"same": constant, "x": None, "y": None}
    assert of(FEWEST_VERDICTS - 1)["same"] is None


def test_data_in_which_everybody_answers_alike_accuse_nobody():
    cases = [
        case(id=f"p{at}", responses="ab", judgments=[judgment("a>b", judge=name) for name in "xyz"]) for at in range(40)
    ]
    assert {judge.constant for judge in reliability_of(cases).judges} == {None}


def test_the_order_of_batches_of_lines_does_not_matter():
    cases = panel_cases(60, (0.9, 0.7, 0.8, 0.6), seed=5, batches=6)
    whole, parts = reliability_of(cases), reliability_of(cases, batch=7)
    for one, other in zip(whole.judges, parts.judges, strict=True):
        assert one.judge == other.judge
        assert one.agreement.value == pytest.approx(other.agreement.value)
        assert one.p == pytest.approx(other.p)


def test_data_written_one_way_accuse_nobody_next_to_a_judge_of_few_verdicts():
    cases = [
        case(
            id=f"p{at}",
            responses="ab",
            judgments=[judgment("a>b", judge=name) for name in ("x", "y", *(["few"] if at < 5 else []))],
        )
        for at in range(FEWEST_VERDICTS)
    ]
    assert {judge.judge: judge.constant for judge in reliability_of(cases).judges} == {
        "x": None,
        "y": None,
        "few": None,
    }


def test_judges_beyond_the_bound_are_left_out_of_changes_too():
    crowd = [
        case(id=f"c{at}", responses="ab", judgments=[judgment("a>b", judge=f"crowd{3 * at + n}") for n in range(3)])
        for at in range(2 * MOST_JUDGES // 3 + 1)
    ]
    late = panel_cases(200, (0.95, 0.95, 0.95), seed=1, late={2: 0.05}, batches=10)
    named = [
        replace(one, judgments=tuple(replace(each, batch=each.batch or "batch 0") for each in one.judgments))
        for one in (*crowd, *late)
    ]
    changed = {judge.judge for judge in reliability_of(late).judges if judge.change}
    assert "j2" in changed
    assert len(reliability_of(named).judges) == 2 * MOST_JUDGES


def test_a_batch_of_thousands_of_digits_has_a_place_in_the_order():
    assert natural_order("1" * 5000) < natural_order("2" * 5000)
    assert natural_order("9") < natural_order("1" * 5000)
