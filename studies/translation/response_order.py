"""How many swapped responses are found without an encoder, and how many right items are accused.

    python studies/translation/response_order.py DATA [--half even|odd] [--share 0.1] [--items 500] [--other-english]
        [--wmt] [--allowed 0.01]

DATA is a folder with the published files of XCOPA and WMT 2023 (MQM). The bench of a language is judged again and
again: each time another ``share`` of its items has its two responses swapped, so that every item is swapped once. A
``share`` of 0 swaps none, and judges once. Right items are those that are not swapped, in every run. Found is what
`ResponseOrder` or the check of numbers, names and lengths finds. Intervals are Wilson's, over items.

The English of XCOPA is a machine translation of each language; ``--other-english`` takes that of the next language,
from which the texts were not translated. ``--wmt`` takes the segments of WMT in random order, three an item, each in
one of its translations. ``--allowed`` is the expected share of accused items in place of that which the check chooses.
"""

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


def main(
    data: Path,
    *,
    half: str = "",
    share: float = 0.1,
    items: int = 500,
    other_english: bool = False,
    wmt: bool = False,
    allowed: float = 0.0,
) -> None:
    """Print the table."""
    if allowed:
        response_order._FEWEST_ALARMS = response_order._MOST_ALARMS = allowed
    totals = [0, 0, 0, 0]
    print("| language | swapped, found | right, accused |\n|---|---|---|")
    for language, each in segments(data) if wmt else benches(data, is_other=other_english):
        bench = each[("even", "odd").index(half) :: 2] if half else each
        bench = bench[:items]
        order = generator(0, language).permutation(len(bench))
        rounds = max(2, round(1 / share)) if share else 1
        found, accused, num_swapped, num_right = 0, 0, 0, 0
        for number in range(rounds):
            swapped = set(order[number::rounds].tolist()) if share else set[int]()
            check = ResponseOrder()
            cases = []
            for place, item in enumerate(bench):
                planted = dict(responses_planted(item)).get("swapped_responses")
                is_swapped = place in swapped and planted is not None
                cases.append((is_swapped, planted if is_swapped and planted else item))
                check.add(*cases[-1][1])
            limits = length_limits(item for _, item in cases)
            for place, (is_swapped, item) in enumerate(cases):
                hit = is_found(check, limits, place, item)
                found, num_swapped = found + (hit and is_swapped), num_swapped + is_swapped
                accused, num_right = accused + (hit and not is_swapped), num_right + (not is_swapped)
        # Right items are judged once in each round but one.
        accused, num_right = (round(each / max(rounds - 1, 1)) for each in (accused, num_right))
        print(f"| {language} | {shown(found, num_swapped)} | {shown(accused, num_right)} |", flush=True)
        totals = [sum(both) for both in zip(totals, (found, num_swapped, accused, num_right), strict=True)]
    print(f"| all | {shown(*totals[:2])} | {shown(*totals[2:])} |")


if __name__ == "__main__":
    typer.run(main)
