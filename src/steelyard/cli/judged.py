"""What verbs print of models that were asked: what each judge said, where it contradicted itself, and the policies."""

from collections.abc import Iterator
from typing import Any

_SHARES = (("inconsistent", "inconsistent between orders"), ("first_preferred", "first one preferred"))


def judge_lines(judges: dict[str, Any]) -> Iterator[str]:
    """For every judge what it said, how often it contradicted itself, and where the place pulled it."""
    for name, own in judges.items():
        said = ", ".join(f"{outcome} {number:,}" for outcome, number in own["outcomes"].items()) or "no verdicts"
        yield f"{name}: {said}"
        if "ratings" in own:
            yield "  ratings: " + ", ".join(f"{value}: {number:,}" for value, number in own["ratings"].items())
        for key, title in _SHARES:
            if own[key]["value"] is not None:
                yield f"  {title}: {_share(own[key])} of {own[key]['n']:,}"


def policy_lines(summary: dict[str, Any]) -> Iterator[str]:
    """Of an evaluation: what became of the pairs, and accuracy and exact match with what is no verdict three ways.

    Of a model that gave scores there is nothing to say; without a headline there is a range, and no number.
    """
    if "outcomes" not in summary:
        return
    outcomes = {name: number for name, number in summary["outcomes"].items() if isinstance(number, int)}
    num_pairs = outcomes.pop("num_pairs")
    said = ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in outcomes.items() if number)
    yield f"of {num_pairs:,} pairs: {said}"
    if summary["accuracy"]["value"] is None:
        low, high = (summary["policies"][policy]["accuracy"]["value"] for policy in ("wrong", "right"))
        yield "no headline: a request failed, or more than half of the pairs have no verdict"
        yield f"  accuracy is between {low:.1%} and {high:.1%}: what is no verdict counted wrong, and right"
    else:
        yield from (f"  ties and missing verdicts {name}: {_policy(own)}" for name, own in summary["policies"].items())
    yield from judge_lines(summary["judges"])


def _policy(own: dict[str, Any]) -> str:
    overall = f"overall {_share(own['overall'])}, " if "overall" in own else ""
    exact = f", exact match {_share(own['exact_match'])}" if "exact_match" in own else ""
    return f"{overall}accuracy {_share(own['accuracy'])}{exact}"


def _share(estimate: dict[str, Any]) -> str:
    if estimate["value"] is None:
        return "none"
    within = "" if estimate["low"] is None else f" [{estimate['low']:.1%}, {estimate['high']:.1%}]"
    return f"{estimate['value']:.1%}{within}"
