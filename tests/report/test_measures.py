from msgspec.structs import asdict

from evaluation_summaries import NOTHING, around, estimate, evaluation_summary, means, plain_means
from steelyard.evaluation.measure import MeasureRow, means_row
from steelyard.evaluation.measures.calibration import Calibration, Reliability
from steelyard.evaluation.measures.kendall_tau import RankCorrelation
from steelyard.evaluation.measures.regret import RegretCurve, RegretOfAll, RegretOfN, RegretSummary
from steelyard.evaluation.measures.rewards import RewardDistribution, RewardDistributions
from steelyard.evaluation.measures.top_1 import TopOne
from steelyard.evaluation.tables import DASH, DECIMAL, MINUS, language_word, word
from steelyard.evaluation.tie_policies import Policy
from steelyard.report.evaluation_sections import measure_table, measures_section

GROUPS = means(0.5, zh=0.5, he=0.4)
CURVE = tuple(RegretOfN(budget=budget, model=plain_means(0.5), chance=plain_means(0.7)) for budget in (2, 3))
REWARDS = RewardDistribution(
    mean=around(0.5), standard_deviation=around(1.0), quantiles=dict.fromkeys("abcde", around(0.5)),
    share_unscored=around(0.1), unscored={},
)  # fmt: skip
RELIABILITY = {"brier": around(0.2), "log_loss": NOTHING, "expected_calibration_error": NOTHING, "curve": ()}
FULL = evaluation_summary(
    measures={
        "kendall_tau": RankCorrelation(**asdict(GROUPS), constant_as_zero=GROUPS, num_constant=0, num_without_order=0),
        "top_1": TopOne(wrong=GROUPS, half=GROUPS, right=GROUPS, chance=GROUPS),
        "regret": RegretSummary(
            tiers=RegretCurve(curve=CURVE, of_all=RegretOfAll(model=GROUPS, chance=GROUPS)), ratings={}
        ),
        "calibration": Calibration(**RELIABILITY, temperature=NOTHING, cross_validated=Reliability(**RELIABILITY)),
        "rewards": RewardDistributions(overall=REWARDS, by_category={}, by_language={"zh": REWARDS, "he": REWARDS}),
    },
    policies={"wrong": Policy(accuracy=around(0.5), accuracy_micro=around(0.5), by_category={})},
)


def test_one_model_has_its_panels_in_order():
    section = measures_section({"m": FULL}, ["evidence"])
    keys = ("other_measures", "choices_by_group", "tie_policies", "calibration", "reward_statistics", "best_of_n")
    assert [panel.title for panel in section.panels] == [word(key) for key in keys]
    assert (section.anchor, section.evidence) == ("more_measures", ("evidence",))
    assert [part.by for part in section.panels[1].tables] == ["category", "language"]
    assert [part.by for part in section.panels[4].tables] == ["", "language"]


def test_several_models_are_named_and_share_the_curves():
    section = measures_section({"m": FULL, "other": FULL}, [])
    titles = [panel.title for panel in section.panels]
    assert f"other · {word('choices_by_group')}" in titles
    (shared,) = [panel for panel in section.panels if panel.title == word("calibration")]
    assert [part.by for part in shared.tables] == ["m", "other"]
    assert shared.tables[0].table == shared.tables[1].table
    assert titles.count(word("best_of_n")) == 1
    assert [mark.name for mark in section.panels[-1].figure.legend][:2] == ["m", "other"]


def test_an_evaluation_without_them_has_no_panel():
    assert measures_section({"m": evaluation_summary()}, []).panels == ()


def test_a_row_a_measure_with_chance_beside_it():
    table = measure_table(
        [
            means_row("tau", means(-0.2), DECIMAL),
            means_row("top", means(0.6), chance=means(0.25)),
            MeasureRow("adjusted", None, around(0.62)),
            MeasureRow("not told", None, estimate(n=10, why="length alone")),
            MeasureRow("not measured", estimate(), estimate()),
        ]
    )
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["tau"] == (
        f"{MINUS}0.200", f"{MINUS}0.300 … {MINUS}0.100", f"{MINUS}0.150", f"{MINUS}0.250 … {MINUS}0.050", DASH, "10"
    )  # fmt: skip
    assert rows["top"][:2] == ("60.0%", f"50.0{DASH}70.0%")
    assert rows["top"][4] == "25.0%"
    assert rows["adjusted"][:3] == (DASH, DASH, "62.0%")
    assert rows["not told"][:3] == (DASH, DASH, word("why_length_alone", "length alone"))
    assert "not measured" not in rows
    assert measure_table([]) is None


def test_groups_stand_in_one_table_where_there_are_several():
    by_language = measures_section({"m": FULL}, []).panels[1].tables[1].table
    assert [row[0] for row in by_language.rows] == [language_word("he"), language_word("zh")]
    assert by_language.rows[1][1::2] == ("0.500", "50.0%", "0.500", "10")
