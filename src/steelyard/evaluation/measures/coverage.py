"""How much of the responses a model read: whole, cut at its limit, or not at all; by language, and beside other models.

Two models that cut or left out different shares of the same responses were not measured on the same texts.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from steelyard.core.types import Scores

_UNKNOWN = "unknown"
_NAMES = ("num_responses", "num_cut", "num_unscored")
_MOST_LANGUAGES = 6


class CoverageCounter:
    """Counts the responses of lines of scores, by language."""

    def __init__(self) -> None:
        self._by_language: dict[str, dict[str, int]] = {}

    def add(self, line: Scores) -> None:
        """Count one case."""
        self.count(line.language, len(line.scores), len(line.cut), len(line.unscored))

    def count(self, language: str | None, num_responses: int, num_cut: int, num_unscored: int) -> None:
        """Count responses of one language."""
        own = self._by_language.setdefault(language or _UNKNOWN, dict.fromkeys(_NAMES, 0))
        for name, number in zip(_NAMES, (num_responses, num_cut, num_unscored), strict=True):
            own[name] += number

    @property
    def num_responses(self) -> int:
        """All responses."""
        return self.report()["num_responses"]

    def report(self) -> dict[str, Any]:
        """``num_responses``, ``num_cut`` (scored in part) and ``num_unscored``: of all, and ``by_language``."""
        totals = {name: sum(own[name] for own in self._by_language.values()) for name in _NAMES}
        return {**totals, "by_language": dict(sorted(self._by_language.items()))}

    def noted(self) -> dict[str, int]:
        """The counts for a run's record: cut and unscored responses, of all and by language; those that are not 0."""
        found: dict[str, int] = {}
        for name, title in (("num_cut", "cut responses"), ("num_unscored", "unscored responses")):
            by_language = {language: own[name] for language, own in sorted(self._by_language.items()) if own[name]}
            if by_language:
                found[title] = sum(by_language.values())
                found |= {f"{title}, {language}": number for language, number in by_language.items()}
        return found


def coverage_lines(coverage: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for what was cut and one for what was unscored, with the languages most affected first."""
    for name, title in (("num_cut", "cut to fit the limit"), ("num_unscored", "without a score")):
        number, total = coverage[name], coverage["num_responses"]
        if number:
            yield f"{number:,} of {total:,} responses {title} ({number / total:.1%}{_languages(coverage, name)})"


def _languages(coverage: Mapping[str, Any], name: str) -> str:
    own = coverage["by_language"]
    shares = {language: one[name] / one["num_responses"] for language, one in own.items() if one[name]}
    if len(own) < 2:
        return ""
    highest = sorted(shares.items(), key=lambda item: -item[1])
    told = ", ".join(f"{language} {share:.1%}" for language, share in highest[:_MOST_LANGUAGES])
    more = f" and {len(highest) - _MOST_LANGUAGES} more" if len(highest) > _MOST_LANGUAGES else ""
    return f": {told}{more}"


def unlike_coverage(coverages: Mapping[str, Mapping[str, Any] | None]) -> list[str]:
    """Return what each model read, a sentence a model, where two did not read equal shares; empty where all did.

    Shares are compared by language. Null is a model that tells nothing of it (one that compares pairs): such models are
    left out.
    """
    known = {name: own for name, own in coverages.items() if own is not None}
    if len({tuple(sorted(_shares(own).items())) for own in known.values()}) < 2:
        return []
    return [f"{name}: {'; '.join(coverage_lines(own)) or 'all responses read whole'}" for name, own in known.items()]


def are_read_alike(coverage: Mapping[str, Any], languages: Iterable[str]) -> bool:
    """Whether a model read equal shares of the responses of these languages."""
    shares = _shares(coverage)
    return len({shares[language] for language in languages if language in shares}) < 2


def _shares(coverage: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """The shares that were cut and unscored, by language."""
    return {
        language: tuple(own[name] / max(own["num_responses"], 1) for name in _NAMES[1:])
        for language, own in coverage["by_language"].items()
    }
