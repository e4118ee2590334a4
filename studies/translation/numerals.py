"""How well compound number words are read: right translations that are accused, and changed numbers that are found.

    python studies/translation/numerals.py [--number 200] [--seed 0]

Numbers from 11 to 99,999 are written by ``num2words`` (not among our dependencies: ``pip install num2words``) into one
sentence of each language. A right translation has the number of the English sentence in words, a wrong one another
number. English has it in digits or in words. Tables are in Markdown, with Wilson intervals.
"""

from collections import Counter

import typer
from damage import share
from num2words import num2words

from steelyard.core.numerics import generator
from steelyard.translation.numbers import check_numbers
from steelyard.translation.passages import Passage, PassagePair

SENTENCES = {
    "de": "Die Stadt hat {} Brücken.", "nl": "De stad heeft {} bruggen.", "sv": "Staden har {} broar.",
    "da": "Byen har {} broer.", "no": "Byen har {} broer.", "fr": "La ville a {} ponts.",
    "es": "La ciudad tiene {} puentes.", "pt": "A cidade tem {} pontes.", "it": "La città ha {} ponti.",
    "ro": "Orașul are {} poduri.", "pl": "Miasto ma {} mostów.", "cs": "Město má {} mostů.",
    "ru": "В городе {} мостов.", "uk": "У місті {} мостів.",
    "tr": "Şehirde {} köprü var.", "fi": "Kaupungissa on {} siltaa.",
    "hu": "A városnak {} hídja van.", "vi": "Thành phố có {} cây cầu.", "id": "Kota itu memiliki {} jembatan.",
    "fa": "شهر {} پل دارد.", "ar": "في المدينة {} جسرا.", "he": "בעיר יש {} גשרים.", "bn": "শহরে {} টি সেতু আছে।",
    "zh": "这座城市有{}座桥。", "ko": "그 도시에는 다리가 {} 개 있다.", "th": "เมืองนี้มีสะพาน{}แห่ง",
    "ja": "その町には橋が{}ある。",
}  # fmt: skip


def main(*, number: int = 200, seed: int = 0) -> None:
    """Print the table."""
    names = ("digits, right", "words, right", "digits, changed", "words, changed")
    totals, hits = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for language, sentence in SENTENCES.items():
        rng = generator(seed, language)
        for _ in range(number):
            value, other = (int(rng.integers(11, (100, 1000, 100_000)[rng.integers(3)])) for _ in range(2))
            if value == other:
                continue
            words = num2words(value, lang="en").replace(",", "")
            for form, source in (("digits", str(value)), ("words", words)):
                for kind, target in (("right", value), ("changed", other)):
                    pair = PassagePair(
                        Passage("prompt", f"The city has {source} bridges.", "en"),
                        Passage(
                            "prompt",
                            sentence.format(num2words(target, lang="ja" if language == "zh" else language)),
                            language,
                        ),
                    )
                    name = f"{form}, {kind}"
                    totals[language, name] += 1
                    hits[language, name] += bool(list(check_numbers(pair)))
    print("| language | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for language in SENTENCES:
        row = (share(hits[language, name], totals[language, name]) for name in names)
        print(f"| {language} | " + " | ".join(row) + " |")
    row = (
        share(sum(hits[each, name] for each in SENTENCES), sum(totals[each, name] for each in SENTENCES))
        for name in names
    )
    print("| all | " + " | ".join(row) + " |")


if __name__ == "__main__":
    typer.run(main)
