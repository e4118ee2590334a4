"""The lines of models that were asked: each judge's verdicts and contradictions, and the policies for ties."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import asdict

if TYPE_CHECKING:
    from steelyard.evaluation.summary import EvaluationSummary
    from steelyard.evaluation.tie_policies import Policy
    from steelyard.judging.verdicts import VerdictSummary
    from steelyard.statistics.intervals import Estimate

_SHARES = ("inconsistent between orders", "first one preferred")


def judge_lines(judges: "Mapping[str, VerdictSummary]") -> Iterator[str]:
    """Yield the verdicts of every judge, how often it contradicted itself, and where the place pulled it."""
    for name, judge in judges.items():
        outcomes = ", ".join(f"{outcome} {number:,}" for outcome, number in judge.outcomes.items()) or "no verdicts"
        yield f"{name}: {outcomes}"
        if judge.ratings is not None:
            yield "  ratings: " + ", ".join(f"{value}: {number:,}" for value, number in judge.ratings.items())
        for estimate, title in zip((judge.inconsistent, judge.first_preferred), _SHARES, strict=True):
            if estimate.value is not None:
                yield f"  {title}: {_share(estimate)} of {estimate.n:,}"


def policy_lines(summary: "EvaluationSummary") -> Iterator[str]:
    """Yield the outcomes of the pairs, and accuracy and exact match with missing verdicts counted in three ways.

    A model that gave scores has none; without a headline there is a range, and no number.
    """
    if summary.outcomes is None:
        return
    outcomes, policies = asdict(summary.outcomes), summary.policies or {}
    num_pairs, _ = outcomes.pop("num_pairs"), outcomes.pop("by_language")
    listed = ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in outcomes.items() if number)
    yield f"of {num_pairs:,} pairs: {listed}"
    if summary.accuracy.value is None:
        low, high = (policies[ties].accuracy.value for ties in ("wrong", "right"))
        yield "no headline: a request failed, or more than half of the pairs have no verdict"
        yield f"  accuracy is between {low:.1%} and {high:.1%}: what is no verdict counted wrong, and right"
    else:
        yield from (f"  ties and missing verdicts {name}: {_policy(policy)}" for name, policy in policies.items())
    yield from judge_lines(summary.judges or {})


def _policy(policy: "Policy") -> str:
    overall = "" if policy.overall is None else f"overall {_share(policy.overall)}, "
    exact = "" if policy.exact_match is None else f", exact match {_share(policy.exact_match)}"
    return f"{overall}accuracy {_share(policy.accuracy)}{exact}"


def _share(estimate: "Estimate") -> str:
    if estimate.value is None:
        return "none"
    within = "" if estimate.low is None else f" [{estimate.low:.1%}, {estimate.high:.1%}]"
    return f"{estimate.value:.1%}{within}"
