"""Markdown of responses on the workbench's pages: emphasis next to Chinese punctuation, formulas, and no live HTML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.workbench.views.answer_markdown import safe_markdown


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


def test_a_formula_stays_as_it_was_written():
    assert str(safe_markdown("由 $a_1 * b_2 * c$ 得 **$x<1$。**故")).strip() == (
        '<p>由 <span class="math">$a_1 * b_2 * c$</span> 得 <strong><span class="math">$x&lt;1$</span>。</strong>故</p>'
    )


@given(st.text(alphabet="*_~`$\\<>&/ab。“”（一 \n|-#![]()", max_size=40))
def test_no_text_becomes_a_tag_that_runs(text):
    html = str(safe_markdown(f"<script>{text}</script><img src=x onerror=y>{text}"))
    assert "<script" not in html
    assert "<img" not in html
