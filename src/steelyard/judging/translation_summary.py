"""Summary of a run of `translate`: items, requests and damage by language, and what is left for people."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from steelyard.core.types import Meta, Record
from steelyard.judging.token_use import TokenUse
from steelyard.translation.damage_kinds import DamageFinding
from steelyard.translation.requests import TranslatedItem, Way

_EXAMPLES = 3


class LanguageTranslation(Record, frozen=True, kw_only=True):
    """The items of one language: those that came, were translated or failed, and those with a finding.

    ``num_present`` were in the file already. ``ways`` counts the texts by how they were translated, ``failed`` the
    items by the reason of their first failed text, ``damage`` the items by kind of finding. ``num_replies`` is the
    number of replies that the items took.
    """

    num_items: int
    num_present: int = 0
    num_translated: int = 0
    num_damaged: int = 0
    num_equal: int = 0
    num_replies: int = 0
    ways: dict[str, int] = {}  # noqa: RUF012 - msgspec copies it
    failed: dict[str, int] = {}  # noqa: RUF012 - msgspec copies it
    damage: dict[str, int] = {}  # noqa: RUF012 - msgspec copies it


class DamageExample(Record, frozen=True, kw_only=True):
    """A finding with its item, to be shown."""

    prompt: str
    language: str
    finding: DamageFinding


class TranslateSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``translate``. ``translator`` is null where translations were examined alone.

    ``num_kept`` of the ``num_sources`` items are undamaged in every language: ``kept.json`` has them. ``examples`` are
    the first findings of each kind, in as many languages as there are. ``protocol`` is that of the translator.
    """

    source: str
    translator: str | None
    languages: dict[str, LanguageTranslation]
    num_sources: int
    num_kept: int
    examples: dict[str, tuple[DamageExample, ...]]
    tokens: TokenUse | None = None
    protocol: Meta | None = None


class _Counts(NamedTuple):
    """Counters of one language; ``numbers`` by the names of the fields of `LanguageTranslation`."""

    numbers: Counter[str]
    ways: Counter[Way]
    failed: Counter[str]
    damage: Counter[str]


class TranslationCounter:
    """Counts what became of each item, by language, and which prompts are damaged in one of them.

    ``num_items`` is the number of items by language.
    """

    def __init__(self, num_items: Mapping[str, int]) -> None:
        self._num_items = num_items
        self._counts = {name: _Counts(Counter(), Counter(), Counter(), Counter()) for name in num_items}
        self.examples: dict[str, list[DamageExample]] = {}
        self.left_out: dict[str, list[str]] = {}

    def add_item(self, prompt: str, language: str, item: TranslatedItem) -> None:
        """Count an item that was asked for; the one with a failed text is left out."""
        counts = self._counts[language]
        counts.numbers["num_replies"] += item.num_replies
        counts.ways.update(text.way for text in item.texts.values() if text.text is not None)
        if item.problem is not None:
            counts.failed[item.problem] += 1
            # The problem of a text in another language is "not translated", too.
            reasons = dict.fromkeys(("not translated", item.problem))
            self._leave_out(prompt, f"{language}: {', '.join(reasons)}")

    def add_case(self, prompt: str, language: str, findings: Iterable[DamageFinding], *, is_present: bool) -> None:
        """Count a case with its findings."""
        counts = self._counts[language]
        counts.numbers["num_present" if is_present else "num_translated"] += 1
        kinds = list(dict.fromkeys(finding.kind for finding in findings))
        counts.damage.update(kinds)
        counts.numbers["num_damaged"] += bool(kinds)
        for kind in kinds:
            self._leave_out(prompt, f"{language}: {kind}")
        for finding in findings:
            shown = self.examples.setdefault(finding.kind, [])
            example = DamageExample(prompt=prompt, language=language, finding=finding)
            languages = Counter(each.language for each in shown)
            # Another language takes the place of one that is shown twice: of the same prompt, else of the last one.
            repeated = [place for place, each in enumerate(shown) if languages[each.language] > 1]
            of_prompt = [place for place, each in enumerate(shown) if each.prompt == prompt]
            replaced = [place for place in of_prompt or repeated if place in repeated]
            if not of_prompt and len(shown) < _EXAMPLES:
                shown.append(example)
            elif replaced and language not in languages:
                shown[replaced[-1]] = example

    def add_equal(self, prompt: str, language: str) -> None:
        """Count an item whose responses are equal in this language: no preference is left."""
        self._counts[language].numbers["num_equal"] += 1
        self._leave_out(prompt, f"{language}: responses made equal")

    @property
    def num_failed(self) -> int:
        """The number of items that were not translated."""
        return sum(counts.failed.total() for counts in self._counts.values())

    @property
    def num_equal(self) -> int:
        """The number of items whose responses were made equal."""
        return sum(counts.numbers["num_equal"] for counts in self._counts.values())

    def languages(self) -> dict[str, LanguageTranslation]:
        """Return the counts by language."""
        return {
            name: LanguageTranslation(
                num_items=self._num_items[name],
                **counts.numbers,
                ways=dict(sorted(counts.ways.items())),
                failed=dict(counts.failed.most_common()),
                damage=dict(counts.damage.most_common()),
            )
            for name, counts in self._counts.items()
        }

    def _leave_out(self, prompt: str, reason: str) -> None:
        self.left_out.setdefault(prompt, []).append(reason)
