"""Replies of judges that try to be misread, drawn by a grammar, for the tests of the published formats.

    reply    := [thinking] reasons* ending
    thinking := "<think>" reasons* "</think>"
    reasons  := comparison | quotation | report | instruction | negation | boxed number | markdown     in nine languages
    ending   := verdict | verdict wrapped | verdicts that conflict | nothing (cut off) | an end of reasons alone
                | a verdict that is negated | a verdict that is an answer's

``truth`` is the verdict that a careful reader takes from the reply, null where it has none. A report or an instruction
of an answer is one sentence, which names its speaker: text that an answer wrote and that nothing marks as such cannot
be told from a verdict, and is not in the grammar.
"""

import random
from typing import NamedTuple


class Sample(NamedTuple):
    """A reply in a form with the verdict that a careful reader takes from it, and whether it is plain."""

    style: str
    text: str
    truth: str | None
    is_plain: bool


def _verdict(style, label):
    first, number = label == "A", "1" if label == "A" else "2"
    scores = "8, 3" if first else "3, 10"
    ranking = "2" if first else "5"
    five = "4, 2" if first else "1, 5"
    return {
        "rm_r1": f"<answer>[[{label}]]</answer>",
        "rrm": f"\\boxed{{Assistant {number}}}",
        "deepseek_grm": f"Scores: \\boxed{{{scores}}}",
        "genrm": f"[The Begin of Individual Scores]\n\\boxed{{{five}}}\n[The End of Individual Scores]\n\n"
        f"[The Begin of Ranking Score]\n\\boxed{{{ranking}}}\n[The End of Ranking Score]",
        "prometheus": f"[RESULT] {label}",
        "selene": f"**Result:** {label}",
        "mr3": f'{{"explanation": "Response {label} is more accurate.", "score": "Assistant {label}"}}',
        "j1": f"<answer> [[{label}]] </answer>",
        "skywork_critic": f"[[{label}]]",
        "compass_judger": label,
    }[style]


STYLES = (
    "rm_r1", "rrm", "deepseek_grm", "genrm", "prometheus", "selene", "mr3", "j1", "skywork_critic", "compass_judger",
)  # fmt: skip
_COMPARISONS = (
    "Answer {x} is accurate, and answer {y} misses the second condition.",
    "回答{x}更准确，回答{y}漏掉了第二个条件。",
    "回答{x}は正確ですが、回答{y}は条件を見落としています。",
    "الإجابة {x} دقيقة، والإجابة {y} تهمل الشرط الثاني.",
    "उत्तर {x} सटीक है, और उत्तर {y} दूसरी शर्त छोड़ देता है।",
    "La respuesta {x} es exacta, y la respuesta {y} olvida una condición.",
    "답변 {x}은 정확하고 답변 {y}는 두 번째 조건을 빠뜨렸다.",
    "Ответ {x} точен, а ответ {y} упускает второе условие.",
    "Die Antwort {x} ist genau, und der Antwort {y} fehlt eine Bedingung.",
)
_QUOTATIONS = (
    'Answer {y} contains the text "{mark}", which proves nothing.', "回答{y}中有“{mark}”这样的文字，与质量无关。",
    "回答{y}には「{mark}」という文があります。", "> {mark}", "```\n{mark}\n```",
    "The string `{mark}` comes up in answer {y}.",
)  # fmt: skip
_REPORTS = (
    "Answer {y} says to output {mark} now", "Response {y} asks me to reply {mark}", "回答{y}要求我直接写 {mark}",
    "回答{y}は {mark} と書くよう要求しています", "الإجابة {y} تطلب مني أن أكتب {mark}",
    "उत्तर {y} मुझसे {mark} लिखने की मांग करता है",
    "La respuesta {y} pide que escriba {mark}", "답변 {y}는 {mark} 라고 쓰도록 요구한다",
    "Ответ {y} требует написать {mark}",
    "Die Antwort {y} verlangt, {mark} zu schreiben",
)  # fmt: skip
_NEGATIONS = (
    "{mark} would not be right", "I cannot choose {mark}", "{mark} 不是正确的结论", "{mark} は正しくない",
    "ليس الحكم {mark}",
    "{mark} सही नहीं है", "{mark} no es correcto", "{mark} 은 옳지 않다", "{mark} не верно",
    "{mark} ist nicht richtig",
)  # fmt: skip
_PLAIN_LEADS = ("", "Therefore: ", "Final verdict: ", "最终结论：", "結論: ", "**", "So the final answer is ")


def _inline(style, label):
    """A verdict on one line, as it is quoted within a sentence."""
    return " ".join(_verdict(style, label).split())


def _fragment(draw, style, truth):
    x, y = truth, "B" if truth == "A" else "A"
    kind = draw.choice(("comparison", "comparison", "quotation", "report", "negation", "box", "markdown"))
    if kind == "box":
        return draw.choice(("The result in both is \\boxed{42}.", "Reward: 10", "Step 1 of answer A gives 1/10."))
    if kind == "markdown":
        return draw.choice(
            (f"### Answer {y}\n- fluent\n- **wrong**", "| | A | B |\n|---|---|---|\n| facts | 1 | 2 |", "---")
        )
    pattern = {
        "comparison": _COMPARISONS, "quotation": _QUOTATIONS, "report": _REPORTS, "negation": _NEGATIONS
    }[kind]  # fmt: skip
    return draw.choice(pattern).format(x=x, y=y, mark=_inline(style, draw.choice((x, y, y))))


def _full_width(text):
    return text.replace("[[", "［［").replace("]]", "］］").replace("[RESULT]", "［ＲＥＳＵＬＴ］")


def _ending(draw, style, truth):
    """The end of a reply, and the verdict that it states."""
    other = "B" if truth == "A" else "A"
    kind = draw.choice(("verdict",) * 6 + ("wrapped", "full width", "conflict", "cut", "negated", "reported", "twice"))
    if kind in ("verdict", "wrapped", "full width"):
        verdict = _verdict(style, truth)
        if kind == "wrapped" and "\n" not in verdict:
            lead = draw.choice(_PLAIN_LEADS)
            verdict = f"{lead}{verdict}{'**' if lead == '**' else ''}"
        return (_full_width(verdict) if kind == "full width" else verdict), truth
    if kind == "twice":
        return f"{_verdict(style, truth)}\n\n{_verdict(style, truth)}", truth
    if kind == "conflict":
        return f"{_verdict(style, other)}\n\n{_verdict(style, truth)}", None
    if kind == "cut":
        verdict = _verdict(style, truth)
        return f"All in all, the better answer\n{verdict[: draw.randrange(max(1, len(verdict) // 2))]}", None
    pattern = draw.choice(_NEGATIONS if kind == "negated" else _REPORTS)
    return pattern.format(x=truth, y=other, mark=_inline(style, draw.choice((truth, other)))), None


def adversarial_replies(number, seed):
    """Draw that many replies, the styles in turn."""
    draw = random.Random(seed)
    samples = []
    for place in range(number):
        style, label = STYLES[place % len(STYLES)], draw.choice("AB")
        thinking = ""
        if draw.random() < 0.4:
            inside = [_fragment(draw, style, label) for _ in range(draw.randrange(1, 4))]
            thinking = "<think>\n" + "\n".join([*inside, _verdict(style, draw.choice("AB"))]) + "\n</think>\n"
        reasons = [_fragment(draw, style, label) for _ in range(draw.randrange(4))]
        if style == "rm_r1" and reasons:
            reasons = ["<eval>", *reasons, "</eval>"]
        ending, truth = _ending(draw, style, label)
        samples.append(Sample(style, thinking + "\n\n".join([*reasons, ending]), truth, not reasons and not thinking))
    return samples
