"""The section "more measures": of each evaluation what lies beside accuracy and exact match."""

from collections.abc import Mapping, Sequence

from steelyard.evaluation.measures.measured_figures import regret_figure, reliability_figure
from steelyard.evaluation.measures.measured_tables import (
    calibration_table,
    group_measures,
    measure_table,
    policy_table,
    spread_table,
    weight_table,
)
from steelyard.evaluation.tables import Grouped, Panel, Table, word
from steelyard.report.measured_contents import MoreMeasured, RewardSpreads
from steelyard.report.sections import Section


def more_section(measured: Mapping[str, MoreMeasured], evidence: Sequence[str]) -> Section:
    """Each model's tables and figures; the curves of best-of-N of all models stand in one figure."""
    panels: list[Panel] = []
    for name, own in measured.items():
        panels += _panels_of(f"{name} · " if len(measured) > 1 else "", own)
    regrets = {name: own.measures.regret.tiers for name, own in measured.items() if own.measures.regret is not None}
    curve = regret_figure(regrets, "tiers_lost")
    if curve is not None:
        panels.append(Panel(word("best_of_n"), curve, (), "note_regret"))
    return Section("more_measures", tuple(evidence), tuple(panels))


def _panels_of(prefix: str, own: MoreMeasured) -> list[Panel]:
    measures = own.measures
    panels: list[Panel] = []
    main = _grouped(("", measure_table(measures)))
    if main:
        panels.append(Panel(prefix + word("beside_accuracy"), None, main))
    groups = [(name, group_measures(measures, name)) for name in ("category", "language")]
    if _grouped(*groups):
        panels.append(Panel(prefix + word("choices_by_group"), None, _grouped(*groups)))
    policies = _grouped(("", policy_table(own)))
    if policies:
        panels.append(Panel(prefix + word("tie_policies"), None, policies))
    weights = _grouped(("", weight_table(own)))
    if weights:
        panels.append(Panel(prefix + word("weights"), None, weights))
    if measures.calibration is not None:
        numbers = (Grouped("", calibration_table(measures.calibration)),)
        figure = reliability_figure(measures.calibration)
        panels.append(Panel(prefix + word("calibration"), figure, numbers, "note_calibration"))
    if measures.rewards is not None:
        panels.append(Panel(prefix + word("reward_statistics"), None, _spreads(measures.rewards)))
    return panels


def _spreads(rewards: RewardSpreads) -> tuple[Grouped, ...]:
    whole = {} if rewards.overall is None else {word("everything"): rewards.overall}
    return _grouped(
        ("", spread_table(whole)),
        ("language", spread_table(rewards.by_language) if len(rewards.by_language) > 1 else None),
        ("category", spread_table(rewards.by_category) if len(rewards.by_category) > 1 else None),
    )


def _grouped(*named: tuple[str, Table | None]) -> tuple[Grouped, ...]:
    return tuple(Grouped(name, own) for name, own in named if own is not None and own.rows)
