"""Answers and prompts in a browser: rendered, and nothing in them runs. And the libraries that a page carries."""

import re
from importlib.resources import files

import pytest

from browser import CHROMIUM, opened
from steelyard.core.text import HIDDEN_CHARACTERS
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.evaluation.tables import Panel, Sentence, ShownItem
from steelyard.report.items import JoinedItems, pack
from steelyard.report.page import Page, Section, render
from steelyard.report.text_libraries import TextNeeds, library_scripts, library_styles

HOSTILE = """<script>document.title='owned'</script><img src=x onerror="document.title='owned'"><svg onload=alert(1)>
[click](javascript:document.title='owned') [page](https://elsewhere.example/a) ![pixel](https://tracker.example/p.png)
hidden \u202ereversed\u202c a\u200b\u200dz and \U000e0041 and a bell \u0007

$\\href{javascript:alert(1)}{x}$

```html" onmouseover="document.title='owned'"
<script>document.title='owned'</script>
```

```js
const text = "</script><script>document.title='owned'</script>";
```"""
MARKDOWN = """# Title

Some **bold** and *slanted* `x_1 = 2`.
A second line.

3. third
4. fourth
   - inside

| name | n |
|:--|--:|
| a | 1 |

> quoted

```python
def f(x):
    return x  # twice
```"""
FORMULAS = r"""It costs $5 and not $10, or US$3. Then $a^2 + b^2$ and \(c_1\), and 5 is $5$.

$$
\sum_{i=1}^n i
$$

\[ \frac{1}{2} \]

Broken: $\frac{1$. In code: `$x$`."""
CHINESE = "**“关键”**在于**求导（先）**之后：\n\n- 价格为$5，也就是35元，或6$\n- 得 $x=2$"
ARABIC = "# العنوان\n\n- بند **أول**\n- بند ثان\n\n| المدينة |\n|---|\n| القاهرة |\n\n```python\nprint(1)\n```"
ARABIC += "\n\nA) أكبر، لأن\n\nVisual Studio Code الأفضل في /etc/hosts\n\nOnly English here."
ANSWERS = {"hostile": HOSTILE, "markdown": MARKDOWN, "formulas": FORMULAS, "chinese": CHINESE, "arabic": ARABIC}
BROWSER = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


def page_html(*cases):
    packed = pack(JoinedItems({"cases": cases}, []), budget=2**24)
    return "<!doctype html>" + render(Page("title", "en", (), False, (), (), (), packed, (), "1"))


def answered(answers, prompt="**Which** one?"):
    return Case(
        prompt=Prompt(id="item", messages=(Message(role="user", content=prompt),)),
        responses=tuple(Response(id=name, text=text) for name, text in answers.items()),
    )


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The elements of each answer, as Chromium made them."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "page.html").write_text(page_html(answered(ANSWERS)), encoding="utf-8")
    page = opened(f"file://{folder}/page.html#item=item", folder / "profile")
    assert page.complaints == []
    assert "<title>title</title>" in page.html
    cards = page.document.all("article")
    assert len(cards) == len(ANSWERS)
    return {card.attributes["data-response"]: card.all("div", "text")[0] for card in cards}


@BROWSER
def test_nothing_of_a_hostile_answer_becomes_an_element_that_runs_or_loads(answers):
    hostile = answers["hostile"]
    tags = {element.tag for element in hostile.all()}
    assert tags <= {"p", "br", "span", "div", "pre", "code"}
    attributes = {name for element in hostile.all() for name in element.attributes}
    assert attributes <= {"class", "dir", "title", "tabindex", "role", "aria-label", "aria-hidden"}
    assert "<script>document.title='owned'</script><img src=x onerror=" in hostile.text
    assert "[click](javascript:document.title='owned')" in hostile.text
    assert r"$\href{javascript:alert(1)}{x}$" in hostile.text
    assert [pre.text for pre in hostile.all("pre")][1].startswith('const text = "</script><script>')


@BROWSER
def test_links_and_pictures_show_where_they_lead_and_cannot_be_followed(answers):
    links = answers["hostile"].all("span", "link")
    assert [link.attributes["title"] for link in links] == [
        "https://elsewhere.example/a",
        "https://tracker.example/p.png",
    ]
    assert [link.text for link in links] == ["pagehttps://elsewhere.example/a", "🖼 pixelhttps://tracker.example/p.png"]


@BROWSER
def test_characters_that_hide_or_reorder_text_are_shown_by_their_codes(answers):
    shown = [mark.text for mark in answers["hostile"].all("span", "hidden-character")]
    assert shown == ["U+202E", "U+202C", "U+200B U+200D", "U+E0041", "U+0007"]
    assert not re.search("[\u200b\u200d\u202a-\u202e\u0007\U000e0041]", answers["hostile"].text)


def test_the_page_knows_the_hidden_characters_of_texts():
    script = (files("steelyard.report") / "templates/answer_text.js").read_text(encoding="utf-8")
    (pattern,) = re.findall(r"const HIDDEN = /(.*)/gu;", script)
    in_python = re.sub(r"\\u\{(\w+)\}", lambda match: rf"\U{match[1]:0>8}", pattern)
    assert in_python == re.sub(r"\?P<\w+>", "", HIDDEN_CHARACTERS.pattern)


@BROWSER
def test_markdown_has_its_structure(answers):
    text = answers["markdown"]
    assert text.all("h4")[0].text == "Title"
    assert [one.text for one in text.all("strong")] == ["bold"]
    assert [one.text for one in text.all("em")] == ["slanted"]
    assert text.all("ol")[0].attributes["start"] == "3"
    assert [one.text for one in text.all("ul")[0].all("li")] == ["inside"]
    assert [one.text for one in text.all("th") + text.all("td")] == ["name", "n", "a", "1"]
    assert text.all("td")[1].attributes["style"] == "text-align: right;"
    assert text.all("blockquote")[0].text == "quoted"
    assert text.all("pre")[0].text == "def f(x):\n    return x  # twice"
    assert [one.text for one in text.all("span", "hljs-keyword")] == ["def", "return"]
    assert [one.text for one in text.all("span", "hljs-comment")] == ["# twice"]
    assert len(text.all("p")[0].all("br")) == 1, "a line of the writer is a line of the page"


@BROWSER
def test_formulas_are_set_and_prices_are_not(answers):
    text = answers["formulas"]
    sources = [one.text for one in text.all("annotation")]
    assert sources == ["a^2 + b^2", "c_1", "5", r"\sum_{i=1}^n i", r"\frac{1}{2}"]
    assert text.text.startswith("It costs $5 and not $10, or US$3. Then ")
    assert [one.text for one in text.all("code")] == [r"$\frac{1$", "$x$"]
    assert len(text.all("div", "block")) == 2


@BROWSER
def test_emphasis_stands_beside_chinese_punctuation(answers):
    text = answers["chinese"]
    assert [one.text for one in text.all("strong")] == ["“关键”", "求导（先）"]
    assert text.all("li")[0].text == "价格为$5，也就是35元，或6$"
    assert [one.text for one in text.all("annotation")] == ["x=2"]


@BROWSER
def test_each_block_has_the_direction_of_its_text_and_code_runs_from_the_left(answers):
    text = answers["arabic"]
    assert text.all("h4")[0].attributes["dir"] == "rtl"
    # The letter of an option and a name in Latin letters do not turn a paragraph; an English one keeps its direction.
    assert [one.attributes["dir"] for one in text.all("p")[-3:]] == ["rtl", "rtl", "ltr"]
    assert [one.text for one in text.all("bdi")] == ["/etc/hosts"]
    assert [text.all(tag)[0].attributes["dir"] for tag in ("ul", "table", "pre")] == ["rtl", "rtl", "ltr"]


def test_a_page_carries_a_library_only_where_a_text_needs_it():
    assert TextNeeds().of(["Plain words, 5 - 3 = 2, for $5 or $10.", "第一行。\n第二行。"]) == TextNeeds()
    assert TextNeeds().of(["- a list"]) == TextNeeds(markdown=True)
    assert TextNeeds().of(["```\nno language\n```"]) == TextNeeds(markdown=True)
    assert TextNeeds().of(["```python\nx\n```"]) == TextNeeds(markdown=True, code=True)
    assert TextNeeds().of(["so $x = 1$."]) == TextNeeds(markdown=True, formulas=True)
    assert TextNeeds().of([r"\(\mathfrak g\)"]).rare_fonts == {"Fraktur"}
    sizes = [
        len(page_html(answered({"a": text, "b": "no"}, prompt="Which?")))
        for text in ("yes", "**yes**", "**yes**\n```c\nx\n```", "$x$")
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < 320_000
    assert sizes[3] > sizes[1] + 400_000


def test_the_style_of_formulas_carries_the_fonts_that_they_need():
    assert library_styles(TextNeeds(markdown=True, code=True)) == ""
    usual, rare = (library_styles(TextNeeds(formulas=True, rare_fonts=names)) for names in ((), frozenset({"Fraktur"})))
    faces = [re.findall(r"@font-face{[^}]*font-family:KaTeX_(\w+)", style) for style in (usual, rare)]
    assert faces[0].count("Main") == 4
    assert sorted(set(faces[1]) - set(faces[0])) == ["Fraktur"]
    assert set(re.findall(r"url\((.{22})", rare)) == {"data:font/woff2;base64"}


def test_the_libraries_cannot_end_their_script_element():
    scripts = library_scripts(TextNeeds(markdown=True, code=True, formulas=True), has_figures=True)
    assert len(scripts) == 6
    assert not [one for one in scripts if re.search(r"</script", one, re.IGNORECASE)]


@BROWSER
def test_examples_of_a_section_are_shown_as_answers_are(tmp_path):
    answers = (("hostile", HOSTILE), ("chinese", CHINESE))
    example = ShownItem("item", None, Sentence("items_about"), "Why is $x^2$ **even**?", answers)
    section = Section("judges", (), (Panel("examples", None, examples=(example,)),))
    packed = pack(JoinedItems({}, []), budget=2**20)
    html = "<!doctype html>" + render(Page("title", "en", (), False, (), (), (section,), packed, (), "1"))
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    page = opened(f"file://{tmp_path}/page.html", tmp_path / "profile")
    assert page.complaints == []
    assert "<title>title</title>" in page.html
    (shown,) = page.document.all("article", "example")
    assert [bold.text for bold in shown.all("strong")][:3] == ["even", "“关键”", "求导（先）"]
    assert {"script", "img", "a"} & {
        element.tag for text in shown.all("div", "text") for element in text.all()
    } == set()
    assert "turn" in shown.all("div", "text")[0].attributes["class"]
