"""The numbers of an evaluation as columns: headline, sections, subsets, categories, languages; each an interval."""

from collections.abc import Iterator, Mapping
from typing import Any

_HEADLINES = ("overall", "overall_with_prior_sets", "accuracy", "exact_match")
_GROUPS = ("sections", "subsets", "by_category", "languages", "by_language")


def columns_of(summary: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Estimates by (group, name); the group of a headline is ``headline``.

    A group of one name repeats the headline and is left out; ``languages`` stands for ``by_language`` where both are.
    """
    found = {("headline", name): summary[name] for name in _HEADLINES if name in summary}
    for group in _GROUPS:
        own = dict(_estimates(summary.get(group) or {}))
        if group == "by_language" and "languages" in summary:
            continue
        if len(own) > 1:
            found |= {(group, name): value for name, value in own.items()}
    return found


def _estimates(group: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, own in group.items():
        for candidate in (own, own.get("overall"), own.get("accuracy")):
            if isinstance(candidate, dict) and "value" in candidate:
                yield str(name), candidate
                break
