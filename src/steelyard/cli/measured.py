"""What `evaluate` prints of the measures beside accuracy: one line each, and only those that were measured."""

from collections.abc import Iterator
from typing import Any

_WIDTH = 26
_WHY_NOT = {
    "length alone": "the model is length alone, which says which pairs are right",
    "one length ratio": "all pairs have one ratio of lengths",
    "all right": "all pairs are right",
    "all wrong": "all pairs are wrong",
}


def measure_lines(summary: dict[str, Any]) -> Iterator[str]:
    """Of an evaluation: tie policies where scores are tied, then correlation, first choice, regret, length, people.

    Everything that is not shown stands in ``run.json`` and in the report.
    """
    if "outcomes" not in summary:
        yield from _policies(summary)
    measures = summary.get("measures", {})
    if "kendall_tau" in measures:
        yield from _choices(measures)
    if "length" in measures:
        yield from _length(measures["length"])
    if "human_ceiling" in measures:
        own = measures["human_ceiling"]["resolved"]
        beside = f"; the model on the same pairs {_number(own['model']['macro'])}"
        yield _row("people with the others", own["human"]["macro"], beside)
    if "calibration" in measures:
        own = measures["calibration"]
        yield _row(
            "calibration error", own["expected_calibration_error"], f"; temperature {_number(own['temperature'])}"
        )


def _policies(summary: dict[str, Any]) -> Iterator[str]:
    policies = summary.get("policies", {})
    if "right" in policies and summary["tied"]["num_pairs"]:
        half, right = (policies[name]["accuracy"] for name in ("half", "right"))
        yield _row("  counted half, and right", half, f"; {_number(right)}")
    half = policies.get("half", {})
    if half.get("headline") and (summary["tied"]["num_pairs"] or "unscored" in summary):
        yield _row(f"  {half['headline']}, half a point", half[half["headline"]], "; for ties and what has no score")


def _choices(measures: dict[str, Any]) -> Iterator[str]:
    tau, first, lost = measures["kendall_tau"], measures["top_1"], measures["regret"]["tiers"]
    if tau["macro"]["value"] is not None or tau["num_constant"]:
        constant = f"; {tau['num_constant']:,} prompts have equal scores alone" if tau["num_constant"] else ""
        yield _row("Kendall's tau-b", tau["macro"], constant)
    if first["half"]["macro"]["value"] is not None:
        yield _row("first choice in best tier", first["half"]["macro"], _chance(first["chance"]["macro"]))
    if lost["of_all"]["model"]["macro"]["value"] is not None:
        own = lost["of_all"]
        yield _row("tiers lost by first choice", own["model"]["macro"], _chance(own["chance"]["macro"]))


def _length(own: dict[str, Any]) -> Iterator[str]:
    matched, adjusted = own["matched"]["macro"], own["adjusted"]
    if matched["value"] is not None:
        yield _row(f"accuracy, lengths 1:{own['matched_ratio']:g}", matched, f"  n={matched['n']:,}")
    if adjusted["value"] is not None:
        yield _row("  at no length difference", adjusted, f"; as it is {_value(own['raw']['micro'])} over all pairs")
    else:
        yield f"{'  at no length difference':{_WIDTH}} not told: {_WHY_NOT[adjusted['why']]}"


def _row(title: str, estimate: dict[str, Any], more: str = "") -> str:
    return f"{title:{_WIDTH}} {_number(estimate)}{more}"


def _chance(estimate: dict[str, Any]) -> str:
    return f"; at random {_value(estimate)}"


def _value(estimate: dict[str, Any]) -> str:
    return "none" if estimate["value"] is None else f"{estimate['value']:.3f}"


def _number(estimate: dict[str, Any]) -> str:
    if estimate["low"] is None:
        return _value(estimate) + (f" [{estimate['why']}]" if estimate.get("why") else "")
    return f"{_value(estimate)} [{estimate['low']:.3f}, {estimate['high']:.3f}]"
