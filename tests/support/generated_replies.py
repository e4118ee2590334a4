"""Replies of judges in 24 languages and some 160 shapes, with the verdict that a careful reader takes from each.

The phrases of ``tests/judging/reply_phrases.toml`` stand in shapes that do not depend on the language, so that every
language has the same replies, and shares of those that are read can be compared. ``truth`` is null where the reply
decides nothing: it compares, refuses, denies, asks, reports, quotes the request, or takes its verdict back.
"""

import json
import tomllib
from pathlib import Path
from typing import NamedTuple

PHRASES = tomllib.loads((Path(__file__).parents[1] / "judging/reply_phrases.toml").read_text(encoding="utf-8"))
TIED = ("A", "B", "C")
FIVE = "ABCDE"


class GeneratedReply(NamedTuple):
    """A reply: its language and shape, the task and form that it answers, and the verdict that it holds."""

    language: str
    shape: str
    task: str
    form: str
    text: str
    truth: object


def generated_replies():
    """Return the replies of all languages, half of those with a verdict for A and half for B."""
    return [
        GeneratedReply(language, shape, task, form, text, truth)
        for place, (language, words) in enumerate(PHRASES.items())
        for number, build in enumerate((_choices, _sentences, _marks, _objects, _numbers, _rankings, _undecided))
        for shape, task, form, text, truth in build(words, "AB"[(place + number) % 2])
    ]


def _phrases(words, label):
    """Return the phrases with the letters of the answers, Latin ones and those of the script."""
    other = "AB"[label == "A"]
    native = {name: words["letters"]["AB".index(name)] for name in "AB"}
    texts = {key: value for key, value in words.items() if isinstance(value, str)}
    latin = {key: value.replace("{x}", label).replace("{y}", other) for key, value in texts.items()}
    script = {key: value.replace("{x}", native[label]).replace("{y}", native[other]) for key, value in texts.items()}
    return latin, script, native[label]


def _choices(words, label):
    say, script, letter = _phrases(words, label)
    other = "AB"[label == "A"]
    verdict, confidence = say["verdict"], say["confidence"]
    high = {label: 8, other: 7}
    digits = words["digits"]
    shapes = {
        "letter": label,
        "colon": f"{verdict}: {label}",
        "dash": f"{verdict} — {label}",
        "bold lead": f"**{verdict}:** {label}",
        "header": f"**{verdict}**\n\n{label}.",
        "cell": f"{say['compare']}\n\n| {verdict} | {label} |",
        "column": f"{say['compare']}\n\n| {verdict} |\n|---|\n| **{label}** |",
        "tag": f"<choice>{label}</choice>",
        "tag on lines": f"{say['both']}\n<final_verdict>\n{label}\n</final_verdict>",
        "box": f"{say['compare']}\n$\\boxed{{\\text{{{label}}}}}$",
        "box after a lead": f"{verdict}: \\boxed{{\\mathrm{{{label}}}}}",
        "choose": f"{say['both']} {say['choose']}.",
        "better": f"{say['better']}.",
        "best": f"{say['compare']}\n{say['best']}.",
        "reasons behind": f"{label}\n\n{say['lacks']} {say['both']}",
        "sentence and reason": f"{say['better']}. {say['lacks']}",
        "because": f"{say['better']}, {say['because']}.",
        "hedge": f"{say['perhaps']}.",
        "noun": say["answer"],
        "place": f"{words['places']['AB'.index(label)]}.",
        "native letter": letter,
        "native better": f"{script['better']}.",
        "native choose": f"{say['both']}\n{script['choose']}.",
        "native best": script["best"],
        "native lead": f"**{verdict}:** {letter}",
        "native in quotes": f"{verdict}: «{letter}»",
        "native noun": script["answer"],
        "confidence in brackets": f"{label} ({confidence}: 80%)",
        "confidence on a line": f"{say['compare']}\n{verdict}: {label}\n{confidence}: 80%",
        "confidence behind a comma": f"{verdict}: {label}, {confidence}: 0.8",
        "scores": f"A: {high['A']}, B: {high['B']}",
        "scores on lines": f"{say['both']}\n{words['answer'].replace('{x}', 'A')}: {high['A']}/10\n"
        f"{words['answer'].replace('{x}', 'B')}: {high['B']}/10",
        "scores with commas": f"{say['score']}: A: {high['A']},5; B: {high['B']},0",
        "native digits": f"A: {digits[high['A']]}, B: {digits[high['B']]}",
        "probabilities": f"A: {high['A']}0%, B: {high['B']}0%",
        "scores and another verdict": f"A: 8, B: 7\n{verdict}: {label}",
        "full width": f"{verdict}：{chr(ord(label) + 0xFEE0)}",
        "quoted letter": f'"{label}"',
        "after thinking": f"<think>{say['asks']}</think>\n{say['choose']}.",
    }
    yield from ((shape, "choice", "letter", text, label) for shape, text in shapes.items())
    for shape, text in {"tie": say["tie"], "equal": f"{say['compare']}\n{say['equal']}."}.items():
        yield f"{shape}, offered", "tied", "letter", text, "C"
        yield f"{shape}, not offered", "choice", "letter", text, None
    yield "tie in brackets", "tied", "brackets", f"{say['both']} [[{say['tie']}]]", "C"


def _sentences(words, label):
    """Yield sentences that were written after the words of the parser, in Latin letters and those of the script."""
    other = "AB"[label == "A"]
    for script, letters in (("", "AB"), ("native ", words["letters"])):
        x, y = letters["AB".index(label)], letters["AB".index(other)]
        say = {key: text.replace("{x}", x).replace("{y}", y) for key, text in words.items() if isinstance(text, str)}
        choices = {key: f"{say[key]}." for key in ("prefer", "wins", "than", "since", "lean")} | {
            "final": f"{say['both']}\n**{say['final']}**",
            "ignores": f"{say['better']}. {say['ignores']}",
            "ignores on a line": f"{x}\n\n{say['ignores']}",
            "certainty on a line": f"{say['compare']}\n{say['final']}\n{say['sure']}: 85%",
            "certainty in brackets": f"{say['final']} ({say['sure']}: 0.9)",
        }
        refused = {key: f"{say[key]}." for key in ("notchoose", "according", "draw")} | {
            "which": f"{say['both']}\n{say['which']}",
            "doubt": f"{say['final']}. {say['doubt']}.",
            "doubt on a line": f"{say['final']}\n{say['doubt']}.",
            "unsaid": f"{say['wins']}. {say['unsay']}.",
        }
        marked = {key: words[key].replace("{x}", f"[[{x}]]").replace("{y}", y) for key in words if "{x}" in words[key]}
        marks = {
            "final mark": (f"{say['both']}\n{marked['final']}", label),
            "mark, then what is ignored": (f"[[{x}]]\n{say['ignores']}", label),
            "what is ignored, then a mark": (f"{say['ignores']} [[{x}]]", label),
            "mark, doubted": (f"[[{x}]]. {say['doubt']}.", None),
            "mark, unsaid": (f"[[{x}]]\n{say['unsay']}.", None),
            "mark of a source": (marked["according"], None),
            "mark not chosen": (marked["notchoose"], None),
        }
        yield from ((script + shape, "choice", "letter", text, label) for shape, text in choices.items())
        yield from ((script + shape, "choice", "letter", text, None) for shape, text in refused.items())
        yield from ((script + shape, "choice", "brackets", text, truth) for shape, (text, truth) in marks.items())
    yield "draw, offered", "tied", "letter", f"{words['draw']}.", "C"
    yield "grade", "rating", "brackets", f"{words['grade']}: 8/10", "8"


def _marks(words, label):
    say, script, letter = _phrases(words, label)
    shapes = {
        "mark after reasons": f"{say['compare']}\n{say['verdict']}: [[{label}]]",
        "native mark": f"{say['both']}\n[[{letter}]]",
        "native noun in a mark": f"[[{script['answer']}]]",
        "hedged mark": script["perhaps"].replace(letter, f"[[{label}]]", 1),
        "mark in a cell": f"| {say['verdict']} | [[{label}]] |",
        "mark in a tag": f"<result>[[{label}]]</result>",
        "mark in a sentence": words["better"].replace("{x}", f"[[{label}]]"),
        "mark, then a reason": f"[[{label}]] {say['lacks']}",
        "indecision, then a mark": f"{say['undecided']}. [[{label}]]",
    }
    yield from ((shape, "choice", "brackets", text, label) for shape, text in shapes.items())


def _objects(words, label):
    say, script, letter = _phrases(words, label)
    inner = json.dumps({"verdict": label, "reason": say["lacks"]}, ensure_ascii=False)
    call = json.dumps({"name": "judge", "arguments": inner}, ensure_ascii=False)
    shapes = {
        "object": inner,
        "arguments": call,
        "arguments in a fence": f"{say['compare']}\n```json\n{call}\n```",
        "text of an object": json.dumps(inner, ensure_ascii=False),
        "arguments twice": json.dumps({"arguments": json.dumps({"arguments": inner})}),
        "tool calls": json.dumps({"tool_calls": [{"function": {"name": "judge", "arguments": inner}}]}),
        "single quotes": f"{{'reason': '{say['both']}', 'verdict': '{label}',}}",
        "native value": json.dumps({"verdict": letter, "confidence": 0.8}, ensure_ascii=False),
        "key in the language": json.dumps({say["verdict"]: script["answer"]}, ensure_ascii=False),
    }
    yield from ((shape, "choice", "json", text, label) for shape, text in shapes.items())


def _numbers(words, label):
    say, _, _ = _phrases(words, label)
    number, digit = ("8", words["digits"][8]) if label == "A" else ("7", words["digits"][7])
    shapes = {
        "rating": f"{say['score']}: {number}/10",
        "native rating": f"{say['score']}: {digit}",
        "rating with a comma": f"{say['score']}: {number},0/10",
        "rating in a cell": f"{say['both']}\n\n| {say['score']} | {number} |",
        "rating in a tag": f"<points>{number}</points>",
        "rating and confidence": f"{say['score']}: {number}\n{say['confidence']}: 90%",
    }
    yield from ((shape, "rating", "brackets", text, number) for shape, text in shapes.items())


def _rankings(words, label):
    say, _, _ = _phrases(words, label)
    order = "CABED" if label == "A" else "DBAEC"
    native = [words["letters"][FIVE.index(name)] for name in order]
    named = [words["answer"].replace("{x}", name) for name in order]
    tiers = tuple((name,) for name in order)
    places = ("1st", "2nd", "3rd", "4th", "5th")
    shapes = {
        "ranking": f"{say['compare']}\n{say['ranking']}: [[{' > '.join(order)}]]",
        "ranking without brackets": f"{say['ranking']}: {' > '.join(order)}",
        "native ranking": f"[[{' > '.join(native)}]]",
        "arrows": f"{say['compare']}\n{' → '.join(native)}",
        "succeeds": f"[[{' ≻ '.join(named)}]]",
        "numbered list": "\n".join(f"{words['digits'][place]}. {name}" for place, name in enumerate(named, 1)),
        "numbered letters": "\n".join(f"{place}. **{name}**" for place, name in enumerate(order, 1)),
        "ordinals": "\n".join([say["both"], *map(": ".join, zip(places, order, strict=True))]),
    }
    yield from ((shape, "ranking", "brackets", text, tiers) for shape, text in shapes.items())
    tied = f"{order[0]} ＞ {order[1]} ＝ {order[2]} ＞ {order[3]} ＞ {order[4]}"
    truth = ((order[0],), tuple(sorted(order[1:3])), (order[3],), (order[4],))
    yield "ties in full width", "ranking", "brackets", tied, truth
    yield "one is missing", "ranking", "brackets", f"{say['ranking']}: {' > '.join(order[:4])}", None
    yield "two rankings", "ranking", "brackets", f"{' > '.join(order)}\n{' > '.join(order[::-1])}", None
    yield "a list of answers", "ranking", "brackets", "\n".join(f"- {name}" for name in named), None


def _undecided(words, label):
    say, script, letter = _phrases(words, label)
    other, undecided = "AB"[label == "A"], say["undecided"]
    reported = json.dumps({"reason": json.dumps({"verdict": label})})
    letters = {
        "only compares": f"{say['compare']} {say['both']}",
        "refuses": say["refuse"],
        "denies": f"{say['not_better']}.",
        "denies, native": f"{say['both']}\n{script['not_better']}.",
        "asks": say["asks"],
        "asks, native": script["asks"],
        "reports": f"{say['says']}.",
        "reports, native": f"{script['says']}.",
        "asks by a mark": f"{label}?",
        "two hedges": f"{say['perhaps']}, {say['perhaps'].replace(label, other)}",
        "undecided": f"{say['choose']}. {undecided}.",
        "undecided on a line": f"{say['better']}\n{undecided}.",
        "undecided in the sentence": f"{label}, {undecided}",
        "withdrawn": f"{say['better']}. {say['withdraws']}.",
        "thinks on": f"<think>{say['both']}\n{say['choose']}.",
        "equal scores": "A: 8, B: 8",
        "one score": "A: 8",
        "scores of criteria": f"1. A: 8, B: 7\n2. A: 6, B: 9\n{say['both']}",
        "table of criteria": "| 1 | A |\n| 2 | B |",
        "quotes": f"{say['compare']}\n<quote>{label}</quote>",
        "quotes a sentence": f'"{say["better"]}."',
        "fences": f"{say['both']}\n```\n{label}\n```",
        "titles": f"### {say['answer']}\n{say['both']}",
    }
    yield from ((shape, "choice", "letter", text, None) for shape, text in letters.items())
    marks = {
        "quotes the request": f'"[[A]]" / "[[B]]"\n{say["both"]}',
        "both marks": f"[[A]] / [[B]]: {undecided}",
        "mark, undecided": f"[[{label}]], {undecided}.",
        "mark, undecided on a line": f"[[{label}]]\n{undecided}.",
        "mark, withdrawn": f"[[{label}]]. {say['withdraws']}.",
        "mark denied": f"{words['not_better'].replace('{x}', f'[[{letter}]]')}.",
        "mark reported": f"{words['says'].replace('{x}', f'[[{label}]]').replace('{y}', other)}.",
        "mark asked": words["asks"].replace("{x}", f"[[{label}]]"),
    }
    yield from ((shape, "choice", "brackets", text, None) for shape, text in marks.items())
    objects = {
        "reported object": reported,
        "undecided object": f"{json.dumps({'verdict': label})}\n{undecided}.",
        "two calls": "\n".join(json.dumps({"arguments": json.dumps({"verdict": name})}) for name in "AB"),
    }
    yield from ((shape, "choice", "json", text, None) for shape, text in objects.items())
