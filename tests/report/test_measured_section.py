from steelyard.evaluation.tables import word
from steelyard.report.measured_contents import (
    Calibration,
    FirstChoice,
    Lost,
    Means,
    Measures,
    MoreMeasured,
    Policy,
    Regret,
    RewardSpreads,
    Sides,
    Spread,
    Tau,
)
from steelyard.report.measured_section import more_section
from steelyard.report.summary_readers import Estimate

VALUE = Estimate(value=0.5, low=0.4, high=0.6, n=4)
MEANS = Means(macro=VALUE, micro=VALUE, by_language={"zh": VALUE, "he": VALUE})
CURVE = tuple(Sides(budget=budget, model=MEANS, chance=MEANS) for budget in (2, 3))
FULL = MoreMeasured(
    measures=Measures(
        kendall_tau=Tau(macro=VALUE, micro=VALUE, by_language={"zh": VALUE, "he": VALUE}),
        top_1=FirstChoice(half=MEANS, chance=MEANS),
        regret=Regret(tiers=Lost(curve=CURVE, of_all=Sides(model=MEANS, chance=MEANS))),
        calibration=Calibration(brier=VALUE),
        rewards=RewardSpreads(overall=Spread(mean=VALUE), by_language={"zh": Spread(), "he": Spread()}),
    ),
    policies={"wrong": Policy(accuracy=VALUE)},
)


def test_one_model_has_its_panels_in_order():
    section = more_section({"m": FULL}, ["evidence"])
    keys = ("beside_accuracy", "choices_by_group", "tie_policies", "calibration", "reward_statistics", "best_of_n")
    assert [panel.title for panel in section.panels] == [word(key) for key in keys]
    assert (section.anchor, section.evidence) == ("more_measures", ("evidence",))
    rewards = section.panels[4]
    assert [part.by for part in rewards.tables] == ["", "language"]


def test_several_models_are_named_and_share_the_curves():
    section = more_section({"m": FULL, "other": FULL}, [])
    titles = [panel.title for panel in section.panels]
    assert f"other · {word('calibration')}" in titles
    assert titles.count(word("best_of_n")) == 1
    assert [mark.name for mark in section.panels[-1].figure.legend][:2] == ["m", "other"]


def test_an_evaluation_without_them_has_no_panel():
    assert more_section({"m": MoreMeasured()}, []).panels == ()
