"""The measures beside accuracy as tables: policies, choices, length, people, calibration, rewards by group."""

from collections.abc import Callable, Mapping

from steelyard.evaluation.tables import DASH, Table, count, decimal, percent, reason, spread, table, word
from steelyard.report.measured_contents import (
    Calibrated,
    Calibration,
    Means,
    Measures,
    MoreMeasured,
    Policy,
    Spread,
)
from steelyard.report.summary_readers import Estimate

Shown = Callable[[float | None], str]
_QUANTILES = ("0.05", "0.25", "0.5", "0.75", "0.95")


def policy_table(found: MoreMeasured) -> Table | None:
    """Accuracy and exact match with what is tied counted wrong, half and right. None where it is not known."""
    has_overall = any(own.overall is not None for own in found.policies.values())
    rows = [
        (
            word(f"policy_{name}"),
            *(_overall(own) if has_overall else ()),
            percent(own.accuracy.value),
            spread(own.accuracy),
            percent(own.accuracy_micro.value),
            spread(own.accuracy_micro),
            percent(own.exact_match.value),
            spread(own.exact_match),
            percent(own.exact_match_micro.value),
        )
        for name in ("wrong", "half", "right")
        if (own := found.policies.get(name)) is not None
    ]
    headline = ("bench_overall", "interval") if has_overall else ()
    columns = (
        "policy", *headline, "accuracy", "interval", "accuracy_micro", "interval", "exact_match", "interval",
        "exact_match_micro",
    )  # fmt: skip
    return table(columns, rows) if rows else None


def _overall(own: Policy) -> tuple[str, str]:
    return (percent(own.overall.value), spread(own.overall)) if own.overall is not None else (DASH, DASH)


def weight_table(found: MoreMeasured) -> Table | None:
    """What each category weighs in each kind of mean. None where there is one category, or it is not known."""
    kinds = [name for name in ("macro", "accuracy_micro", "exact_match_micro") if name in found.weights]
    names = list(found.weights.get("macro", {}))
    rows = [(name, *(percent(found.weights[kind].get(name)) for kind in kinds)) for name in names]
    columns = ("category", *(f"weight_{kind}" for kind in kinds))
    return table(columns, rows) if len(rows) > 1 else None


def measure_table(own: Measures) -> Table | None:
    """A row a measure: the mean over categories and over everything, with intervals. None where there is none."""
    rows: list[tuple[str, ...]] = []
    if own.kendall_tau is not None:
        rows.append(_row(word("kendall_tau"), own.kendall_tau, None, decimal))
    if own.top_1 is not None:
        rows.append(_row(word("top_1"), own.top_1.half, own.top_1.chance, percent))
    if own.regret is not None:
        rows.append(_row(word("tiers_lost"), own.regret.tiers.of_all.model, own.regret.tiers.of_all.chance, decimal))
        for name, lost in own.regret.ratings.items():
            rows.append(_row(f"{word('lost_of')} {name}", lost.of_all.model, lost.of_all.chance, decimal))
    if own.length is not None:
        rows += [
            _row(word("as_it_is"), own.length.raw, None, percent),
            _row(f"{word('like_length')} (1:{own.length.matched_ratio:g})", own.length.matched, None, percent),
            _adjusted(own.length.adjusted),
            _row(word("better_not_longer"), own.length.better_not_longer, None, percent),
            _row(word("better_longer"), own.length.better_longer, None, percent),
        ]
    if own.human_ceiling is not None:
        for rule in ("resolved", "majority"):
            people = own.human_ceiling.resolved if rule == "resolved" else own.human_ceiling.majority
            rows.append(_row(word(f"people_{rule}"), people.human, None, percent))
            rows.append(_row(word(f"model_{rule}"), people.model, None, percent))
    shown = [row for row in rows if row[1] != DASH or row[3] != DASH]
    columns = ("measure", "mean_of_categories", "interval", "mean_of_all", "interval", "at_random", "n")
    return table(columns, shown) if shown else None


def group_measures(own: Measures, group: str) -> Table | None:
    """Rank correlation, first choice and tiers lost of each category or language. None for fewer than two groups."""
    if own.kendall_tau is None or own.top_1 is None or own.regret is None:
        return None
    sides = (own.kendall_tau, own.top_1.half, own.regret.tiers.of_all.model)
    each = [side.by_category if group == "category" else side.by_language for side in sides]
    names = sorted({name for side in each for name in side})
    rows = [
        (
            name,
            *(
                cell
                for side, shown in zip(each, (decimal, percent, decimal), strict=True)
                for cell in (shown(side.get(name, Estimate()).value), _ends(side.get(name, Estimate()), shown))
            ),
            count(each[1].get(name, Estimate()).n),
        )
        for name in names
    ]
    columns = ("group", "kendall_tau", "interval", "top_1", "interval", "tiers_lost", "interval", "prompts")
    return table(columns, rows) if len(rows) > 1 else None


def calibration_table(own: Calibration) -> Table:
    """Calibration error, Brier score and log-loss, as the rewards are and with a fitted temperature."""
    rows = [
        _calibrated(word("rewards_as_they_are"), own),
        _calibrated(f"{word('with_temperature')} {_ended(own.temperature)}", own.cross_validated),
    ]
    columns = ("rewards_column", "calibration_error", "interval", "brier", "interval", "log_loss", "interval")
    return table(columns, rows)


def spread_table(groups: Mapping[str, Spread]) -> Table:
    """Mean, spread and quantiles of the rewards of each group, and the share without a score."""
    rows = [
        (
            name,
            count(own.mean.n),
            decimal(own.mean.value),
            _ends(own.mean, decimal),
            decimal(own.standard_deviation.value),
            *(decimal(own.quantiles.get(quantile, Estimate()).value) for quantile in _QUANTILES),
            percent(own.share_unscored.value),
        )
        for name, own in groups.items()
    ]
    quantiles = ("quantile_5", "quantile_25", "median", "quantile_75", "quantile_95")
    return table(("group", "responses", "mean", "interval", "deviation", *quantiles, "without_score"), rows)


def _row(title: str, own: Means, chance: Means | None, shown: Shown) -> tuple[str, ...]:
    macro, micro = own.macro, own.micro
    beside = DASH if chance is None else shown(chance.macro.value)
    return (title, shown(macro.value), _ends(macro, shown), shown(micro.value), _ends(micro, shown), beside, _n(micro))


def _adjusted(own: Estimate) -> tuple[str, ...]:
    row = _row(word("no_difference"), Means(micro=own), None, percent)
    return row if own.why is None or own.value is not None else (*row[:3], reason(own), *row[4:])


def _n(estimate: Estimate) -> str:
    return count(estimate.n)


def _calibrated(title: str, own: Calibrated) -> tuple[str, ...]:
    error, brier, loss = own.expected_calibration_error, own.brier, own.log_loss
    cells = [(decimal(one.value), _ends(one, decimal)) for one in (error, brier, loss)]
    return (title, *(cell for pair in cells for cell in pair))


def _ended(estimate: Estimate) -> str:
    ends = "" if estimate.low is None else f" ({_ends(estimate, decimal)})"
    return decimal(estimate.value) + ends


def _ends(estimate: Estimate, shown: Shown) -> str:
    if estimate.low is None or estimate.high is None:
        return reason(estimate)
    return f"{shown(estimate.low)} … {shown(estimate.high)}" if shown is not percent else spread(estimate)
