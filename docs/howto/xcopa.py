"""XCOPA's test set in the ten languages that have a machine translation, and the same items translated into English.

python docs/howto/xcopa.py xcopa xcopa.jsonl translated.jsonl [--part val]
"""

import json
from collections import Counter
from pathlib import Path

import typer

import steelyard as sy

# How each language asks for the cause and for the effect of what the premise says.
QUESTIONS = {
    "et": ("Mis oli selle põhjus?", "Mis selle tagajärjel juhtus?"),
    "ht": ("Ki sa ki te lakòz sa?", "Ki sa ki te rive kòm rezilta?"),
    "id": ("Apa penyebabnya?", "Apa akibatnya?"),
    "it": ("Qual è stata la causa?", "Che cosa è successo di conseguenza?"),
    "sw": ("Sababu ilikuwa nini?", "Nini kilitokea kama matokeo?"),
    "ta": ("இதற்குக் காரணம் என்ன?", "இதன் விளைவாக என்ன நடந்தது?"),
    "th": ("สาเหตุคืออะไร", "ผลที่ตามมาคืออะไร"),
    "tr": ("Bunun nedeni neydi?", "Bunun sonucunda ne oldu?"),
    "vi": ("Nguyên nhân là gì?", "Kết quả là gì?"),
    "zh": ("这是什么原因造成的？", "结果发生了什么？"),
}
ENGLISH = ("What was the cause?", "What happened as a result?")


def rows(folder: Path, language: str, part: str) -> dict[int, dict]:
    """The items of one language by their number."""
    text = (folder / language / f"{part}.{language}.jsonl").read_text("utf-8")
    return {row["idx"]: row for row in map(json.loads, text.splitlines())}


def asked_for(by_language: dict[str, dict[int, dict]]) -> dict[int, str]:
    """Whether an item asks for cause or effect. Three languages' files say it wrongly: most languages are right."""
    votes = {index: Counter(items[index]["question"] for items in by_language.values()) for index in by_language["zh"]}
    return {index: vote.most_common(1)[0][0] for index, vote in votes.items()}


def case_of(row: dict, language: str, question: str) -> sy.Case:
    """One item in one language; parallel items share the id, which is the item's number."""
    better, worse = ("choice1", "choice2") if row["label"] == 0 else ("choice2", "choice1")
    return sy.Case(
        prompt=sy.Prompt(
            id=f"xcopa-{row['idx']}",
            messages=(sy.Message(role="user", content=f"{row['premise']}\n{question}"),),
            language=language,
            category=("commonsense",),
            source="XCOPA",
        ),
        responses=tuple(sy.Response(id=name, text=row[name]) for name in ("choice1", "choice2")),
        ranking=((better,), (worse,)),
    )


def main(folder: str, out: str, translated: str, part: str = "test") -> None:
    """Write the items as they are, and translated: in English under the language that they came from."""
    given = {language: rows(Path(folder) / "data", language, part) for language in QUESTIONS}
    asked = asked_for(given)
    cases, in_english = [], []
    for language, items in given.items():
        other = rows(Path(folder) / "data-gmt", language, part)
        for index, row in sorted(items.items()):
            place = ("cause", "effect").index(asked[index])
            cases.append(case_of(row, language, QUESTIONS[language][place]))
            in_english.append(case_of(other[index], language, ENGLISH[place]))
    print(f"{sy.write_cases(Path(out), cases)} cases in {out}")
    print(f"{sy.write_cases(Path(translated), in_english)} cases in {translated}")


if __name__ == "__main__":
    typer.run(main)
