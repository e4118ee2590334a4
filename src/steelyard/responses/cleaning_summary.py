"""Summary of a cleaning: responses by rule, author and language, as sums over batches and as the summary of a run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from steelyard.core.languages import language_key
from steelyard.core.text import common_spellings, prompt_text, response_text
from steelyard.core.types import Case, Counts, Record
from steelyard.responses.cleaning import FEWEST_RESPONSES, CleanedCase, ManifestRow
from steelyard.responses.rules import Action, CleaningRule

NO_AUTHOR = "unknown"
NO_LANGUAGE = "unspecified"
_EXCERPT = 400


class Excerpt(Record, frozen=True, kw_only=True, omit_defaults=False):
    """An example of a broken rule: the ends of the prompt and of the answer, with the figure and its limit."""

    prompt: str
    language: str | None
    response: str | None
    rule: str
    figure: float
    limit: float
    prompt_text: str
    text: str


class RuleCounts(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One rule: what it measures, its limit (null: by category and language), and the responses that break it.

    ``num_first`` counts those for which it is the first rule with the action drop; they add up to what was dropped.
    """

    rule: str
    measures: str
    action: Action
    limit: float | None
    num_broken: int
    num_first: int
    examples: tuple[Excerpt, ...] = ()


class Dropped(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The responses of an author, or in a language, and how many of them were dropped."""

    num_responses: int
    num_dropped: int

    @property
    def share(self) -> float:
        """The share that was dropped."""
        return self.num_dropped / max(1, self.num_responses)


class CleanSummary(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Responses by rule, by author and by language, and prompts with fewer than two responses left."""

    rules: tuple[RuleCounts, ...]
    authors: dict[str, Dropped]
    languages: dict[str, Dropped]
    num_prompts: int
    num_prompts_kept: int
    num_prompts_with_few: int
    num_masked: int


class CleanPreview(NamedTuple):
    """Preview of a cleaning, with examples by rule: nothing is written."""

    summary: CleanSummary
    counts: Counts


class CleaningCounts:
    """Sums over cases."""

    def __init__(self) -> None:
        self.num_prompts = self.num_prompts_kept = self.num_with_few = 0
        self.num_responses = self.num_kept = self.num_masked = 0
        self.broken: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.noted: Counter[str] = Counter()
        self.by_author: Counter[tuple[str, bool]] = Counter()
        self.by_language: Counter[tuple[str, bool]] = Counter()

    def add(self, case: Case, cleaned: CleanedCase) -> None:
        """Add one case and what became of it."""
        remaining = set() if cleaned.case is None else {response.id for response in cleaned.case.responses}
        self.num_prompts += 1
        self.num_prompts_kept += cleaned.case is not None
        self.num_with_few += len(remaining) < FEWEST_RESPONSES
        self.num_responses += len(case.responses)
        self.num_kept += len(remaining)
        self.num_masked += sum(row.original is not None for row in cleaned.rows)
        self.broken.update(row.rule for row in cleaned.rows)
        self.dropped.update(cleaned.dropped)
        self.noted.update(cleaned.noted)
        for response in case.responses:
            is_dropped = response.id not in remaining
            self.by_author[response.author or NO_AUTHOR, is_dropped] += 1
            self.by_language[case.prompt.language or NO_LANGUAGE, is_dropped] += 1

    def _languages(self) -> Counter[tuple[str, bool]]:
        """Return the counts by language under its most frequent spelling."""
        spelling = common_spellings((name for name, _ in self.by_language.elements()), language_key)
        joined: Counter[tuple[str, bool]] = Counter()
        for (name, is_dropped), number in self.by_language.items():
            joined[spelling[name], is_dropped] += number
        return joined

    def join(self, other: "CleaningCounts") -> None:
        """Add the sums of another batch."""
        for name, value in vars(other).items():
            if isinstance(value, Counter):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)

    def counts(self) -> Counts:
        """Return the numbers of responses: read, remaining, dropped by the first rule each, and noted."""
        return Counts(
            num_in=self.num_responses,
            num_used=self.num_kept,
            dropped=dict(sorted(self.dropped.items())),
            noted=dict(sorted(self.noted.items())),
        )

    def summary(self, rules: Sequence[CleaningRule], examples: Mapping[str, Sequence[Excerpt]]) -> CleanSummary:
        """Return the summary of a run by these rules."""
        return CleanSummary(
            rules=tuple(
                RuleCounts(
                    rule=rule.name,
                    measures=rule.measures,
                    action=rule.action,
                    limit=rule.limit,
                    num_broken=self.broken[rule.name],
                    num_first=self.dropped[rule.name],
                    examples=tuple(examples.get(rule.name, ())),
                )
                for rule in rules
            ),
            authors=_by_group(self.by_author),
            languages=_by_group(self._languages()),
            num_prompts=self.num_prompts,
            num_prompts_kept=self.num_prompts_kept,
            num_prompts_with_few=self.num_with_few,
            num_masked=self.num_masked,
        )


def excerpt_of(case: Case, row: ManifestRow) -> Excerpt:
    """Return an example of a line of the manifest, with shortened texts."""
    response = next(response for response in case.responses if response.id == row.response)
    return Excerpt(
        prompt=row.prompt,
        language=row.language,
        response=row.response,
        rule=row.rule,
        figure=row.figure,
        limit=row.limit,
        prompt_text=_shortened(prompt_text(case)),
        text=_shortened(response_text(response)),
    )


def _shortened(text: str) -> str:
    """Return the beginning and the end of a text: many faults are at its end."""
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT // 2]} … {text[-_EXCERPT // 2 :]}"


def _by_group(counts: Counter[tuple[str, bool]]) -> dict[str, Dropped]:
    names = sorted({name for name, _ in counts})
    return {
        name: Dropped(num_responses=counts[name, True] + counts[name, False], num_dropped=counts[name, True])
        for name in names
    }
