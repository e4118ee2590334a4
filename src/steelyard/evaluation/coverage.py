"""Coverage: responses that a model read whole, cut at its length limit, or did not score, by language and model.

Two models that cut or omitted different shares of the responses were not evaluated on the same texts.
"""

from collections.abc import Iterable, Iterator, Mapping

from steelyard.core.text import number_of
from steelyard.core.types import Meta, Record, Scores
from steelyard.evaluation.model_self_tests import SelfTestSummary

UNKNOWN_LANGUAGE = "unknown"
_MOST_LANGUAGES = 6


class LanguageCoverage(Record, frozen=True, kw_only=True):
    """The responses of one language, those that were cut, and those without a score."""

    num_responses: int
    num_cut: int
    num_unscored: int

    @property
    def shares(self) -> tuple[float, float]:
        """The shares that were cut and unscored."""
        return self.num_cut / max(self.num_responses, 1), self.num_unscored / max(self.num_responses, 1)


class Coverage(LanguageCoverage, frozen=True, kw_only=True):
    """The counts over all languages, and of each."""

    by_language: dict[str, LanguageCoverage]


class CoverageCounter:
    """A counter of whole, cut and unscored responses, by language."""

    def __init__(self) -> None:
        self._by_language: dict[str, list[int]] = {}

    def add(self, line: Scores) -> None:
        """Count one case."""
        self.count(line.language, len(line.scores), len(line.cut), len(line.unscored))

    def count(self, language: str | None, num_responses: int, num_cut: int, num_unscored: int) -> None:
        """Count responses of one language."""
        counts = self._by_language.setdefault(language or UNKNOWN_LANGUAGE, [0, 0, 0])
        for place, number in enumerate((num_responses, num_cut, num_unscored)):
            counts[place] += number

    @property
    def num_responses(self) -> int:
        """The number of all responses."""
        return sum(counts[0] for counts in self._by_language.values())

    def report(self) -> Coverage:
        """Return the counts of all responses and by language."""
        by_language = {
            language: LanguageCoverage(num_responses=total, num_cut=cut, num_unscored=unscored)
            for language, (total, cut, unscored) in sorted(self._by_language.items())
        }
        values = by_language.values()
        return Coverage(
            num_responses=self.num_responses,
            num_cut=sum(language.num_cut for language in values),
            num_unscored=sum(language.num_unscored for language in values),
            by_language=by_language,
        )

    def notes(self) -> dict[str, int]:
        """Return the nonzero counts of cut and unscored responses for a run's record, overall and by language."""
        notes: dict[str, int] = {}
        for place, title in ((1, "cut responses"), (2, "unscored responses")):
            numbers = {language: counts[place] for language, counts in sorted(self._by_language.items())}
            numbers = {language: number for language, number in numbers.items() if number}
            if numbers:
                notes[title] = sum(numbers.values())
                notes |= {f"{title}, {language}": number for language, number in numbers.items()}
        return notes


def coverage_lines(coverage: Coverage) -> Iterator[str]:
    """Yield a sentence on cut and one on unscored responses, each with the most affected languages first."""
    for place, title in enumerate(("cut to fit the limit", "without a score")):
        number, total = (coverage.num_cut, coverage.num_unscored)[place], coverage.num_responses
        if number:
            shares = {language: counts.shares[place] for language, counts in coverage.by_language.items()}
            highest = sorted(((name, share) for name, share in shares.items() if share), key=lambda item: -item[1])
            listed = ", ".join(f"{language} {share:.1%}" for language, share in highest[:_MOST_LANGUAGES])
            more = f" and {len(highest) - _MOST_LANGUAGES} more" if len(highest) > _MOST_LANGUAGES else ""
            languages = f": {listed}{more}" if len(shares) > 1 else ""
            yield f"{number:,} of {number_of(total, 'response')} {title} ({number / total:.1%}{languages})"


def unequal_coverage(coverages: Mapping[str, Coverage | None]) -> list[str]:
    """Return one sentence per model on its coverage if two models read different shares; else an empty list.

    Shares are compared by language. Models without coverage (null: they compare pairs) are ignored.
    """
    known = {name: coverage for name, coverage in coverages.items() if coverage is not None}
    if len({tuple(sorted(_shares(coverage).items())) for coverage in known.values()}) < 2:
        return []
    return [
        f"{name}: {'; '.join(coverage_lines(coverage)) or 'all responses read whole'}"
        for name, coverage in known.items()
    ]


def has_equal_shares(coverage: Coverage, languages: Iterable[str]) -> bool:
    """Return whether a model read equal shares of the responses in all of these languages."""
    shares = _shares(coverage)
    return len({shares[language] for language in languages if language in shares}) < 2


def _shares(coverage: Coverage) -> dict[str, tuple[float, float]]:
    return {language: counts.shares for language, counts in coverage.by_language.items()}


class UnscoredResponses(Record, frozen=True):
    """The responses without a score, in all and by reason."""

    num_responses: int
    by_reason: dict[str, int]


class ScoreSummary(Record, frozen=True, kw_only=True):
    """The model with its protocol and self-test, and how many responses it scored whole, in part, or not at all."""

    model: str
    protocol: Meta
    self_test: SelfTestSummary
    num_responses: int
    coverage: Coverage
    unscored: UnscoredResponses
