"""How many swapped responses in short texts the words of the bench alone find, and how many right items they accuse.

    python studies/translation/response_order.py DATA [--half even|odd] [--share 0.05] [--items 500] [--other-english]

DATA is a folder with the published files of XCOPA. The bench of a language is judged again and again: each time another
``share`` of its items has its two responses swapped, so that every item is swapped once. Right items are those that are
not swapped, in every run. Intervals are Wilson's, over items. The English of XCOPA is a machine translation of each
language; ``--other-english`` takes that of the next language, from which the texts were not translated.
"""

from collections.abc import Iterator
from pathlib import Path

import typer
from corpora import Parallel, xcopa
from damage import responses_planted
from damage import share as shown

from steelyard.core.numerics import generator
from steelyard.translation.response_order import ResponseOrder


def benches(data: Path, *, is_other: bool) -> Iterator[tuple[str, list[Parallel]]]:
    """The items of each language, with their own English or that of the next language."""
    items = dict(xcopa(data))
    names = list(items)
    for language, following in zip(names, [*names[1:], names[0]], strict=True):
        sources = {each.source.prompt.id: each.source for each in items[following]}
        own = items[language]
        yield language, [Parallel(sources[each.source.prompt.id], each.target) for each in own] if is_other else own


def main(data: Path, *, half: str = "", share: float = 0.05, items: int = 500, other_english: bool = False) -> None:
    """Print the table."""
    totals = [0, 0, 0, 0]
    print("| language | swapped, found | right, accused |\n|---|---|---|")
    for language, each in benches(data, is_other=other_english):
        bench = each[("even", "odd").index(half) :: 2] if half else each
        bench = bench[:items]
        order = generator(0, language).permutation(len(bench))
        rounds = max(2, round(1 / share))
        found, accused, num_swapped, num_right = 0, 0, 0, 0
        for number in range(rounds):
            swapped = set(order[number::rounds].tolist())
            check = ResponseOrder()
            cases = []
            for place, item in enumerate(bench):
                planted = dict(responses_planted(item)).get("swapped_responses")
                is_swapped = place in swapped and planted is not None
                cases.append((is_swapped, planted if is_swapped and planted else item))
                check.add(*cases[-1][1])
            for place, (is_swapped, item) in enumerate(cases):
                hit = bool(list(check.findings(place, *item)))
                found, num_swapped = found + (hit and is_swapped), num_swapped + is_swapped
                accused, num_right = accused + (hit and not is_swapped), num_right + (not is_swapped)
        # Right items are judged once in each round but one.
        accused, num_right = round(accused / (rounds - 1)), round(num_right / (rounds - 1))
        print(f"| {language} | {shown(found, num_swapped)} | {shown(accused, num_right)} |")
        totals = [sum(both) for both in zip(totals, (found, num_swapped, accused, num_right), strict=True)]
    print(f"| all | {shown(*totals[:2])} | {shown(*totals[2:])} |")


if __name__ == "__main__":
    typer.run(main)
