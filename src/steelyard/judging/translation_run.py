"""The results of `translate`: pairs of a source and its translation, examined and written, with what people review.

The pairs are read twice: the usual lengths of each language come from all of them, then each pair is examined.
"""

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from steelyard.core.checks import content_id
from steelyard.core.errors import EvidenceError, ModelError
from steelyard.core.iteration import batched
from steelyard.core.languages import english_name, language_key
from steelyard.core.remedies import CODE, Advice, Remedy
from steelyard.core.text import number_of, response_text
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import encode_case, read_cases
from steelyard.io.kept import write_kept
from steelyard.io.progress import bar
from steelyard.io.run_folder import Result
from steelyard.judging.translation_summary import TranslationCounter
from steelyard.translation.bench_lengths import LengthLimits, length_limits
from steelyard.translation.damage import find_damage
from steelyard.translation.damage_kinds import DamageFinding
from steelyard.translation.items import item_texts, translated_case
from steelyard.translation.requests import TranslatedItem
from steelyard.translation.wording import TargetLanguage, target_languages

FINDINGS_FILE, FAILED_FILE, KEPT_FILE = "findings.jsonl", "failed.jsonl", "kept.json"
REVIEW_FILES = {"quality": "translation_quality.jsonl", "native": "native_check.jsonl"}
"""Cases for people, of the workbench's kinds with these names."""
_ENGLISH = "en"
_CASES_AT_ONCE = 64
_ENCODER = msgspec.json.Encoder()
_NO_ITEM = TranslatedItem({}, 0)


class BenchFile(NamedTuple):
    """A file of items in one or more languages: which are sources, and which languages the others are in.

    ``source`` is the code of the source language as the file spells it, null where its items name none. ``num_items``
    counts by language, sources too; the ids of prompts are unique in each.
    """

    path: Path
    source: str | None
    source_key: str
    num_items: Counter[str]
    ids: frozenset[tuple[str, str]]

    @classmethod
    def read(cls, path: Path, source: str | None) -> "BenchFile":
        """Read which items there are. Raises EvidenceError for a file without items in the source language."""
        key = language_key(source or _ENGLISH)
        spelt: dict[str, str] = {}
        places: Counter[tuple[str, str]] = Counter()
        num_items: Counter[str] = Counter()
        for case in read_cases(path):
            language = language_key(case.prompt.language or "")
            spelt.setdefault(language, case.prompt.language or "")
            places[case.prompt.id, language] += 1
            num_items[language] += 1
        if repeated := next((place for place, number in places.items() if number > 1), None):
            problem = f"prompt {repeated[0]!r} has two items in {spelt[repeated[1]] or 'no language'!r}"
            raise EvidenceError(problem, where=str(path), do="give each item of a language an id of its own")
        source_key = key if key in num_items else "" if {*num_items} == {""} else None
        if source_key is None:
            known = ", ".join(sorted(spelt[name] or "none" for name in num_items)) or "none"
            problem = f"no item is in {english_name(key) or key}"
            do = Advice("name the language of the sources: ", Remedy("source", CODE))
            raise EvidenceError(problem, where=str(path), allowed=f"languages of the items: {known}", do=do)
        return cls(path, spelt[source_key] or None, source_key, num_items, frozenset(places))

    def sources(self) -> Iterator[Case]:
        """Yield the items in the source language."""
        return (case for case in read_cases(self.path) if language_key(case.prompt.language or "") == self.source_key)

    def present(self) -> Iterator[Case]:
        """Yield the items in all other languages."""
        return (case for case in read_cases(self.path) if language_key(case.prompt.language or "") != self.source_key)


class CheckedPair(NamedTuple):
    """A source, and its translation; null where that failed. ``item`` is null for a pair that the file had."""

    source: Case
    target: Case | None
    language: str
    item: TranslatedItem | None = None


def present_pairs(bench: BenchFile) -> Iterator[CheckedPair]:
    """Yield the pairs that the file has already. Items without a source are left out."""
    sources = {case.prompt.id: case for case in bench.sources()}
    for case in bench.present():
        if (source := sources.get(case.prompt.id)) is not None:
            yield CheckedPair(source, case, case.prompt.language or "")


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


class ReviewRule(NamedTuple):
    """How many undamaged items of each language people review besides the damaged ones, drawn by the seed."""

    number: int
    seed: int

    def rank(self, case: Case) -> str:
        """Return the order in which items are drawn: the same items in all languages."""
        return content_id(f"{self.seed} review {case.prompt.id}")


def write_examined(
    result: Result,
    bench: BenchFile,
    pairs: Callable[[], Iterable[CheckedPair]],
    rule: ReviewRule,
    *,
    is_made: bool,
    allow_failed: int,
) -> tuple[TranslationCounter, int]:
    """Examine all pairs, write the files of a run, and return the counts and the number of items that are kept.

    With ``is_made`` the cases are written, too, each source followed by its new translations. Raises ModelError for
    more than ``allow_failed`` items without a translation, before anything is written, and EvidenceError for no pair.
    """
    languages, failed = Counter[str](), Counter[str]()

    def noted() -> Iterator[tuple[Case, Case]]:
        for pair in pairs():
            languages[pair.language] += 1
            if pair.target is not None:
                yield pair.source, pair.target
            elif pair.item is not None:
                failed[pair.item.problem or ""] += 1

    limits = length_limits(noted())
    if not languages:
        problem = "no item of another language has the prompt id of a source"
        raise EvidenceError(problem, where=str(bench.path), do="give translations the prompt id of their source")
    if failed.total() > allow_failed:
        reasons = ", ".join(f"{reason} {number}" for reason, number in failed.most_common())
        problem = f"{failed.total():,} of {number_of(languages.total(), 'translation')} failed ({reasons})"
        allowed = Remedy("allow_failed", failed.total())
        do = Advice("run the same again: what was answered is kept; or say ", allowed, " to leave them out")
        raise ModelError(problem, where=str(bench.path), do=do)
    counter = TranslationCounter(languages)
    examined = _examined(pairs(), limits, counter, total=languages.total())
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(atomic_write(result.path(name)))
            for name in (FINDINGS_FILE, FAILED_FILE, *REVIEW_FILES.values())
        }
        written = _written(examined, files, rule)
        if is_made:
            with atomic_write(result.path("cases.jsonl")) as file:
                file.writelines(map(encode_case, _all_cases(bench, written)))
        else:
            for _ in written:
                pass
    ids = [case.prompt.id for case in bench.sources()]
    prompts = [name for name in ids if name not in counter.left_out]
    write_kept(result.path(KEPT_FILE), prompts, counter.left_out)
    return counter, len(prompts)


class _Examined(NamedTuple):
    """A pair with its findings; ``is_equal``: no two responses differ any more, so that it has no preference."""

    pair: CheckedPair
    findings: tuple[DamageFinding, ...] = ()
    is_equal: bool = False


def _examined(
    pairs: Iterable[CheckedPair], limits: LengthLimits, counter: TranslationCounter, *, total: int
) -> Iterator[_Examined]:
    """Yield the pairs with their findings, and count them."""
    with bar("examining", total) as shown:
        for window in batched(pairs, _CASES_AT_ONCE):
            targets = [pair.target for pair in window if pair.target is not None]
            languages = iter(_languages(targets))
            for pair in window:
                prompt = pair.source.prompt.id
                if pair.item is not None:
                    counter.add_item(prompt, pair.language, pair.item)
                if pair.target is None:
                    yield _Examined(pair)
                    continue
                findings = find_damage(pair.source, pair.target, limits=limits, languages=next(languages))
                is_equal = _is_made_equal(pair.source, pair.target)
                if is_equal:
                    counter.add_equal(prompt, pair.language)
                counter.add_case(prompt, pair.language, findings, is_present=pair.item is None)
                yield _Examined(pair, findings, is_equal)
            shown.advance(len(window))


def _languages(targets: Sequence[Case]) -> Sequence[Sequence[TargetLanguage | None] | None]:
    """Return the language of each text of the cases; without the extra ``multilingual`` scripts decide alone."""
    try:
        return target_languages(targets)
    except ModuleNotFoundError:
        return [None] * len(targets)


def _is_made_equal(source: Case, target: Case) -> bool:
    """Return whether the responses differ in the source, and are all one text in the translation."""
    before, after = ({response_text(response) for response in case.responses} for case in (source, target))
    return len(after) == 1 < len(before)


def _written(examined: Iterable[_Examined], files: Mapping[str, IO[bytes]], rule: ReviewRule) -> Iterator[CheckedPair]:
    """Write the findings, the failed items and the cases for people, and yield the pairs that are cases."""
    drawn: dict[str, list[tuple[str, CheckedPair]]] = {}
    for pair, findings, is_equal in examined:
        prompt = pair.source.prompt.id
        if pair.target is None:
            problems = {name: text.problem for name, text in (pair.item or _NO_ITEM).texts.items() if text.problem}
            _write(files[FAILED_FILE], {"prompt": prompt, "language": pair.language, "problems": problems})
            continue
        for finding in findings:
            about = {"prompt": prompt, "language": pair.language}
            _write(files[FINDINGS_FILE], about | msgspec.to_builtins(finding))
        if findings:
            _write_review(files, pair, findings)
        else:
            of_language = drawn.setdefault(pair.language, [])
            insort(of_language, (rule.rank(pair.source), pair), key=itemgetter(0))
            del of_language[rule.number :]
        if not is_equal:
            yield pair
    for of_language in drawn.values():
        for _, pair in of_language:
            _write_review(files, pair, ())


def _write(file: IO[bytes], row: Any) -> None:
    file.write(_ENCODER.encode(row) + b"\n")


def _write_review(files: Mapping[str, IO[bytes]], pair: CheckedPair, findings: Sequence[DamageFinding]) -> None:
    """Write a pair for native speakers, and its texts with a finding, or all of them, for translators."""
    source, target = pair.source, pair.target
    assert target is not None, "only translated items are reviewed"
    if len(target.responses) == 2 and (target.ranking is not None or target.pairs is not None):
        files[REVIEW_FILES["native"]].write(encode_case(target))
    places = {finding.place for finding in findings}
    for before, after in zip(item_texts(source), item_texts(target), strict=True):
        if places and before.place not in places and "responses" not in places:
            continue
        case = Case(
            prompt=Prompt(
                id=f"{source.prompt.id} {pair.language} {before.name}",
                messages=(Message(role="user", content=before.text),),
                language=source.prompt.language,
                meta={"answer_language": target.prompt.language},
            ),
            responses=(Response(id="translation", text=after.text),),
            meta={"findings": [msgspec.to_builtins(finding) for finding in findings]} if findings else {},
        )
        files[REVIEW_FILES["quality"]].write(encode_case(case))


def _all_cases(bench: BenchFile, written: Iterator[CheckedPair]) -> Iterator[Case]:
    """Yield the cases of the file in their order, each source followed by its new translations."""
    made = groupby((pair for pair in written if pair.item is not None), key=lambda pair: pair.source.prompt.id)
    waiting: tuple[str, list[Case]] | None = None
    for case in read_cases(bench.path):
        yield case
        if language_key(case.prompt.language or "") != bench.source_key:
            continue
        if waiting is None:
            waiting = next(((name, [pair.target for pair in group if pair.target]) for name, group in made), None)
        if waiting is not None and waiting[0] == case.prompt.id:
            yield from waiting[1]
            waiting = None
    for _ in written:  # the pairs that the file had, examined after those that were made
        pass
