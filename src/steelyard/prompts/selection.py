"""Selection of prompts: the rules of each prompt, then duplicates among what is left, then the balance.

The order matters: where one of two duplicates holds private data, the other one stays. Duplicates are prompts of one
language; a translation of a prompt is another prompt, and nothing here finds it.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from steelyard.core.errors import ConfigError, RecordError
from steelyard.core.languages import language_key, language_part
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import conversation_form
from steelyard.core.types import Counts, Prompt
from steelyard.prompts.balance import WantedShares, balanced, check_shares, group_shares
from steelyard.prompts.near_duplicates import Links, ReferenceTexts, comparable_prompts, near_duplicate_fingerprints
from steelyard.prompts.screening import (
    BenchOverlap,
    PromptsSummary,
    ScreenedPrompt,
    ScreeningConfig,
    ScreeningRow,
    check_screening,
    private_rows,
    screening_row,
)
from steelyard.prompts.taxonomy import Tiers

TRANSLATABLE = "translatable"
"""The answer of a language model that a prompt depends on no language."""
_EXAMPLES = 3


class SelectionConfig(ScreeningConfig, frozen=True):
    """Settings of the screening and of the selection."""

    near_duplicates: float | Literal["off"] = 0.8
    """The least similarity of duplicates. It is that of Jaccard, of the character shingles of two prompts of one
    language."""
    overlap: float = 0.8
    """The similarity from which a first turn overlaps with that of a benchmark prompt, in any language."""
    category_shares: dict[str, float] = msgspec.field(default_factory=dict)
    """The wanted share of each first-tier category; the shares sum to 1. Default: no balance."""
    language_shares: dict[str, float] = msgspec.field(default_factory=dict)
    """The wanted share of each language; the shares sum to 1. Default: no balance."""
    seed: int = 0
    """The seed of the balance."""

    @property
    def shares(self) -> WantedShares:
        """The wanted shares of both kinds."""
        return WantedShares(self.category_shares, self.language_shares)


class PromptReferences(NamedTuple):
    """References for prompts, by name: benches' first turns, and whether a model was trained on a prompt."""

    benches: Mapping[str, ReferenceTexts]
    trained: Mapping[str, Callable[[Prompt], bool]]


def check_selection(config: SelectionConfig) -> None:
    """Raise ConfigError for a setting that is not allowed."""
    check_screening(config)
    check_shares(config.shares)
    near = config.near_duplicates
    if near != "off" and not 0 < near <= 1:
        raise ConfigError(f"near_duplicates is {near}", where="prompts", allowed="above 0 and at most 1, or off")
    if not 0 < config.overlap <= 1:
        raise ConfigError(f"overlap is {config.overlap}", where="prompts", allowed="above 0 and at most 1")


class Selection:
    """The prompts that stay and the rules that the others broke, of prompts added one by one and then finished.

    Between `drop_duplicates` and `finish` the prompts that stay may be given categories, which the balance uses.
    ``rows`` are the lines of the manifest by the place of the prompt; ``dropped`` has the first rule that dropped it.
    """

    def __init__(self, config: SelectionConfig, references: PromptReferences, *, has_language_model: bool) -> None:
        self.dropped: dict[int, str] = {}
        self.rows: dict[int, list[ScreeningRow]] = defaultdict(list)
        self._config, self._references = config, references
        self._has_language_model, self._num_unparsed = has_language_model, 0
        self._prompts: list[Prompt] = []
        self._screened: list[ScreenedPrompt] = []
        self._digests: list[bytes] = []
        self._keys: set[tuple[str, str | None]] = set()
        self._similarities: dict[str, list[float]] = {name: [] for name in (*references.benches, *references.trained)}
        self._group_sizes: list[int] = []

    def add(
        self, prompt: Prompt, screened: ScreenedPrompt, *, answer: str | None = None, language_answer: str | None = None
    ) -> None:
        """Apply the rules of one prompt; the answers are the language model's, null if one cannot be read.

        ``answer`` is about harm, ``language_answer`` about what of English the prompt depends on.

        Raises RecordError where the identified language gives two prompts one key.
        """
        place = len(self._prompts)
        if (prompt.id, screened.language) in self._keys:
            problem = f"prompt id {prompt.id!r} would stand twice in the identified language {screened.language!r}"
            raise RecordError(problem, do=Advice("give each case its own id, or say ", Remedy("languages", "off")))
        self._keys.add((prompt.id, screened.language))
        text = conversation_form(prompt.messages)
        self._digests.append(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())
        # Without its texts: what the balance needs to know of a prompt.
        light = msgspec.structs.replace(prompt, messages=(), language=screened.language, reference=None, meta=None)
        self._prompts.append(light)
        self._screened.append(screened)
        answers = (answer,) if self._config.language_bound == "off" else (answer, language_answer)
        self._num_unparsed += self._has_language_model and None in answers
        self._add_rows(
            place,
            [
                *self._language_rows(prompt, screened),
                *private_rows(prompt, screened, self._config),
                *self._harm_rows(prompt, screened, answer),
                *self._language_bound_rows(prompt, screened, language_answer),
                *self._overlap_rows(prompt, screened),
            ],
        )

    def drop_duplicates(self) -> None:
        """Keep the first of each group of duplicates, once all prompts are added."""
        if self._config.near_duplicates != "off":
            self._drop_duplicates(self._config.near_duplicates)

    def assign(self, place: int, category: Tiers | None) -> None:
        """Give a prompt a language model's category; without one (null: an unparsed reply) count the prompt."""
        if category:
            self._prompts[place] = msgspec.structs.replace(self._prompts[place], category=category)
            return
        rule = "category_unparsed" if category is None else "category_none"
        prompt, screened = self._prompts[place], self._screened[place]
        self._add_rows(place, [screening_row(prompt, screened, rule, "count", figure=(None, None), excerpt="")])

    def finish(self) -> PromptsSummary:
        """Balance what is left of the duplicates, and return the summary."""
        before = [self._prompts[place] for place in self.staying]
        if before and self._config.shares.are_given:
            self._balance()
        after = [self._prompts[place] for place in self.staying]
        findings: dict[str, Counter[str]] = defaultdict(Counter)
        for row in (row for rows in self.rows.values() for row in rows):
            findings[row.rule][row.action] += 1
        labels = Counter(map(_label, self._screened))
        return PromptsSummary(
            num_in=len(self._prompts),
            num_kept=len(after),
            labels=dict(sorted(labels.items())),
            scripts=dict(sorted(Counter(screened.script for screened in self._screened if screened.script).items())),
            findings={rule: dict(numbers) for rule, numbers in sorted(findings.items())},
            drops=self.counts().dropped,
            num_duplicate_groups=len(self._group_sizes),
            largest_duplicate_group=max(self._group_sizes, default=0),
            overlaps=tuple(self._overlaps()),
            shares=group_shares(before, after, self._config.shares),
            has_language_model=self._has_language_model,
            num_unparsed_replies=self._num_unparsed,
        )

    @property
    def staying(self) -> list[int]:
        """The places of the prompts that stay."""
        return [place for place in range(len(self._prompts)) if place not in self.dropped]

    def reasons(self, place: int) -> list[str]:
        """Return every rule that dropped a prompt, the first one first."""
        rules = [row.rule for row in self.rows.get(place, ()) if row.action == "drop"]
        return list(dict.fromkeys(rules))

    def counts(self) -> Counts:
        """Return how many prompts stay and how many each rule dropped."""
        dropped = Counter(self.dropped.values())
        return Counts(num_in=len(self._prompts), num_used=len(self.staying), dropped=dict(sorted(dropped.items())))

    def examples(self) -> dict[str, tuple[ScreeningRow, ...]]:
        """Return the first rows of each rule."""
        shown: dict[str, list[ScreeningRow]] = defaultdict(list)
        for row in (row for place in sorted(self.rows) for row in self.rows[place]):
            if len(shown[row.rule]) < _EXAMPLES:
                shown[row.rule].append(row)
        return {rule: tuple(rows) for rule, rows in sorted(shown.items())}

    def _add_rows(self, place: int, rows: Iterable[ScreeningRow]) -> None:
        for row in rows:
            self.rows[place].append(row)
            if row.action == "drop":
                self.dropped.setdefault(place, row.rule)

    def _language_rows(self, prompt: Prompt, screened: ScreenedPrompt) -> Iterable[ScreeningRow]:
        config = self._config
        if screened.language is None and config.languages != "off":
            action = "drop" if config.unknown_language == "drop" or config.only_languages else "count"
            yield screening_row(prompt, screened, "language_unknown", action, figure=(None, config.min_probability))
        elif config.only_languages and not self._is_wanted(screened.language):
            yield screening_row(prompt, screened, "language_not_wanted", "drop", figure=(screened.probability, None))
        if _label(screened) == "differs":
            figure = (screened.probability, config.min_probability)
            yield screening_row(prompt, screened, f"language_differs: {screened.identified}", "count", figure=figure)

    def _is_wanted(self, language: str | None) -> bool:
        return language_key(language or "") in map(language_key, self._config.only_languages)

    def _harm_rows(self, prompt: Prompt, screened: ScreenedPrompt, answer: str | None) -> Iterable[ScreeningRow]:
        if self._config.harmful == "off":
            return
        if screened.harm is not None:
            excerpt = None if any(screened.private) else screened.harm_sentence
            yield screening_row(
                prompt, screened, f"harmful: {screened.harm}", self._config.harmful, figure=(1, 0), excerpt=excerpt
            )
        if answer not in (None, "harmless"):
            yield screening_row(prompt, screened, f"harmful by model: {answer}", self._config.harmful, figure=(1, 0))

    def _language_bound_rows(
        self, prompt: Prompt, screened: ScreenedPrompt, answer: str | None
    ) -> Iterable[ScreeningRow]:
        action = self._config.language_bound
        if action == "off":
            return
        if screened.language_bound is not None:
            reason, excerpt = screened.language_bound
            shown = None if any(screened.private) else excerpt
            rule = f"language_bound: {reason}"
            yield screening_row(prompt, screened, rule, action, figure=(1, 0), excerpt=shown)
        if answer not in (None, TRANSLATABLE) and language_part(screened.language) in ("", "en"):
            yield screening_row(prompt, screened, f"language_bound by model: {answer}", action, figure=(1, 0))

    def _overlap_rows(self, prompt: Prompt, screened: ScreenedPrompt) -> Iterable[ScreeningRow]:
        for name, texts in self._references.benches.items():
            nearest = texts.nearest(screened.root or screened.conversation)
            if nearest is not None:
                self._similarities[name].append(nearest[1])
                yield screening_row(
                    prompt, screened, f"overlap: {name}", "drop", figure=(nearest[1], self._config.overlap)
                )
        for name, is_trained_on in self._references.trained.items():
            if is_trained_on(prompt):
                self._similarities[name].append(1.0)
                yield screening_row(prompt, screened, f"trained_on: {name}", "drop", figure=(1, 1))

    def _drop_duplicates(self, threshold: float) -> None:
        """Keep the first prompt of each group of duplicates that can be compared."""
        comparable: dict[tuple[str, str], list[int]] = defaultdict(list)
        for place in self.staying:
            comparable[comparable_prompts(self._prompts[place])].append(place)
        for places in comparable.values():
            links = Links(len(places))
            similarity: dict[int, float] = {}
            first: dict[bytes, int] = {}
            for position, place in enumerate(places):
                links.join(position, first.setdefault(self._digests[place], position))
            conversations = [self._screened[place].conversation for place in places]
            for pair in near_duplicate_fingerprints(conversations, threshold):
                links.join(pair.first, pair.second)
                similarity[pair.second] = max(pair.similarity, similarity.get(pair.second, 0))
                similarity.setdefault(pair.first, pair.similarity)
            for group in links.groups():
                if len(group) > 1:
                    self._group_sizes.append(len(group))
                    self._drop_copies([places[position] for position in group], group, similarity, threshold)

    def _drop_copies(
        self, places: Sequence[int], positions: Sequence[int], similarity: Mapping[int, float], threshold: float
    ) -> None:
        seen = {self._digests[places[0]]}
        for place, position in list(zip(places, positions, strict=True))[1:]:
            is_equal = self._digests[place] in seen
            seen.add(self._digests[place])
            figure = (1.0, 1.0) if is_equal else (similarity.get(position), threshold)
            rule = "duplicate" if is_equal else "near_duplicate"
            prompt, screened = self._prompts[place], self._screened[place]
            row = screening_row(
                prompt, screened, rule, "drop", figure=figure, excerpt=f"of prompt {self._prompts[places[0]].id}"
            )
            self._add_rows(place, [row])

    def _balance(self) -> None:
        places = self.staying
        chosen = balanced([self._prompts[place] for place in places], self._config.shares, seed=self._config.seed)
        for position, place in enumerate(places):
            if position not in chosen:
                prompt, screened = self._prompts[place], self._screened[place]
                row = screening_row(
                    prompt, screened, "balance", "drop", figure=(None, None), excerpt=" · ".join(prompt.category)
                )
                self._add_rows(place, [row])

    def _overlaps(self) -> Iterable[BenchOverlap]:
        for name, similarities in self._similarities.items():
            bench = self._references.benches.get(name)
            yield BenchOverlap(
                name=name,
                num_prompts=None if bench is None else len(bench),
                num_overlapping=len(similarities),
                num_equal=sum(similarity == 1 for similarity in similarities),
            )


def _label(screened: ScreenedPrompt) -> str:
    """Return how the prompt has its language."""
    if screened.language is None:
        return "unknown"
    if screened.label is None:
        return "identified"
    if screened.identified is None or language_part(screened.label) == language_part(screened.identified):
        return "labelled"
    return "differs"
