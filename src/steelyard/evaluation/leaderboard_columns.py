"""The numbers of an evaluation as columns: headline, sections, subsets, categories, languages; each an interval."""

from collections.abc import Iterator, Mapping
from typing import Any

_HEADLINES = ("overall", "overall_with_prior_sets", "accuracy", "exact_match")
_GROUPS = ("sections", "subsets", "by_category", "languages", "by_language")
HALF_POINTS = "half_points"
"""The group of values in which a tie or a failure is half a point."""

Columns = dict[tuple[str, str], dict[str, Any]]


def columns_of(summary: Mapping[str, Any]) -> Columns:
    """Estimates by (group, name); the group of a headline is ``headline``.

    A group of one name repeats the headline and is left out; ``languages`` stands for ``by_language`` where both are.
    Where subsets have categories of their own (CheemsBench), these stand for ``by_category``, which pools them.
    """
    found: Columns = {("headline", name): summary[name] for name in _HEADLINES if name in summary}
    own_categories = _categories_of_subsets(summary)
    replaced = {"by_language": "languages" in summary, "by_category": bool(own_categories)}
    for group in _GROUPS:
        own = dict(_estimates(summary.get(group) or {}))
        if len(own) > 1 and not replaced.get(group, False):
            found |= {(group, name): value for name, value in own.items()}
        if group == "subsets" and len(own) > 1:
            found |= _exact_matches(summary) | own_categories
    return found | _half_points(summary)


def _estimates(group: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, own in group.items():
        for candidate in (own, own.get("overall"), own.get("accuracy")):
            if isinstance(candidate, dict) and "value" in candidate:
                yield str(name), candidate
                break


def _exact_matches(summary: Mapping[str, Any]) -> Columns:
    """Exact match of each subset, where some prompt has more than one pair: else it repeats the accuracy."""
    subsets = {name: own for name, own in summary["subsets"].items() if "exact_match" in own}
    if all(own["exact_match"]["n"] == own["accuracy"]["n"] for own in subsets.values()):
        return {}
    return {("subsets_exact_match", name): own["exact_match"] for name, own in subsets.items()}


def _categories_of_subsets(summary: Mapping[str, Any]) -> Columns:
    return {
        ("subset_categories", f"{subset}: {category}"): one["accuracy"]
        for subset, own in (summary.get("subsets") or {}).items()
        for category, one in own.get("by_category", {}).items()
    }


def has_half_points(summary: Mapping[str, Any]) -> bool:
    """Whether half a point for a tie or a failure can differ from the strict headline."""
    return "outcomes" in summary or "unscored" in summary or bool(summary.get("tied", {}).get("num_pairs"))


def _half_points(summary: Mapping[str, Any]) -> Columns:
    """The values with half a point for a tie or a failure, on benches that count so."""
    half = summary.get("policies", {}).get("half", {})
    if not half.get("headline"):
        return {}
    own = {half["headline"]: half[half["headline"]]} | dict(_estimates(half.get("sections") or {}))
    return {(HALF_POINTS, name): value for name, value in own.items()}
