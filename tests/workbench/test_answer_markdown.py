"""Markdown of responses on the workbench's pages: emphasis next to Chinese punctuation, formulas, and no live HTML."""

import re
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each_value import each
from steelyard.workbench.views.answer_markdown import LONGEST_RENDERED
from steelyard.workbench.views.answer_markdown import safe_markdown as shown_or_as_written

NOTE = "as it was written"


def safe_markdown(text):
    """Return the HTML of a text that is short enough."""
    return shown_or_as_written(text, NOTE)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**先看要求。**再评分", "<p><strong>先看要求。</strong>再评分</p>"),
        ("注意**“引号”**后", "<p>注意<strong>“引号”</strong>后</p>"),
        ("**日本語。**です", "<p><strong>日本語。</strong>です</p>"),
        ("a **b** c", "<p>a <strong>b</strong> c</p>"),
        ("snake_case_name", "<p>snake_case_name</p>"),
        ("2 * 3 * 4", "<p>2 * 3 * 4</p>"),
        ("a** b**", "<p>a** b**</p>"),
        ("so**(x)**y", "<p>so**(x)**y</p>"),
    ],
)
def test_emphasis(text, html):
    assert str(safe_markdown(text)).strip() == html


def test_a_program_without_a_fence_is_a_block_of_code_and_words_about_one_are_not():
    program = 'def f(x):\n    """מחזירה את *הסכום*.\n\n    >>> f([1])\n    1\n    """\n# גם ריק\n    return sum(x)\n'
    html = str(safe_markdown(program))
    assert html.startswith('<pre class="program"><code>def f(x):\n    ')
    assert "# גם ריק\n    return sum(x)</code></pre>" in html
    assert html.count("<") == 4
    explained = f"{program}\nThis **sums** the list."
    assert "<strong>sums</strong>" in str(safe_markdown(explained))
    assert 'data-codes="U+202E"' in str(safe_markdown("import os\nx = 'a\u202eb'\nprint(x)"))


@each(
    "text",
    [
        "pay 5\u202e00\u202c now",
        "**b\u200bc**\n\n- x\ufeff\n\n`a\u2066b`",
        "```\nif a\u202e == 1\n```",
        "$x\u200b^2$ and $y$",
        "a\u200b" * 30_000,
    ],
)
def test_hidden_characters_carry_their_codes_and_the_text_stays(text):
    html = str(safe_markdown(text))
    mark = r'<span class="hidden-character" role="img" aria-label="([^"]+)" data-codes="\1">(.)</span>'
    marks = re.findall(mark, html)
    assert marks
    assert all(code == f"U+{ord(character):04X}" for code, character in marks)
    # Beyond a thousand marks each further character is a question mark: the page stays small.
    assert len(marks) == min(1000, len(re.findall("[\u200b\ufeff\u202a-\u202e\u2066]", text)))
    assert 'class="math">$x' not in html


def test_a_formula_stays_as_it_was_written():
    assert str(safe_markdown("由 $a_1 * b_2 * c$ 得 **$x<1$。**故")).strip() == (
        '<p>由 <span class="math">$a_1 * b_2 * c$</span> 得 <strong><span class="math">$x&lt;1$</span>。</strong>故</p>'
    )


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("4.", '<ol>\n<li value="4"></li>\n</ol>'),
        ("1986. a", '<ol>\n<li value="1986" class="long-number">a</li>\n</ol>'),
        ("3) 丙\n1) 甲", '<ol>\n<li value="3">丙</li>\n<li value="1">甲</li>\n</ol>'),
        ("1. a\n\nb\n\n2. c", '<ol>\n<li value="1">a</li>\n</ol>\n<p>b</p>\n<ol>\n<li value="2">c</li>\n</ol>'),
        ("![一只<猫>](http://x/猫.png 't')", '<p>![一只&lt;猫&gt;](http://x/猫.png "t")</p>'),
        ("![](http://x/y)", "<p>![](http://x/y)</p>"),
        ("a[^1]\n\n[^1]: Ada1843", "<p>a[^1]</p>\n<p>[^1]: Ada1843</p>"),
        ("[1]: http://x", "<p>[1]: http://x</p>"),
        ("如下```\nx\n``` 见**上**", "<p>如下```<br>\nx</p>\n<pre><small>见**上**</small><code></code></pre>"),
        ("```py\n1 < 2\n```", "<pre><small>py</small><code>1 &lt; 2\n</code></pre>"),
        ("~~~\nx\n~~~", "<pre><code>x\n</code></pre>"),
        ("", ""),
        (" \n", ""),
    ],
)
def test_what_was_answered_is_shown_as_a_whole(text, html):
    """Numbers of lists, images, definitions and first lines of code: what is hidden or altered cannot be judged."""
    assert str(safe_markdown(text)).strip() == html


@given(st.text(alphabet="*_~`$\\<>&/ab。“”（一 \n|-#![]()", max_size=40))
def test_no_text_becomes_a_tag_that_runs(text):
    html = str(safe_markdown(f"<script>{text}</script><img src=x onerror=y>{text}"))
    assert "<script" not in html
    assert "<img" not in html


def repeated(part, length):
    """Return a text of a length that repeats a part."""
    return (part * length)[:length]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["\\[", "\\(", "Step: \\[ ", "a \\( b \\[ c $$$ ", "$a", "$$ x $ ", "\\[$", "``` \\["])
def test_formulas_that_do_not_close_take_time_in_proportion(part):
    def seconds(length):
        times = []
        for number in range(3):
            # Another text each time: HTML is kept by its text.
            text = f"{number}{length} {repeated(part, length)}"
            start = time.thread_time()
            safe_markdown(text)
            times.append(time.thread_time() - start)
        return min(times)

    # Four times the text: 4 in proportion, 16 where each opening is followed to the end of the text.
    assert seconds(LONGEST_RENDERED - 100) < 9 * seconds(LONGEST_RENDERED // 4 - 25)


SHAPES = {
    "cells": "|a", "images": "![](", "brackets": "[", "links": "[a](b", "quotes": "> ", "lists": "- ",
    "stars": "*a **b", "runs": "*_", "strikes": "~~a", "entities": "&#", "escapes": "\\", "code": "`` ` ",
    "lines": "a\n", "definitions": "[a]: b\n", "references": "[a][b]", "autolinks": "<http:", "nested images": "![",
    "headings": "a\n=\n", "numbers": "1. ", "titles": '[a](b "', "comments": "<!--", "fences": "```\n",
}  # fmt: skip


def num_calls(text):
    """Return the number of functions that are called while a text is rendered."""
    count = 0

    def tally(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(tally)
    try:
        safe_markdown(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.slow
@each("part", SHAPES.values())
def test_marks_take_work_in_proportion(part):
    assert num_calls(repeated(part, 8000)) < 2.5 * num_calls(repeated(part, 4000)) + 1000


@pytest.mark.parametrize("columns", [100, 250, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_small_table_does_not_become_a_large_page(columns):
    table = f"{'|a' * columns}\n{'|-' * columns}\n" + "|a\n" * columns
    html = safe_markdown(table * 3)
    assert NOTE in html
    assert len(html) < 2 * len(table * 3)


@pytest.mark.parametrize("use", ["[a]", "![a]", "[b][a]"])
def test_an_address_that_is_linked_often_does_not_become_a_large_page(use):
    text = f"[a]: http://{'x' * 20_000} 'title'\n\n" + use * 3000
    assert len(safe_markdown(text)) < 2 * len(text)
    assert safe_markdown(text[:30] + "\n\n" + "[c](http://d) " * 500).count("<a ") == 500


def test_a_table_of_ordinary_size_is_a_table():
    rows = "".join(f"|{n}|**b**|{n * n}|\n" for n in range(300))
    assert safe_markdown(f"|a|b|c|\n|-|-|-|\n{rows}").count("<td>") == 900


def test_a_text_that_is_too_long_is_as_it_was_written():
    text = f"**<b>** \\( x {'y' * LONGEST_RENDERED}"
    html = safe_markdown(text)
    assert NOTE in html
    assert "**&lt;b&gt;** \\( x yyy" in html
    assert NOTE not in safe_markdown(text[:LONGEST_RENDERED])


def test_formulas_beside_openings_without_an_end():
    assert str(safe_markdown(r"\[ a \( b_1*c_2* \) $$ d")).strip() == (
        r'<p>[ a <span class="math">\( b_1*c_2* \)</span> $$ d</p>'
    )
