"""Arms on a bench of subsets: values of a seed, spreads, differences and corrections in every column, by hand."""

import msgspec
import numpy as np
import pytest

from evaluated_benches import evaluated_on_single, evaluated_on_two
from steelyard.evaluation.bench_table import BenchColumn, column_formulas
from steelyard.evaluation.evaluations import read_evaluations
from steelyard.evaluation.experiments import ArmDifference
from steelyard.recipes.ablate import AblationResult
from steelyard.recipes.measured_arms import MeasuredArms, compare_arms, measure_arm
from steelyard.report.page import page_strings
from steelyard.statistics.significance import holm
from steelyard.views.experiments import arm_record, bench_panels

GOOD = [
    {"open": "rrrrrrrrrr", "human": "rrrrrrrrrr"},
    {"open": "rrrrrrrrww", "human": "rrrrrrrrrr"},
    {"open": "rrrrrrwwww", "human": "rrrrrppppp"},
]
BAD = [{"open": "wwwwwwwwww", "human": "wwwwwwwwpp"}] * 3
SEEDS = range(3)


class Trained:
    """What an arm needs of the summary of a training."""

    num_prompts, num_pairs, num_weights = 10, 20, 30


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arms")
    runs = {
        "two": [evaluated_on_two(folder, f"{name}{seed}", outcomes[seed])
                for name, outcomes in (("good", GOOD), ("bad", BAD)) for seed in SEEDS],
        "single": [evaluated_on_single(folder, f"{name}{seed}", outcomes)
                   for name, outcomes in (("good", "rrrrrrrrrr"), ("bad", "wwwwwwwwww")) for seed in SEEDS],
    }  # fmt: skip
    return {bench: _measured(folders) for bench, folders in runs.items()}


def _measured(folders):
    evaluations = read_evaluations(folders)
    columns = column_formulas(evaluations)
    arms, statistics = [], {}
    for place, name in enumerate(("good", "bad")):
        evaluated = evaluations.evaluated[3 * place : 3 * place + 3]
        arm, table = measure_arm(name, evaluations.layout, columns, trained=[Trained] * 3, evaluated=evaluated)
        arms.append(arm)
        statistics[name] = table
    return MeasuredArms(tuple(arms), statistics, evaluations.layout, columns)


def by_key(arm):
    return {value.column.key: value for value in arm.values}


def test_every_column_has_the_mean_over_seeds_and_their_spread(measured):
    good = by_key(measured["two"].arms[0])
    assert list(good) == [
        "two_open_accuracy", "two_open_exact_match", "two_human_accuracy", "two_human_exact_match", "two_overall"
    ]  # fmt: skip
    # Open: 10, 8 and 6 of 10 prompts. Human: 10, 10, and 5 of 10 with 15 + 10 of 30 pairs.
    assert good["two_open_exact_match"].by_seed == pytest.approx((1.0, 0.8, 0.6))
    assert good["two_open_exact_match"].value.value == pytest.approx(0.8)
    assert good["two_open_exact_match"].spread == pytest.approx(0.2)
    assert good["two_human_accuracy"].by_seed == pytest.approx((1.0, 1.0, 25 / 30))
    overall = [1.0, (0.8 + 0.8 + 1 + 1) / 4, (0.6 + 0.6 + 25 / 30 + 0.5) / 4]
    assert good["two_overall"].by_seed == pytest.approx(overall)
    assert good["two_overall"].value.value == pytest.approx(np.mean(overall))
    assert good["two_overall"].spread == pytest.approx(np.std(overall, ddof=1))
    for value in good.values():
        assert value.value.low <= value.value.value <= value.value.high


def test_the_sizes_of_a_subset_are_its_own(measured):
    good = by_key(measured["two"].arms[0])
    assert {name: value.value.n for name, value in good.items() if "overall" not in name} == {
        "two_open_accuracy": 30, "two_open_exact_match": 10, "two_human_accuracy": 30, "two_human_exact_match": 10
    }  # fmt: skip


def test_differences_are_paired_in_every_column_and_corrected_over_all(measured):
    (difference,) = compare_arms(measured["two"], [("good", "bad")])
    columns = {column.column.key: column for column in difference.columns}
    assert columns["two_open_exact_match"].difference.value == pytest.approx(0.8)
    # Bad: 8 prompts without a right pair, and two of 10 with 2 of 3 pairs right.
    assert columns["two_human_accuracy"].difference.value == pytest.approx((2 + 25 / 30) / 3 - 4 / 30)
    for column in difference.columns:
        assert column.difference.low > 0
        assert column.difference.low <= column.difference.value <= column.difference.high
    assert [column.p_corrected for column in difference.columns] == pytest.approx(
        holm([column.p for column in difference.columns])
    )
    assert (difference.accuracy.n, difference.exact_match.n) == (60, 20), "each prompt once"
    assert difference.columns[-1].column.measure == "overall"


def test_an_arm_does_not_differ_from_itself(measured):
    (difference,) = compare_arms(measured["two"], [("good", "good")])
    assert {column.difference.value for column in difference.columns} == {0.0}
    assert all(column.p > 0.9 for column in difference.columns)


def test_a_bench_of_single_pairs_has_its_accuracy_alone(measured):
    assert [column.column for column in measured["single"].columns] == [
        BenchColumn(bench="single", measure="accuracy", is_headline=True)
    ]
    arm = measured["single"].arms[0]
    (value,) = arm.values
    assert value.value == arm.accuracy
    assert list(bench_panels([arm], ())) == []


def test_several_benches_are_one_table_with_the_differences_of_all(measured):
    results = {
        bench: AblationResult(each.arms, compare_arms(each, [("bad", "good")])) for bench, each in measured.items()
    }
    both = AblationResult.join(results)
    record = msgspec.json.decode(msgspec.json.encode(both.record()))
    assert len(record["differences"]) == 2
    p_values = [column.p for each in both.differences for column in each.columns]
    assert len(p_values) == 6
    assert [column.p_corrected for each in both.differences for column in each.columns] == pytest.approx(holm(p_values))
    differences = msgspec.convert(record["differences"], tuple[ArmDifference, ...])
    arms, shown = bench_panels(both.arms, differences)
    rows = arms.tables[0].table.rows
    assert [row[0] for row in rows] == ["good", "bad"]
    assert rows[0][2] == "80.0% ± 20.0*"
    assert len(arms.tables[0].table.columns) == 1 + 5 + 1
    (row,) = shown.tables[0].table.rows
    assert row[0] == "bad \N{EN DASH} good"
    assert row[2].startswith("\N{MINUS SIGN}80.0* [")
    strings = page_strings().table
    for panel in (arms, shown):
        assert set(strings[panel.note]) == {"en", "zh"}


def test_the_test_of_exact_match_is_that_of_its_interval(measured):
    two = measured["two"]
    exact = BenchColumn(bench="two", measure="exact_match")
    column = two.columns[0]._replace(column=exact)
    (difference,) = compare_arms(two._replace(columns=(column,)), [("good", "bad")])
    (shown,) = difference.columns
    assert (shown.difference, shown.p) == (difference.exact_match, difference.p_exact_match)
    assert shown.difference.low > 0
    assert shown.p < 0.05
    (none,) = compare_arms(two._replace(columns=(column,)), [("good", "good")])
    assert none.columns[0].p > 0.05
    assert none.columns[0].difference.low <= 0 <= none.columns[0].difference.high


def test_a_row_of_python_has_every_column(measured):
    row = arm_record(measured["two"].arms[0])
    assert row["two_open_exact_match"] == pytest.approx(0.8)
    assert row["two_open_exact_match_spread"] == pytest.approx(0.2)
    assert len(row["two_overall_by_seed"]) == 3
    assert "values" not in row
