"""How many swapped responses are found without an encoder, and how many right items are accused.

    python studies/translation/response_order.py DATA [--half even|odd] [--share 0.1] [--items 500] [--views]
        [--other-english] [--same] [--rounds 10] [--wmt] [--allowed 0.01]

DATA is a folder with the published files of XCOPA and WMT 2023 (MQM). The bench of a language is judged again and
again: each time another ``share`` of its items has its two responses swapped, so that every item is swapped once, or
as many as ``rounds`` of them. A ``share`` of 0 swaps none, and judges once. Right items are those that are not swapped,
in every run. Found is what `ResponseOrder` or the check of numbers, names and lengths finds. Intervals are Wilson's,
over items.

The English of XCOPA is a machine translation of each language; ``--other-english`` takes that of the next language,
from which the texts were not translated. With ``--views`` a bench has all languages, and one English, that of each
language in turn: "own" counts the language of the English, "other" all other ones. Items are swapped in each language
by itself; with ``--same`` the same items are swapped in all. ``--wmt`` takes the segments of WMT in random order, three
to an item, each in one of its translations. ``--allowed`` is the expected share of accused items in place of that which
the check chooses.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import typer
from corpora import Parallel, parallel, wmt, xcopa
from damage import responses_planted
from damage import share as shown

from steelyard.core.numerics import generator
from steelyard.core.text import prompt_text
from steelyard.translation import response_order
from steelyard.translation.bench_lengths import LengthLimits, length_limits
from steelyard.translation.passages import PassagePair, passages, source_passages
from steelyard.translation.response_order import ResponseOrder
from steelyard.translation.structure import check_swapped


def benches(data: Path, *, is_other: bool) -> Iterator[tuple[str, list[Parallel]]]:
    """The items of each language, with their own English or that of the next language."""
    items = dict(xcopa(data))
    names = list(items)
    for language, following in zip(names, [*names[1:], names[0]], strict=True):
        sources = {each.source.prompt.id: each.source for each in items[following]}
        own = items[language]
        yield language, [Parallel(sources[each.source.prompt.id], each.target) for each in own] if is_other else own


def segments(data: Path) -> Iterator[tuple[str, list[Parallel]]]:
    """The segments of WMT, three an item, each in one of its translations."""
    for name, items in wmt(data):
        rng = generator(0, name)
        texts = dict[str, list[str]]()
        for source, target in items:
            pairs = [(prompt_text(source), prompt_text(target))]
            pairs += [(a.text or "", b.text or "") for a, b in zip(source.responses, target.responses, strict=True)]
            for left, right in pairs:
                texts.setdefault(left, []).append(right)
        chosen = [(left, found[rng.integers(len(found))]) for left, found in texts.items()]
        chosen = [chosen[place] for place in rng.permutation(len(chosen))]
        languages = items[0].source.prompt.language or "", items[0].target.prompt.language or ""
        yield (
            name,
            [
                parallel(f"{name}-{place}", languages, chosen[place], chosen[place + 1 : place + 3])
                for place in range(0, len(chosen) - 2, 3)
            ],
        )


def is_found(check: ResponseOrder, limits: LengthLimits, number: int, item: Parallel) -> bool:
    """Whether one of the two checks says that responses have changed places."""
    pairs = [PassagePair(*each) for each in zip(source_passages(item.source), passages(item.target), strict=True)]
    return any(True for _ in check.findings(number, *item)) or any(
        True for _ in check_swapped(pairs[1:], limits.between(pairs[1]))
    )


def swapped_places(number: int, rounds: int, size: int, name: str) -> set[int]:
    """The items of a bench that are swapped in a round, a tenth of them in ten rounds."""
    return set(generator(0, name).permutation(size)[number::rounds].tolist()) if rounds else set()


def judged(benches: dict[str, list[Parallel]], swapped: dict[str, set[int]]) -> Iterator[tuple[str, bool, bool]]:
    """Each pair of a bench of one or more languages: its language, whether it is swapped, and whether that is found."""
    check, cases = ResponseOrder(), []
    for language, items in benches.items():
        for place, item in enumerate(items):
            planted = dict(responses_planted(item)).get("swapped_responses")
            is_swapped = place in swapped[language] and planted is not None
            cases.append((language, is_swapped, planted if is_swapped and planted else item))
            check.add(*cases[-1][2])
    limits = length_limits(item for *_, item in cases)
    for number, (language, is_swapped, item) in enumerate(cases):
        yield language, is_swapped, is_found(check, limits, number, item)


def main(
    data: Path,
    *,
    half: str = "",
    share: float = 0.1,
    items: int = 500,
    views: bool = False,
    other_english: bool = False,
    same: bool = False,
    rounds: int = 0,
    wmt: bool = False,
    allowed: float = 0.0,
) -> None:
    """Print the table."""
    if allowed:
        response_order._FEWEST_ALARMS = response_order._MOST_ALARMS = allowed
    each = dict(segments(data) if wmt else benches(data, is_other=other_english))
    each = {name: bench[("even", "odd").index(half) :: 2] if half else bench for name, bench in each.items()}
    each = {name: bench[:items] for name, bench in each.items()}
    parts = max(2, round(1 / share)) if share else 0
    counts = defaultdict[str, Counter[tuple[bool, bool]]](Counter)
    for english, own in each.items():
        bench = {english: own}
        if views:
            bench |= {
                name: [Parallel(left.source, right.target) for left, right in zip(own, other, strict=True)]
                for name, other in each.items()
            }
        for number in range(min(rounds or parts, parts) or 1):
            swapped = {
                name: swapped_places(number, parts, len(pairs), "same" if same else name)
                for name, pairs in bench.items()
            }
            for language, is_swapped, is_hit in judged(bench, swapped):
                name = ("own" if language == english else "other") if views else language
                counts[name][is_swapped, is_hit] += 1
                counts["all"][is_swapped, is_hit] += 1
    print("| language | swapped, found | right, accused |\n|---|---|---|")
    # Right items are judged once in each round but one: the interval is that of so many items.
    times = max((rounds or parts) - 1, 1) if not views else 1
    for name in [*(name for name in counts if name != "all"), "all"]:
        of = counts[name]
        right = [round(number / times) for number in (of[False, True], of[False, True] + of[False, False])]
        print(f"| {name} | {shown(of[True, True], of[True, True] + of[True, False])} | {shown(*right)} |")


if __name__ == "__main__":
    typer.run(main)
