"""The items of a bench in several languages: which are sources, and pairs of a source with its translation."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.core.checks import content_id
from steelyard.core.errors import ConfigError, EvidenceError, FailuresError, choices, listed
from steelyard.core.languages import english_name, language_key
from steelyard.core.remedies import CODE, FOLDER, KIND, Advice, Command, Remedy, joined
from steelyard.core.text import number_of, response_text
from steelyard.core.types import Case
from steelyard.io.cases import read_cases
from steelyard.judging.early_abort import is_lasting
from steelyard.translation.items import translated_case
from steelyard.translation.requests import FAILED, TranslatedItem

_ENGLISH = "en"


class BenchFile(NamedTuple):
    """A file of items in one or more languages: which are sources, and which languages the others are in.

    ``source`` is the code of the source language as the file spells it; items that name none are in it. ``num_items``
    counts by language, sources too; the ids of prompts are unique in each. ``num_unlabelled`` are the sources without
    ranking and pairs, ``num_judged`` those among them with judgments or ratings.
    """

    path: Path
    source: str
    source_key: str
    num_items: Counter[str]
    ids: frozenset[tuple[str, str]]
    num_unlabelled: int
    num_judged: int

    @classmethod
    def read(cls, path: Path, source: str | None) -> "BenchFile":
        """Read which items there are. Raises EvidenceError for a file without items in the source language."""
        key = language_key(source or _ENGLISH)
        spelt: dict[str, str] = {}
        places: Counter[tuple[str, str]] = Counter()
        num_items: Counter[str] = Counter()
        unlabelled, judged = Counter[str](), Counter[str]()
        for case in read_cases(path):
            language = language_key(case.prompt.language or "")
            spelt.setdefault(language, case.prompt.language or "")
            places[case.prompt.id, language] += 1
            num_items[language] += 1
            is_unlabelled = case.ranking is None and not case.pairs
            unlabelled[language] += is_unlabelled
            judged[language] += is_unlabelled and bool(case.judgments or case.ratings)
        if repeated := next((place for place, number in places.items() if number > 1), None):
            problem = f"prompt {repeated[0]!r} has two items in {spelt[repeated[1]] or 'no language'!r}"
            raise EvidenceError(problem, where=str(path), do="give each item of a language an id of its own")
        source_key = key if key in num_items else "" if {*num_items} == {""} else None
        if source_key is None:
            known = ", ".join(sorted(spelt[name] or "none" for name in num_items)) or "none"
            problem = f"no item is in {english_name(key) or key}"
            do = Advice("name the language of the sources: ", Remedy("source", CODE))
            raise EvidenceError(problem, where=str(path), allowed=f"languages of the items: {known}", do=do)
        code = spelt[source_key] or source or _ENGLISH
        counts = num_items, frozenset(places), unlabelled[source_key], judged[source_key]
        return cls(path, code, source_key, *counts)

    def check_labels(self) -> None:
        """Raise EvidenceError where no translation could be labelled, and judgments or ratings would label the sources.

        They are about the original texts and stay behind; rankings and pairs hold in every language.
        """
        if self.num_judged > 0 and self.num_unlabelled == self.num_items[self.source_key]:
            problem = f"none of {number_of(self.num_unlabelled, 'item')} has a ranking or pairs"
            do = Advice(
                "judgments and ratings are about the original texts, and a ranking holds for translations, too: ",
                Command("resolve", (str(self.path),), (Remedy("out", "resolved"),)),
            )
            raise EvidenceError(problem, where=str(self.path), do=do)

    def check_present(self, languages: Sequence[str]) -> None:
        """Raise ConfigError for a language in which the file has no item besides those of the sources."""
        present = {language_key(case.prompt.language or ""): case.prompt.language or "" for case in self.present()}
        for language in languages:
            if language_key(language) not in present:
                problem = f"no translation is in {english_name(language) or language}"
                raise ConfigError(problem, where="to", allowed=choices(language, present.values()))

    def check_translated(
        self, num_pairs: Counter[str], failed: Counter[tuple[str, str]], *, allow_failed: int, is_sent: bool
    ) -> None:
        """Raise EvidenceError for no pair, and FailuresError for too many translations that failed.

        Those are more than ``allow_failed``, or all of a language. ``num_pairs`` counts the pairs by language,
        ``failed`` those that failed by language and reason. ``is_sent``: requests are sent now, not in batch files.
        """
        if not num_pairs:
            problem = "no item of another language has the prompt id of a source"
            raise EvidenceError(problem, where=str(self.path), do="give translations the prompt id of their source")
        if not failed:
            return
        left = Counter[str]()
        for language, number in num_pairs.items():
            left[language_key(language)] += number
        for (language, _), number in failed.items():
            left[language_key(language)] -= number
        without = [language for language in num_pairs if not left[language_key(language)]]
        if failed.total() <= allow_failed and not without:
            return
        reasons = _reasons(failed, is_of_several=len(num_pairs) > 1)
        problem = f"{failed.total():,} of {number_of(num_pairs.total(), 'translation')} failed ({reasons})"
        # Only a request that failed is sent again; in batch files those that may fail are not.
        requests = [reason.removeprefix(FAILED) for _, reason in failed if reason.startswith(FAILED)]
        is_again = is_sent and not all(map(is_lasting, requests))
        ways = ["run the same again: what was answered is kept"] if is_again else []
        ways.append(Advice("choose another translator, ", Remedy("chat.kind", KIND, (Remedy("out", FOLDER),))))
        if without:
            names = listed([english_name(language) or language for language in without])
            problem = f"{problem}; no item was translated into {names}"
            ways.append(Advice(f"leave {names} out of ", Remedy("to")))
        else:
            ways.append(Advice("say ", Remedy("allow_failed", failed.total()), " to leave them out"))
        raise FailuresError(problem, where=str(self.path), do=joined("; or ", ways))

    def sources(self) -> Iterator[Case]:
        """Yield the items in the source language, each with its code."""
        return (self._with_language(case) for case in read_cases(self.path) if self._is_source(case))

    def _is_source(self, case: Case) -> bool:
        return language_key(case.prompt.language or "") == self.source_key

    def _with_language(self, case: Case) -> Case:
        return case if case.prompt.language else replace(case, prompt=replace(case.prompt, language=self.source))

    def present(self) -> Iterator[Case]:
        """Yield the items in all other languages."""
        return (case for case in read_cases(self.path) if not self._is_source(case))

    def with_translations(self, written: Iterator["CheckedPair"]) -> Iterator[Case]:
        """Yield the cases of the file in their order, each source followed by its new translations."""
        made = groupby((pair for pair in written if pair.item is not None), key=lambda pair: pair.source.prompt.id)
        waiting: tuple[str, list[Case]] | None = None
        for case in read_cases(self.path):
            if not self._is_source(case):
                yield case
                continue
            yield self._with_language(case)
            if waiting is None:
                waiting = next(((name, [pair.target for pair in group if pair.target]) for name, group in made), None)
            if waiting is not None and waiting[0] == case.prompt.id:
                yield from waiting[1]
                waiting = None
        for _ in written:  # the pairs that the file had, examined after those that were made
            pass


def _reasons(failed: Counter[tuple[str, str]], *, is_of_several: bool) -> str:
    """Return the failed translations by reason, and by language where the bench is in several, the most first."""
    shown = [
        (f"{english_name(language) or language}: " if is_of_several else "") + f"{reason} {number:,}"
        for (language, reason), number in failed.most_common()
    ]
    return listed(shown)


class CheckedPair(NamedTuple):
    """A source, and its translation; null where that failed. ``item`` is null for a pair that the file had."""

    source: Case
    target: Case | None
    language: str
    item: TranslatedItem | None = None


def present_pairs(bench: BenchFile, languages: Sequence[str] = ()) -> Iterator[CheckedPair]:
    """Yield the pairs that the file has already, of these ``languages`` if any. Items without a source are left out."""
    sources = {case.prompt.id: case for case in bench.sources()}
    wanted = {language_key(language) for language in languages}
    for case in bench.present():
        if wanted and language_key(case.prompt.language or "") not in wanted:
            continue
        if (source := sources.get(case.prompt.id)) is not None:
            yield CheckedPair(source, _with_responses_of(source, case), case.prompt.language or "")


def _with_responses_of(source: Case, target: Case) -> Case:
    """Return a translation with its responses in the order of the source.

    Ids that are hashes of the texts in both, as `steelyard convert` makes them, differ by language: these responses
    belong together by their places, and get the ids of the source.
    """
    names = [response.id for response in source.responses]
    by_name = {response.id: response for response in target.responses}
    if by_name.keys() == {*names}:
        return replace(target, responses=tuple(by_name[name] for name in names))
    every = (*source.responses, *target.responses)
    is_hashed = all(each.id.partition("~")[0] == content_id(response_text(each)) for each in every)
    if len(by_name) != len(names) or not is_hashed:
        return target
    new = dict(zip(by_name, names, strict=True))
    return replace(
        target,
        responses=tuple(replace(each, id=new[each.id]) for each in target.responses),
        ranking=None if target.ranking is None else tuple(tuple(map(new.__getitem__, tier)) for tier in target.ranking),
        pairs=target.pairs
        and tuple(replace(each, better=new[each.better], worse=new[each.worse]) for each in target.pairs),
        judgments=tuple(
            replace(
                each, left=new[each.left], right=new[each.right], shown=each.shown and tuple(map(new.get, each.shown))
            )
            for each in target.judgments
        ),
        ratings=tuple(replace(each, response=new[each.response]) for each in target.ratings),
    )


def made_pairs(
    translated: Iterable[tuple[Case, Mapping[str, TranslatedItem]]], translator: str
) -> Iterator[CheckedPair]:
    """Yield the pairs of translated items, with where they come from in the meta of the case."""
    for source, items in translated:
        for language, item in items.items():
            texts = {name: text.text for name, text in item.texts.items() if text.text is not None}
            target = None
            if len(texts) == len(item.texts):
                ways = sorted({text.way for text in item.texts.values()} - {"copied"})
                meta = {"from": source.prompt.language, "by": translator, "ways": ways}
                target = translated_case(source, language, texts, meta)
            yield CheckedPair(source, target, language, item)
