"""The results of `translate`: pairs of a source and its translation, examined and written, with what people review.

The pairs are read twice: the usual lengths of each language come from all of them, then each pair is examined.
"""

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from operator import itemgetter
from typing import IO, Any

import msgspec

from steelyard.core.types import Case
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import encode_case
from steelyard.io.kept import write_kept
from steelyard.io.progress import track
from steelyard.io.run_folder import Result
from steelyard.judging.translation_examination import ExaminedPair, examine_pairs, language_findings
from steelyard.judging.translation_pairs import BenchFile, CheckedPair
from steelyard.judging.translation_summary import TranslationCounter
from steelyard.translation.bench_lengths import length_limits
from steelyard.translation.damage_kinds import DamageFinding
from steelyard.translation.meaning import Encode, MeaningCheck
from steelyard.translation.requests import TranslatedItem
from steelyard.translation.response_order import ResponseOrder
from steelyard.translation.review import native_case, quality_cases, review_rank
from steelyard.translation.shared_negations import SharedNegations

FINDINGS_FILE, FAILED_FILE, KEPT_FILE = "findings.jsonl", "failed.jsonl", "kept.json"
REVIEW_FILES = {"quality": "translation_quality.jsonl", "native": "native_check.jsonl"}
"""Cases for people, of the workbench's kinds with these names."""
_ENCODER = msgspec.json.Encoder()
_NO_ITEM = TranslatedItem({}, 0)


def write_examined(
    result: Result,
    bench: BenchFile,
    pairs: Callable[[], Iterable[CheckedPair]],
    *,
    num_review: int,
    seed: int,
    is_made: bool,
    is_sent: bool,
    allow_failed: int,
    prompt_only: Sequence[str],
    encode: Encode | None = None,
) -> tuple[TranslationCounter, int]:
    """Examine all pairs, write the files of a run, and return the counts and the number of items that are kept.

    People review ``num_review`` undamaged items of each language besides all damaged ones, drawn by ``seed``.
    ``is_sent``: the requests are sent now, not in batch files. With ``is_made`` the cases are written, too, each source
    followed by its new translations. In the subsets ``prompt_only`` responses stay as they are. With ``encode`` the
    meanings are compared. Raises FailuresError for more than ``allow_failed`` items without a translation and for a
    language without any, before anything is written, and EvidenceError for no pair.
    """
    languages, failed = Counter[str](), Counter[tuple[str, str]]()
    order, shared = ResponseOrder(), SharedNegations()

    def noted() -> Iterator[tuple[Case, Case]]:
        for pair in pairs():
            languages[pair.language] += 1
            if pair.target is not None:
                order.add(pair.source, pair.target)
                shared.add(pair.source, pair.target)
                yield pair.source, pair.target
            elif pair.item is not None:
                failed[pair.language, pair.item.problem or ""] += 1

    check = None if encode is None else MeaningCheck(encode, bench.sources())
    limits = length_limits(noted() if check is None else check.compared(track(noted(), "comparing meanings")))
    bench.check_translated(languages, failed, allow_failed=allow_failed, is_sent=is_sent)
    counter = TranslationCounter(languages)
    checks = [order] if check is None else [order, check]
    total = languages.total()
    result.findings += language_findings(total)
    examined = examine_pairs(pairs(), limits, checks, shared, counter, total=total, prompt_only=prompt_only)
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(atomic_write(result.path(name)))
            for name in (FINDINGS_FILE, FAILED_FILE, *REVIEW_FILES.values())
        }
        written = _written(examined, files, num_review, seed)
        if is_made:
            with atomic_write(result.path("cases.jsonl")) as file:
                file.writelines(map(encode_case, bench.with_translations(written)))
        else:
            for _ in written:
                pass
    ids = [case.prompt.id for case in bench.sources()]
    prompts = [name for name in ids if name not in counter.left_out]
    write_kept(result.path(KEPT_FILE), prompts, counter.left_out)
    return counter, len(prompts)


def _written(
    examined: Iterable[ExaminedPair], files: Mapping[str, IO[bytes]], num_review: int, seed: int
) -> Iterator[CheckedPair]:
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
            insort(of_language, (review_rank(pair.source, seed), pair), key=itemgetter(0))
            del of_language[num_review:]
        if not is_equal:
            yield pair
    for of_language in drawn.values():
        for _, pair in of_language:
            _write_review(files, pair, ())


def _write(file: IO[bytes], row: Any) -> None:
    file.write(_ENCODER.encode(row) + b"\n")


def _write_review(files: Mapping[str, IO[bytes]], pair: CheckedPair, findings: Sequence[DamageFinding]) -> None:
    """Write a pair for native speakers, and its texts for translators."""
    assert pair.target is not None, "only translated items are reviewed"
    if (native := native_case(pair.target)) is not None:
        files[REVIEW_FILES["native"]].write(encode_case(native))
    quality = quality_cases(pair.source, pair.target, findings, pair.language)
    files[REVIEW_FILES["quality"]].writelines(map(encode_case, quality))
