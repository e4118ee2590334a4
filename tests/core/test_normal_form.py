"""The identity of a text: what makes another text, and what is another way to write it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each_value import each
from steelyard.core.text import common_spellings, conversation_form, is_same_text, name_form, normal_form
from steelyard.core.types import Message


@each(
    ("text", "other"),
    [
        ("Hello there", " hello\n\nTHERE\t\u00a0"),
        ("Hello there", "\ufeffHel\u200blo \u200fthere\u202c"),
        ("été", unicodedata.normalize("NFD", "ÉTÉ")),
        ("Việt Nam đẹp quá", unicodedata.normalize("NFD", "Việt Nam đẹp quá")),
        ("한국어를 배우다", unicodedata.normalize("NFD", "한국어를 배우다")),
        ("straße", "STRASSE"),
        ("istanbul ısı", "İSTANBUL ISI"),
        ("ΟΔΟΣ", "οδος"),
        ("cooperation", "co\u00adoperation"),
        ('it\'s "so" - now', "it\u2019s \u201cso\u201d \u2014 now"),
        ("Ｈｅｌｌｏ，１２３！", "hello,123!"),
        ("ガギグ。", "ｶﾞｷﾞｸﾞ｡"),
        ("秋の雨", "秋\u3000の 雨"),
        ("用 Python 写 3 行", "用Python写3行"),
        ("你好，世界？", "你好 , 世界 ?"),
        ("第一行\n第二行", "第一行第二行"),
        ("什么是爱？", "什\u200b么是\ufeff 爱 ？"),
        ("إلى آخر أيام ٱلعام", "الي اخر ايام العام"),
        ("كَتَبَ الوَلَدُ", "كتب الولد"),
        ("مرحبا", "مرحـــبا"),
        ("ﻣﺮﺣﺒﺎ", "مرحبا"),
        ("کتاب فارسی", "كتاب فارسي"),
        ("می\u200cخواهم", "میخواهم"),
        ("שָׁלוֹם", "שלום"),
        ("ज़रूरत", "\u091c\u0930\u0942\u0930\u0924"),
        ("\u0958\u0932\u092e", "\u0915\u093c\u0932\u092e"),
        ("क्ष", "क्\u200dष"),
        ("I ❤\ufe0f it", "I ❤ it"),
        ("use a ﬁle", "use a file"),
        ("print(1)\n    ", "print(1)"),
        ("if x:\n    y()\nz()", "if x:\n\ty()\n\nz()  "),
        ("a\r\nb\rc\u2028d", "a b c d"),
    ],
)
def test_two_ways_to_write_a_text_are_one(text, other):
    assert normal_form(text) == normal_form(other)


@each(
    ("text", "other"),
    [
        ("a b", "ab"),
        ("한국 어", "한국어"),
        ("if x:\n    y()\nz()", "if x:\n    y()\n    z()"),
        ("for a in b:\n  for c in d:\n    e()", "for a in b:\n  for c in d:\n  e()"),
        ("What is `Foo`?", "What is `foo`?"),
        ("```\nX = 1\n```\nWhat is X?", "```\nx = 1\n```\nWhat is X?"),
        ("print('中 文') in `print('中 文')`", "print('中文') in `print('中文')`"),
        ("Simplify $X_1 + x$", "Simplify $x_1 + x$"),
        (r"\(N\) and \(n\)", r"\(n\) and \(n\)"),
        (r"\[A\] or b", r"\[a\] or b"),
        (r"the sum \Sigma", r"the sum \sigma"),
        ("2⁵", "25"),
        ("1½", "11/2"),
        ("e\u0301", "e"),
        ("ما؟", "من؟"),
        ("मकान", "दुकान"),
        ("ü", "u"),
        ("سؤال", "سوال"),
        ("x != y", "x = y"),
        ("-5", "5"),
    ],
)
def test_other_texts_stay_other_texts(text, other):
    assert normal_form(text) != normal_form(other)


def test_prices_are_no_formulas():
    assert normal_form("COSTS $5 OR $10") == normal_form("costs $5 or $10")


@given(st.text() | st.text("aB \n\t`$\\()中ｶﾞأَ\u200b\u0301?"))
def test_the_form_of_a_form_is_itself_in_all_but_its_case(text):
    form = normal_form(text)
    assert " ".join(normal_form(form).casefold().split()) == " ".join(form.casefold().split())
    assert normal_form(f"\ufeff {text} \n") == form


@pytest.mark.parametrize("unit", ["\\(", "\\[", "$", "$a ", "`a", "```\n", "\n ", "中 ", " ", "\u0301\u0323", "$$a"])
def test_long_texts_of_marks_take_linear_time(unit):
    # Quadratic time of these would be hours.
    assert isinstance(normal_form("a" + unit * 300_000 + "中"), str)


_PIECES = (
    "a", "A", "é", "e\u0301", "i", "İ", "ı", "\u0307", "ß", "SS", "ﬁ", "fi", "Ｂ", "b", " ", "\n", "\n    ", "\t",
    "\u3000",
    "\u200b", "\u200d", "\ufe0f", "\x00", "ガ", "ｶﾞ", "か", "\u3099", "用", " 用 ", "إ", "ا", "ـ", "\u064e", "क़",
    "क\u093c",
    "`", "```\n", "$", "\\(", "\\)", "\u0301" * 40, "각", "\u1100\u1161\u11a8", "σ", "ς", "Σ", "한", "\u2028",
    "—", "-",
)  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from(_PIECES), st.sampled_from(_PIECES), st.booleans()), min_size=1, max_size=150),
    st.sampled_from(("", "NFC", "NFD", "upper", "blank", "unseen")),
)
def test_the_ends_of_texts_decide_as_their_whole_forms_do(pieces, change):
    first = "".join(piece for piece, _, _ in pieces)
    second = "".join(other if is_other else piece for piece, other, is_other in pieces)
    changes = {
        "NFC": lambda text: unicodedata.normalize("NFC", text),
        "NFD": lambda text: unicodedata.normalize("NFD", text),
        "upper": str.upper,
        "blank": lambda text: text.replace(" ", "  "),
        "unseen": "\u200b".join,
    }
    for other in (second, changes.get(change, str)(first)):
        assert is_same_text(first, other) == (normal_form(first) == normal_form(other))


def test_the_form_of_a_conversation_has_its_roles():
    def turns(*pairs):
        return [Message(role=role, content=content) for role, content in pairs]

    assert conversation_form(turns(("user", "A"), ("assistant", "b"))) == conversation_form(
        turns(("user", "a "), ("assistant", "B"))
    )
    assert conversation_form(turns(("user", "a b"))) != conversation_form(turns(("user", "a"), ("user", "b")))
    assert conversation_form(turns(("system", "a"))) != conversation_form(turns(("user", "a")))
    assert conversation_form(turns(("user", "\u200b "))) == conversation_form([]) == ""


def test_a_name_has_its_most_frequent_spelling_and_a_tidy_one_of_equally_frequent_ones():
    assert common_spellings(["b", "B ", "B ", "a", "A", "c"], name_form) == {
        "b": "B ", "B ": "B ", "a": "A", "A": "A", "c": "c"
    }  # fmt: skip
    assert common_spellings({"x": 1, "X": 5}, name_form) == {"x": "X", "X": "X"}
    assert name_form("Closed_QA") == name_form(" closed-qa") == "closed qa"
    assert name_form("C++") != name_form("C#")
