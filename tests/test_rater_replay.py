"""The replay of published judgments: shares and bounds that follow by hand."""

import numpy as np
import pytest
from author_prior import author_means, with_author_prior
from committee_evidence import committee_of, with_evidence
from rater_pool import pool_of
from rater_replay import Snapshot, Stopped, Trial, chosen_on_others, share_needed, with_stopping
from stopping_bounds import by_hindsight, smallest_sets, without_hindsight

from steelyard.annotation.plackett_luce import Raters
from steelyard.annotation.stopping import sureness
from steelyard.core.types import Case, Judgment, Prompt, Response
from steelyard.io.cases import write_cases

NUM_ITEMS = 40
EQUAL = Raters(np.full(3, 2.0), np.full(3, -3.0))


def case_of(number, judge_verdicts, kind="human"):
    """One pair, judged by each judge as its letter says."""
    judgments = tuple(
        Judgment(left="x", right="y", verdict={"l": "left", "r": "right", "t": "tie"}[letter], judge=judge, kind=kind)
        for judge, letter in judge_verdicts.items()
    )
    responses = (Response(id="x", text="one"), Response(id="y", text="other"))
    prompt = Prompt(id=str(number), messages=({"role": "user", "content": "?"},))
    return Case(prompt=prompt, responses=responses, judgments=judgments)


def cases_where_one_dissents():
    """Ann and Ben agree, left or right in turn; Cid says the opposite about half of the items."""
    return [
        case_of(number, {"ann": side, "ben": side, "cid": side if number % 4 < 2 else "lr"[side == "l"]})
        for number, side in enumerate("lr" * (NUM_ITEMS // 2))
    ]


def test_the_share_needed_is_where_tau_stays_at_the_target():
    course = [Snapshot(share, np.array([tau, tau])) for share, tau in ((0.2, 0.5), (0.4, 0.9), (0.6, 0.7), (0.8, 1.0))]
    # 0.9 is reached at 0.4 and lost again; for good two thirds of the way from 0.7 to 1.0.
    assert share_needed(course, 0.9, np.ones(2)) == pytest.approx(0.6 + 0.2 * 2 / 3)
    assert share_needed(course, 0.4, np.ones(2)) == pytest.approx(0.2)


def test_bounds_are_those_of_hand():
    pool = pool_of(cases_where_one_dissents(), None, 0)
    target = 0.99
    # One answer about each item is enough, nothing about none: 1 % of the items needs none.
    assert smallest_sets(pool, EQUAL, target) == pytest.approx(0.99 / 3)
    # Whoever knows how people vote asks Ann or Ben.
    assert without_hindsight(pool, EQUAL, target, [0] * NUM_ITEMS) == pytest.approx(0.99 / 3)
    # In a random order half of the items may begin with Cid, who is wrong about half of these.
    assert 0.99 / 3 < by_hindsight(pool, EQUAL, 0, target) < 0.75


def test_stopping_asks_the_third_where_two_differ_and_counts_the_calibration():
    pool = pool_of(cases_where_one_dissents(), None, 0)
    total = pool.taus(pool.ranked(EQUAL, np.ones(len(pool.item), np.bool_)))
    assert total == pytest.approx(1)
    trial = Trial(pool, EQUAL, 0, total, [0] * NUM_ITEMS)
    # From one answer each to nearly all of them; four items of the calibration have all.
    used = [each.used.sum() for each in with_stopping(trial, "sureness")]
    assert used == sorted(used)
    assert used[0] == NUM_ITEMS + 2 * 4
    assert used[-1] > 2 * NUM_ITEMS


def test_each_part_gets_what_the_others_chose():
    trial = Trial(pool_of(cases_where_one_dissents(), None, 0), EQUAL, 0, np.ones(NUM_ITEMS), [])
    cheap, enough, all_of_them = (
        Stopped(np.full(NUM_ITEMS, used), np.full(NUM_ITEMS, tau)) for used, tau in ((1, 0.9), (2, 0.995), (3, 1.0))
    )
    found, chosen = chosen_on_others(trial, [cheap, enough, all_of_them])
    assert chosen == [1] * 10
    assert found.used.tolist() == [2] * NUM_ITEMS


def test_a_committee_is_evidence_of_its_probability_and_no_part_of_the_ranking(tmp_path):
    cases = cases_where_one_dissents()
    write_cases(tmp_path / "judged.jsonl", [case_of(number, {"model": "l"}, "llm") for number in range(NUM_ITEMS)])
    pool = pool_of(cases, None, 0)
    committee = committee_of(cases, [], [tmp_path / "judged.jsonl"])
    probability = committee.probabilities(pool, EQUAL, 0)
    # One verdict of a judge of whom four labels are known, too few to be fitted to.
    assert probability == pytest.approx(0.75)
    with_models, raters = with_evidence(pool, EQUAL, committee, probability)
    nothing = np.zeros(len(pool.item), np.bool_)
    assert sureness(with_models.believed(raters, nothing)).of_pairs == pytest.approx(0.75, abs=0.03)
    assert with_models.ranked(raters, nothing).mean == pytest.approx(0)


def test_the_mean_of_an_author_comes_from_the_items_that_were_asked():
    strength = np.array([[1.0, -1.0], [3.0, 0.5], [9.0, 9.0]])
    authors = np.array([[0, 1], [0, -1], [1, 0]])
    means = author_means(strength, authors, np.array([True, True, False]))
    assert means == pytest.approx(np.array([[2.0, -1.0], [2.0, 0.0], [-1.0, 2.0]]))


def test_authors_order_the_items_about_which_nobody_was_asked():
    pool = pool_of([case_of(number, dict.fromkeys(("ann", "ben", "cid"), "l")) for number in range(NUM_ITEMS)], None, 0)
    authors = np.tile([0, 1], (NUM_ITEMS, 1))
    is_used = pool.item < NUM_ITEMS // 2
    items = with_author_prior(pool, EQUAL, is_used, authors).ranked(EQUAL, is_used)
    assert (items.mean[:, 0] > items.mean[:, 1]).all()
    assert pool.ranked(EQUAL, is_used).mean[-1] == pytest.approx(0)
