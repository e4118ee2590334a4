"""Texts of eight scripts with everything that must not be translated, and translators that damage marks."""

import html
import random
import re
from collections.abc import Callable

from steelyard.translation.marks import ProtectedText

PROSE = (
    "The quick brown fox jumps over the lazy dog.",
    "It costs $5 and $6 (or 10 %), e.g. 3.5 km.",
    "Der Fluß fließt — naïve façade, «ça va»?",
    "敏捷的棕色狐狸跳过了懒狗。价格是5元，共10%。",
    "他说：“你好*世界*”，然后离开了……",
    "الثعلب البني السريع يقفز فوق الكلب الكسول؟",
    "السعر ١٠٫٥ كم، شكرًا\u200f!",
    "השועל החום המהיר קופץ מעל הכלב העצלן.",
    "\u202bשלום עולם\u202c (עברית)",
    "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है।",
    "क्षत्रिय १२३ ज्ञान\u200dश्री",
    "Быстрая коричневая лиса прыгает через ленивую собаку.",
    "すばやい茶色のキツネがのろまな犬を飛び越える。",
    "カタカナとｶﾀｶﾅ「引用」",
    "빠른 갈색 여우가 게으른 개를 뛰어넘는다.",
    "👩‍👩‍👧‍👦 🇮🇳 café cafe\u0301 \u00a0",
    "a < b and c > d, item(s), and/or, U.S.A.",
    "[NOTE] see [1] and (2)",
    "**bold** and *emphasis* and __strong__ and ~~gone~~",
)
PIECES = (
    "`x = 1`", "``a`b``", "```python\nprint('⟦1⟧')\n```", "~~~\nXQ1Z\n~~~", "    indented(code)", "$E = mc^2$",
    "$$\n\\int_0^1 x\n\ndx\n$$", "\\(a_1\\)", "\\[b\n\nc\\]", "\\begin{align}\na &= b\\\\\n\n- c\n\\end{align}",
    "[label](https://example.com/a_(b))", "![alt](img.png 'title')", "[text][ref]", "\n\n[ref]: https://r.example\n\n",
    "<b>bold</b>", "<br/>", "<code>x</code>", "<!-- note -->", "<div>\ninside\n</div>", "&nbsp;", "https://例え.jp/パス",
    "http://a.b/c?d=e&f=%20", "name@example.org", "/usr/local/bin", "src/main.py", "C:\\Users\\name", "snake_case",
    "camelCase", "x.reverse()", "--dry-run", "{name}", "{{ value }}", "%s", "[YOUR NAME]", "<PLACEHOLDER>", "1.2.3",
    "16px", "<|im_start|>", "[INST]", "__PLACEHOLDER_1__", "\\frac{a}{b}", "line\\nbreak", "`unclosed", "$unclosed",
    "\\[", "⟦", "⟧", "⟦1⟧", "⟦ 2 ⟧", "⟦B1⟧", "XQ1Z", "xq 2", "ＸＱ３Ｚ", "XQB1Z", "⟦١⟧",
)  # fmt: skip
JOINS = (
    "", " ", " ", ", ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\n- ", "\n1. ", "\n> ", "\n# ", " | ", "\n|---|---|\n",
    "\u200f", "、",
)  # fmt: skip
Token = tuple[str, int | None]
"""A part of a translation, and the number in the text of the piece whose mark it is; null for prose, and for what is
no longer a mark."""
Translator = Callable[[list[Token], random.Random], list[Token]]


def generated_text(seed: int) -> str:
    """Draw a text of up to twelve fragments, of which half are prose."""
    drawn = random.Random(seed)
    parts = []
    for _ in range(drawn.randint(1, 12)):
        parts += drawn.choice(drawn.choice((PROSE, PIECES))), drawn.choice(JOINS)
    return "".join(parts)


def tokens_of(protected: ProtectedText) -> list[Token]:
    """Split a protected text at its marks, which stand in the order of its pieces."""
    tokens: list[Token] = []
    rest = protected.text
    for number, piece in enumerate(protected.pieces):
        before, found, rest = rest.partition(piece.mark)
        assert found, f"{piece.mark} is not in the text"
        tokens += (before, None), (piece.mark, number)
    return [*tokens, (rest, None)]


def drop(tokens: list[Token], drawn: random.Random) -> list[Token]:
    """Leave marks out, or a part of them."""
    return [
        token if token[1] is None or drawn.random() < 0.7 else (token[0][: drawn.randrange(len(token[0]))], None)
        for token in tokens
    ]


def double(tokens: list[Token], drawn: random.Random) -> list[Token]:
    """Write marks again beside themselves, or anywhere."""
    translated = list(tokens)
    for token in tokens:
        if token[1] is not None and drawn.random() < 0.3:
            translated.insert(drawn.randrange(len(translated) + 1), token)
    return translated


def reorder(tokens: list[Token], drawn: random.Random) -> list[Token]:
    """Move marks to the places of others, as languages do."""
    marks = [token for token in tokens if token[1] is not None]
    drawn.shuffle(marks)
    return [token if token[1] is None else marks.pop() for token in tokens]


def space_out(tokens: list[Token], drawn: random.Random) -> list[Token]:
    """Put blanks, joiners or signs of direction inside marks."""
    gap = drawn.choice((" ", "\u00a0", "\u200f", "-", "  "))
    return [token if token[1] is None or drawn.random() < 0.5 else (gap.join(token[0]), token[1]) for token in tokens]


def translate(tokens: list[Token], drawn: random.Random) -> list[Token]:
    """Translate marks as if they were words: other digits, other brackets, other letters; and prose as well."""
    letters = str.maketrans("abdegilmnorstuvxXQZB", "абдегилмнорстувхХКЗБ")
    changes = (
        lambda mark: mark.translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")),
        lambda mark: mark.translate(str.maketrans("⟦⟧", "[]")),
        lambda mark: mark.translate(str.maketrans("⟦⟧", "【】")),
        lambda mark: mark.translate(letters),
        lambda mark: "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in mark),
        lambda mark: f"{mark[:-1]}0{mark[-1]}",
        lambda mark: mark.replace("1", "one"),
    )
    return [
        (text.translate(letters), None) if number is None
        else (text, number) if drawn.random() < 0.6
        else (drawn.choice(changes)(text), number)
        for text, number in tokens
    ]  # fmt: skip


def upper_case(tokens: list[Token], drawn: random.Random) -> list[Token]:
    """Write everything in capitals, or in small letters."""
    change = drawn.choice((str.upper, str.lower, str.title))
    return [(change(text), number) for text, number in tokens]


def quote(tokens: list[Token], drawn: random.Random) -> list[Token]:
    """Put quotation marks or brackets around marks."""
    before, after = drawn.choice(('""', "“”", "«»", "「」", "()", "''"))
    return _around(tokens, drawn, before, after)


def format_as_code(tokens: list[Token], drawn: random.Random) -> list[Token]:
    """Make marks code or formulas, as models do with what they take for code."""
    sign = drawn.choice(("`", "``", "$", "\n```\n", "\n~~~\n"))
    return _around(tokens, drawn, sign, sign)


def _around(tokens: list[Token], drawn: random.Random, before: str, after: str) -> list[Token]:
    translated: list[Token] = []
    for token in tokens:
        is_changed = token[1] is not None and drawn.random() < 0.5
        translated += [(before, None), token, (after, None)] if is_changed else [token]
    return translated


def merge(tokens: list[Token], drawn: random.Random) -> list[Token]:
    """Write neighboring marks as one, or side by side."""
    translated: list[Token] = []
    for text, number in tokens:
        last = next((place for place in range(len(translated) - 1, -1, -1) if translated[place][1] is not None), None)
        if number is None or last is None or drawn.random() < 0.5:
            translated.append((text, number))
        elif drawn.random() < 0.5:
            translated.insert(last + 1, (text, number))
        else:
            translated[last] = (f"{translated[last][0][:-1]}{drawn.choice((',', '-', ', ', '⟧'))}{text[1:]}", None)
    return translated


def move(tokens: list[Token], drawn: random.Random) -> list[Token]:
    """Take marks to another sentence, or into the middle of a word."""
    translated = list(tokens)
    for token in tokens:
        if token[1] is not None and drawn.random() < 0.4:
            translated.remove(token)
            places = [place for place, (text, number) in enumerate(translated) if number is None and text]
            if not places:
                return tokens
            place = drawn.choice(places)
            text = translated[place][0]
            cut = drawn.randrange(len(text) + 1)
            translated[place : place + 1] = [(text[:cut], None), token, (text[cut:], None)]
    return translated


def add_fence(tokens: list[Token], drawn: random.Random) -> list[Token]:
    """Put the whole translation between fences."""
    sign = drawn.choice(("```", "~~~", "````"))
    return [(f"{sign}{drawn.choice(('', 'markdown', 'text'))}\n", None), *tokens, (f"\n{sign}", None)]


def escape(tokens: list[Token], drawn: random.Random) -> list[Token]:
    """Write everything as HTML does, as services for pages do."""
    change = drawn.choice((html.escape, lambda text: text.encode("ascii", "xmlcharrefreplace").decode()))
    return [(change(text), number) for text, number in tokens]


def join_lines(tokens: list[Token], drawn: random.Random) -> list[Token]:
    """Write everything in one line, as engines for sentences do, or without blanks at the beginnings of lines."""
    pattern, sign = drawn.choice(((r"\s*[\r\n]+\s*", " "), (r"(?<=[\r\n])[ \t>]+", ""), (r"\n{2,}", "\n")))
    return [(re.sub(pattern, sign, text) if number is None else text, number) for text, number in tokens]


def punctuate(tokens: list[Token], drawn: random.Random) -> list[Token]:
    """End marks as sentences, inside or after them."""
    translated: list[Token] = []
    for text, number in tokens:
        if number is None or drawn.random() < 0.5:
            translated.append((text, number))
        elif drawn.random() < 0.5:
            translated.append((f"{text[:-1]}.{text[-1]}", None))
        else:
            translated += (text, number), (drawn.choice(".。،।"), None)
    return translated


TRANSLATORS: dict[str, Translator] = {
    "drops marks": drop, "doubles marks": double, "reorders marks": reorder,
    "spaces marks out": space_out, "translates marks": translate, "upper-cases marks": upper_case,
    "quotes marks": quote, "formats marks as code": format_as_code, "merges marks": merge, "moves marks": move,
    "adds a fence": add_fence, "escapes HTML": escape, "joins lines": join_lines, "punctuates marks": punctuate,
}  # fmt: skip
