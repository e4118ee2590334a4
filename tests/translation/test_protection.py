"""Every kind of text that must not be translated becomes a mark; prose beside it stays."""

import time

import pytest

from steelyard.translation.blocks import Block, blocks
from steelyard.translation.marks import WORDS
from steelyard.translation.protection import has_prose, protect


def pieces(text):
    return [(piece.text, piece.kind) for piece in protect(text).pieces]


@pytest.mark.parametrize(
    ("text", "expected", "protected"),
    [
        ("Run this:\n\n```py\nx = 1\n```\n\nDone.", "Run this:\n\n⟦1⟧\n\nDone.", [("```py\nx = 1\n```", "code block")]),
        ("- Run:\n  ~~~\n  x\n  ~~~\n- Stop", "- Run:\n  ⟦1⟧\n- Stop", [("~~~\n  x\n  ~~~", "code block")]),
        ("> ```\n> x\n> ```\n> said", "> ⟦1⟧\n> said", [("```\n> x\n> ```", "code block")]),
        ("Never closed:\n```\nx", "Never closed:\n⟦1⟧", [("```\nx", "code block")]),
        ("Run:\n\n    x = 1\n\n    y = 2\n\nDone", "Run:\n\n⟦1⟧\n\nDone", [("    x = 1\n\n    y = 2", "code block")]),
        ("Use `a` or ``b`c`` here", "Use ⟦1⟧ or ⟦2⟧ here", [("`a`", "inline code"), ("``b`c``", "inline code")]),
        ("A `lonely mark", "A `lonely mark", []),
        ("This is \\`no code\\`", "This is ⟦1⟧no code⟦2⟧", [("\\`", "escape"), ("\\`", "escape")]),
        ("See [the page](https://a.b/c_(d)).", "See [the page](⟦1⟧).", [("https://a.b/c_(d)", "link")]),
        ("See [it](<a b> 'Title').", "See [it](⟦1⟧).", [("<a b> 'Title'", "link")]),
        ("![a cat](cat.png)", "![a cat](⟦1⟧)", [("cat.png", "link")]),
        (
            "Read [this][x] or [x].\n\n[x]: http://y.z 'T'\n",
            "Read [this]⟦1⟧ or ⟦2⟧.\n\n⟦3⟧\n",
            [("[x]", "link"), ("[x]", "link"), ("[x]: http://y.z 'T'", "link")],
        ),
        ("A claim.[^1]", "A claim.⟦1⟧", [("[^1]", "link")]),
        ("Some <b>bold</b> text", "Some ⟦1⟧bold⟦2⟧ text", [("<b>", "HTML"), ("</b>", "HTML")]),
        ('<p class="x">Hello</p>', "⟦1⟧Hello⟦2⟧", [('<p class="x">', "HTML"), ("</p>", "HTML")]),
        ("press <kbd>Ctrl C</kbd> now", "press ⟦1⟧ now", [("<kbd>Ctrl C</kbd>", "HTML")]),
        ("<pre>\nx\n\ny\n</pre>\nthen", "⟦1⟧\nthen", [("<pre>\nx\n\ny\n</pre>", "HTML")]),
        ("one<!-- two -->&nbsp;three", "one⟦1⟧three", [("<!-- two -->&nbsp;", "HTML")]),
        ("if a < b and c > d", "if a < b and c > d", []),
        ("so $E = mc^2$ holds", "so ⟦1⟧ holds", [("$E = mc^2$", "formula")]),
        ("it is $5 and $6, or $7 and a 8$ coin", "it is $5 and $6, or $7 and a 8$ coin", []),
        ("US$5 to A$7", "US$5 to A$7", []),
        ("with $2x + 1 = 5$ given", "with ⟦1⟧ given", [("$2x + 1 = 5$", "formula")]),
        ("Then\n$$\na\n\n- b\n$$\nends", "Then\n⟦1⟧\nends", [("$$\na\n\n- b\n$$", "formula")]),
        ("let \\(a\\) and \\[b\\] be", "let ⟦1⟧ and ⟦2⟧ be", [("\\(a\\)", "formula"), ("\\[b\\]", "formula")]),
        (
            "\\begin{align}\na\n\n# b\n\\end{align}\nso",
            "⟦1⟧\nso",
            [("\\begin{align}\na\n\n# b\n\\end{align}", "formula")],
        ),
        ("a \\frac{\\sqrt{2}}{3} b", "a ⟦1⟧ b", [("\\frac{\\sqrt{2}}{3}", "formula")]),
        ("an \\textbf{important} word", "an ⟦1⟧{important} word", [("\\textbf", "formula")]),
        ("first\\nThen", "first⟦1⟧Then", [("\\n", "escape")]),
        ("x^2 + y^{10}", "⟦1⟧ + ⟦2⟧", [("x^2", "formula"), ("y^{10}", "formula")]),
        (
            "See https://a.b/c?d=e#f, (http://g.h/i).",
            "See ⟦1⟧, (⟦2⟧).",
            [("https://a.b/c?d=e#f", "URL"), ("http://g.h/i", "URL")],
        ),
        ("<https://a.b>", "⟦1⟧", [("<https://a.b>", "URL")]),
        ("请访问https://a.com获取信息。", "请访问⟦1⟧获取信息。", [("https://a.com", "URL")]),
        ("见https://zh.a.org/wiki/汉字。", "见⟦1⟧。", [("https://zh.a.org/wiki/汉字", "URL")]),
        ("Write to ann.b+c@mail.example.org.", "Write to ⟦1⟧.", [("ann.b+c@mail.example.org", "e-mail address")]),
        (
            "In /usr/lib, ./a or ~/b; and/or 1/2",
            "In ⟦1⟧, ⟦2⟧ or ⟦3⟧; and/or 1/2",
            [("/usr/lib", "path"), ("./a", "path"), ("~/b", "path")],
        ),
        ("打开/etc/hosts文件，是/否", "打开⟦1⟧文件，是/否", [("/etc/hosts", "path")]),
        ("Open src/main.py.", "Open ⟦1⟧.", [("src/main.py", "path")]),
        ("Open C:\\Users\\ann.", "Open ⟦1⟧.", [("C:\\Users\\ann", "path")]),
        (
            "snake_case, camelCase, __init__, HashMap",
            "⟦1⟧, ⟦2⟧, ⟦3⟧, ⟦4⟧",
            [
                ("snake_case", "identifier"),
                ("camelCase", "identifier"),
                ("__init__", "identifier"),
                ("HashMap", "identifier"),
            ],
        ),
        ("_soft_ and __bold__ by McDonald", "_soft_ and __bold__ by McDonald", []),
        (
            "call x.reverse() or np.dot(a, b)",
            "call ⟦1⟧ or ⟦2⟧",
            [("x.reverse()", "identifier"), ("np.dot(a, b)", "identifier")],
        ),
        ("f(x) of item(s), e.g. in the U.S.A.", "⟦1⟧ of item(s), e.g. in the U.S.A.", [("f(x)", "identifier")]),
        (
            "use --dry-run, or --n=3, now -- please",
            "use ⟦1⟧, or ⟦2⟧, now -- please",
            [("--dry-run", "identifier"), ("--n=3", "identifier")],
        ),
        (
            "Dear {name}, {{ city }}, %s: [YOUR NAME] <AGE>",
            "Dear ⟦1⟧, ⟦2⟧, ⟦3⟧: ⟦4⟧ ⟦5⟧",
            [
                ("{name}", "placeholder"),
                ("{{ city }}", "placeholder"),
                ("%s", "placeholder"),
                ("[YOUR NAME]", "placeholder"),
                ("<AGE>", "HTML"),
            ],
        ),
        ("亲爱的{姓名}", "亲爱的⟦1⟧", [("{姓名}", "placeholder")]),
        ("[NOTE] [1] 100% sure {a, b}", "[NOTE] [1] 100% sure {a, b}", []),
        ("<|im_start|>user [INST]", "⟦1⟧user ⟦2⟧", [("<|im_start|>", "template token"), ("[INST]", "template token")]),
        (
            "v1.2 or 3.11.7, 16px, 0x1F",
            "⟦1⟧ or ⟦2⟧, ⟦3⟧, ⟦4⟧",
            [("v1.2", "number"), ("3.11.7", "number"), ("16px", "number"), ("0x1F", "number")],
        ),
        ("3.5 km, 10 %, 1,200 and 2024", "3.5 km, 10 %, 1,200 and 2024", []),
        (
            "# Head `x`\n\n1. one\n2. two\n\n> said\n\n---\n",
            "# Head ⟦1⟧\n\n1. one\n2. two\n\n> said\n\n---\n",
            [("`x`", "inline code")],
        ),
        ("| a | `b` |\n|---|:-:|\n| c | d |", "| a | ⟦1⟧ |\n|---|:-:|\n| c | d |", [("`b`", "inline code")]),
        # Spelt without a fence, a program stays as it is; its comments are prose.
        (
            "Try:\n\ndef add(a, b):\n    # Add both.\n    return a + b\n\nIt adds.",
            "Try:\n\n⟦1⟧\n    # Add both.\n⟦2⟧\n\nIt adds.",
            [("def add(a, b):", "code block"), ("    return a + b", "code block")],
        ),
        (">>> sum([1, 2])\n3\n\nThat is all.", "⟦1⟧\n\nThat is all.", [(">>> sum([1, 2])\n3", "code block")]),
        (
            'It was\n{\n  "name": "Ann",\n  "tags": ["a"]\n}\nin the end.',
            "It was\n⟦1⟧\nin the end.",
            [('{\n  "name": "Ann",\n  "tags": ["a"]\n}', "code block")],
        ),
        (
            "1. Run\n   x = f(1)\n2. Stop",
            "1. Run\n⟦1⟧\n2. Stop",
            [("   x = f(1)", "code block")],
        ),
        (
            "Fails:\n\nTypeError: f() is wrong\n\nWhy?",
            "Fails:\n\n⟦1⟧\n\nWhy?",
            [("TypeError: f() is wrong", "code block")],
        ),
        ("SELECT a FROM b WHERE c = 1;\n\nlists", "⟦1⟧\n\nlists", [("SELECT a FROM b WHERE c = 1;", "code block")]),
        (
            "<p>\nHello\nf(x) = g(2)\n</p>",
            "⟦1⟧\nHello\n⟦2⟧\n⟦3⟧",
            [("<p>", "HTML"), ("f(x) = g(2)", "code block"), ("</p>", "HTML")],
        ),
        # Indented prose is prose, also between lines of a program.
        ("Bring:\n\n    Warm clothes\n    Water", "Bring:\n\n    Warm clothes\n    Water", []),
        ("So:\n\n    it went on for many years", "So:\n\n    it went on for many years", []),
        ("Run:\n\n    npm install x\n    git init", "Run:\n\n⟦1⟧", [("    npm install x\n    git init", "code block")]),
        (
            "Text.\n\n    Exemple :\n    f([1]) ➞ True\n    # c'est juste",
            "Text.\n\n    Exemple :\n⟦1⟧\n    # c'est juste",
            [("    f([1]) ➞ True", "code block")],
        ),
        (
            "Use \\begin{proof}\nIt is so.\n\\end{proof}",
            "Use ⟦1⟧\nIt is so.\n⟦2⟧",
            [("\\begin{proof}", "formula"), ("\\end{proof}", "formula")],
        ),
        ("if x<y then z>w, <long answer>", "if x<y then z>w, <long answer>", []),
        (
            "<input type=a checked> or <b hidden>x</b>",
            "⟦1⟧ or ⟦2⟧x⟦3⟧",
            [("<input type=a checked>", "HTML"), ("<b hidden>", "HTML"), ("</b>", "HTML")],
        ),
        ("I left. --The end, bi-/pansexual", "I left. --The end, bi-/pansexual", []),
        (
            "C:\\Program Files (x86)\\A B\\c.exe and D:\\d",
            "⟦1⟧ and ⟦2⟧",
            [("C:\\Program Files (x86)\\A B\\c.exe", "path"), ("D:\\d", "path")],
        ),
        ("%APPDATA%\\Code and 5% more", "⟦1⟧ and 5% more", [("%APPDATA%\\Code", "identifier")]),
        ("${a.b(1)} or $u->name", "⟦1⟧ or ⟦2⟧", [("${a.b(1)}", "identifier"), ("$u->name", "identifier")]),
        ("{% if a %}yes{% endif %}", "⟦1⟧yes⟦2⟧", [("{% if a %}", "placeholder"), ("{% endif %}", "placeholder")]),
        ("{n, plural, one {# a} other {# b}}!", "⟦1⟧!", [("{n, plural, one {# a} other {# b}}", "placeholder")]),
        ('Send {"k": {"n": 1}} now', "Send ⟦1⟧ now", [('{"k": {"n": 1}}', "placeholder")]),
        ('Send {"k": "the words of it"} now', 'Send {"k": "the words of it"} now', []),
        (
            "std::cout, List<String>, text<br>",
            "⟦1⟧, ⟦2⟧, text⟦3⟧",
            [("std::cout", "identifier"), ("List<String>", "identifier"), ("<br>", "HTML")],
        ),
        (
            "имя_файла, capacité_max; _слово_",
            "⟦1⟧, ⟦2⟧; _слово_",
            [("имя_файла", "identifier"), ("capacité_max", "identifier")],
        ),
        ("len(x), gcd(x, y), log(s)", "⟦1⟧, ⟦2⟧, log(s)", [("len(x)", "identifier"), ("gcd(x, y)", "identifier")]),
        ("a_{ij} and H2SO4", "⟦1⟧ and ⟦2⟧", [("a_{ij}", "formula"), ("H2SO4", "number")]),
        (
            "v2.0.0-rc.1, 10.0.0.0/8, 123e4567-e89b-12d3-a456-426614174000",
            "⟦1⟧, ⟦2⟧, ⟦3⟧",
            [("v2.0.0-rc.1", "number"), ("10.0.0.0/8", "number"), ("123e4567-e89b-12d3-a456-426614174000", "number")],
        ),
        ("2023-01-05T10:00:00Z on 2023-01-05", "⟦1⟧ on 2023-01-05", [("2023-01-05T10:00:00Z", "number")]),
        ("a\r\n```\r\nx\r\n```\r\nb", "a\r\n⟦1⟧\r\nb", [("```\r\nx\r\n```", "code block")]),
    ],
)
def test_a_mark_stands_for_each_piece(text, expected, protected):
    assert protect(text).text == expected
    assert pieces(text) == protected


@pytest.mark.parametrize(
    "text",
    [
        "他说：“你好*世界*”，价格是5元（约10%）……",
        "1、第一点；2、第二点。",
        "    春眠不觉晓，\n    处处闻啼鸟。",
        "السعر ١٠٫٥ كم، شكرًا\u200f! \u202bنص\u202c",
        "שלום *עולם* (עברית)",
        "क्षत्रिय ज्ञान। १२३",
        "Привет, мир! И/или.",
        "東京へ行きます。「はい」",
        "안녕하세요 세계",
    ],
)
def test_prose_without_code_has_no_piece_in_any_script(text):
    assert protect(text).text == text
    assert has_prose(protect(text))


@pytest.mark.parametrize("text", ["`x`", "```\nprose in code\n```", "12 + 3 = 15", "", "|---|", "https://a.b", "👍 …"])
def test_nothing_is_left_to_translate_in_code_and_numbers(text):
    assert not has_prose(protect(text))


def test_numbers_of_marks_begin_where_the_text_before_ended():
    assert protect("`a` or `b`", first=7).text == "⟦7⟧ or ⟦8⟧"


def test_marks_differ_from_what_the_texts_of_a_request_contain():
    assert protect("`a` and ⟦3⟧").text == "⟦B1⟧ and ⟦3⟧"
    assert protect("`a`", avoid="⟦ b4 ⟧ and ⟦１⟧").text == "⟦C1⟧"
    assert protect("`XQ1Z`", style=WORDS).text == "XQB1Z"
    assert protect("`a`", style=WORDS, avoid="ｘｑ１").text == "XQB1Z"


def test_a_mark_in_the_form_of_a_word_stands_apart_from_letters():
    assert protect("<b>bold</b>, 用`x`好", style=WORDS).text == "XQ1Z bold XQ2Z, 用 XQ3Z 好"


def test_blocks_of_a_text_have_their_kinds():
    text = "# Head #\n\nfirst\nline\n\n- item\n\n> said\n> more\n\n"
    text += "| a | b\\|c |\n|---|---|\n| d | |\n\n```\nx\n```\n<p>\nhi\n</p>\n"
    assert [block for block in blocks(text) if block.kind != "syntax"] == [
        Block("heading", "Head"), Block("paragraph", "first\nline"), Block("list item", "item"),
        Block("quotation", "said"), Block("quotation", "more"), Block("table cell", "a"), Block("table cell", "b\\|c"),
        Block("table cell", "d"), Block("code", "```\nx\n```"), Block("HTML", "<p>\nhi\n</p>"),
    ]  # fmt: skip
    assert [block.text for block in blocks(text) if block.is_translated][-1] == "<p>\nhi\n</p>"
    assert blocks("Head\n===\n\ntext")[0] == Block("heading", "Head")


@pytest.mark.parametrize(
    "unit",
    [
        "`",
        "``` ",
        "`a``b",
        "[",
        "[a](",
        "](",
        "$",
        "$a ",
        "$$",
        "<",
        "<a b='",
        "<!--",
        "\\(",
        "\\begin{a}",
        "{{",
        "a.",
        "/a",
        "a_",
        "f((",
        "http://a)",
        "⟦",
        "XQ",
        "> ",
        "| a ",
    ],
)
def test_time_is_linear_in_hostile_texts(unit):
    def seconds(length):
        start = time.thread_time()
        protect((unit * length)[:length])
        return time.thread_time() - start

    # Quadratic time would be 64 times as long. The garbage collector takes a second or two, but not twice.
    assert min(seconds(40_000) for _ in range(2)) < 0.5 + 16 * seconds(5_000)
