import base64
import gzip
import hashlib
import json
import re
import tomllib
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from report_runs import HOSTILE, all_runs
from steelyard.evaluation.measure import measure_texts
from steelyard.evaluation.tables import Sentence, word
from steelyard.report import page as own
from steelyard.report.items import packed_text
from steelyard.report.page import LANGUAGES, page_strings, render
from steelyard.report.sources import read_sources
from steelyard.views.page import page_of, read_data

VOID = {"meta", "link", "img", "input", "br", "hr", "path", "circle"}


class Elements(HTMLParser):
    """Every element with its attributes, and the text of each kind; elements must close in order."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.found, self.texts = [], [], {}

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag, f"{tag} closes something else"

    def handle_data(self, data):
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    sources = read_sources(all_runs(tmp_path_factory.mktemp("runs"), 21, hostile=True))
    return render(page_of(read_data(sources), title=HOSTILE, language="zh", budget=2**20, version="1"))


@pytest.fixture(scope="module")
def elements(html):
    parser = Elements()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


def test_nothing_is_loaded_from_anywhere(elements):
    for tag, attributes in elements.found:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            assert attributes.get(name, "#").startswith("#"), f"{tag} {name}={attributes[name]}"
        assert tag not in ("link", "iframe", "object", "embed", "base", "img")
    style = "".join(elements.texts["style"])
    assert "@import" not in style
    assert not re.search(r"url\((?!data:font/woff2;base64,[A-Za-z0-9+/=]+\))", style)


def test_the_policy_names_exactly_the_scripts_that_are_there(html, elements):
    (policy,) = [own["content"] for tag, own in elements.found if tag == "meta" and own.get("http-equiv")]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    assert len(scripts) > 4
    assert re.findall(r"'sha256-(.*?)'", policy) == hashes
    assert not [name for _, own in elements.found for name in own if name.startswith("on")]


def test_every_headline_number_stands_in_the_page(html):
    for shown in (
        "71.2%",
        "68.4–73.9%",
        "32.2%",
        "25.3–39.9%",
        "1,457",
        "+13.1",
        "+9.0 … +17.2",
        "58.1%",
        "21.3%",
        "70.8%",
        "3,208",
        "51.0%",
        "0.367",
    ):
        assert shown in html, shown


def test_hostile_text_stays_text(html, elements):
    assert "<script>document" not in html
    assert "<img src=x" not in html
    assert "49" not in re.findall(r"<title>(.*?)</title>", html, re.DOTALL)[0]
    assert HOSTILE in "".join(elements.texts["title"])
    assert HOSTILE in "".join(elements.texts["bdi"])


def test_the_packed_items_come_out_as_they_went_in(html):
    def unpacked(name):
        text = re.search(rf'<script type="text/plain" id="{name}">([A-Za-z0-9+/=]*)</script>', html)[1]
        return json.loads(gzip.decompress(base64.b64decode(text)))

    lines, page = unpacked("index"), unpacked("items-0")
    assert len(lines) == 21
    assert [line[0] for line in lines][:2] == [HOSTILE, "p1"]
    whole = {one["id"]: one for one in page}
    assert whole[HOSTILE]["responses"][0]["text"] == HOSTILE
    assert any("تشتت رايلي" in answer["text"] for one in page for answer in one["responses"])


def test_the_languages_of_the_items_have_names_for_the_scripts(html):
    (strings,) = re.findall(r'id="strings">(.*?)</script>', html)
    names = {key: texts for key, texts in json.loads(strings).items() if key.startswith("language ")}
    (index,) = re.findall(r'id="index"[^>]*>(.*?)</script>', html)
    codes = {line[1] for line in json.loads(gzip.decompress(base64.b64decode(index))) if line[1]}
    assert {key.removeprefix("language ") for key in names} == codes
    assert names["language zh"] == {"en": "Chinese", "zh": "中文"}


def test_both_languages_are_there_and_the_page_opens_in_the_one_asked_for(html):
    assert '<html lang="zh" data-ui="zh">' in html
    assert '<span class="t" lang="en">Accuracy</span><span class="t" lang="zh">准确率</span>' in html
    assert "模拟数据" in html
    assert "Simulated data" in html


def test_packing_is_the_same_at_any_time(monkeypatch):
    packed = packed_text({"a": "中文"})
    monkeypatch.setattr("time.time", lambda: 1_000_000_000.0)  # gzip would write it into its header
    assert packed_text({"a": "中文"}) == packed


def test_words_and_sentences_are_escaped():
    strings = page_strings()
    assert strings.translate(f"{word('tier')} 1", "zh") == "层级 1"
    assert strings.translate(word("baseline_mine", "mine"), "zh") == "mine"
    assert strings.text("<b>") == "<bdi>&lt;b&gt;</bdi>"
    said = strings.sentence(
        Sentence("say_no_headline", {"model": "<i>{number}</i>", "number": "3", "reasons": "cut 3"})
    )
    assert "<b><bdi>&lt;i&gt;{number}&lt;/i&gt;</bdi></b>" in said


def test_every_text_is_in_every_language_with_the_same_gaps():
    for key, texts in page_strings().table.items():
        assert set(texts) == set(LANGUAGES), key
        assert all(texts.values()), key
        gaps = [sorted(set(re.findall(r"\{(\w+)", text))) for text in texts.values()]
        assert gaps[0] == gaps[1], key


def test_no_word_is_defined_twice():
    folder = Path(own.__file__).parent / "templates"
    files = [folder / "strings.toml", *(folder / "sections").glob("*.toml")]
    keys = [key for file in files for key in tomllib.loads(file.read_text(encoding="utf-8"))]
    keys += measure_texts()
    assert [key for key, times in Counter(keys).items() if times > 1] == []


def test_every_word_in_use_has_its_text():
    folder = Path(own.__file__).parent / "templates"
    leaderboard = tomllib.loads((folder / "leaderboard" / "strings.toml").read_text(encoding="utf-8"))
    view = tomllib.loads((folder / "view" / "strings.toml").read_text(encoding="utf-8"))
    known = {*page_strings().table, *leaderboard, *view}
    pages = ("page.html", "failures.html")
    scripts = "".join(
        (folder / name).read_text(encoding="utf-8")
        for name in ("page.js", "answer_text.js", "downloads.js", "item_window.js", "items.js", "failures.js", *pages)
    )
    used = set(re.findall(r'\b(?:word|step|heading)\("([a-z0-9_]+)"[),]|"([a-z0-9_]+)" \| word', scripts))
    used = {script or template for script, template in used}
    report = Path(own.__file__).parent
    files = [*report.rglob("*.py"), *(report.parent / "views").rglob("*.py")]
    sources = "".join(path.read_text() for path in files)
    used |= set(re.findall(r"""\bword\(["']([a-z0-9_]+)["']\)""", sources)) | set(
        re.findall(r'"((?:say|note)_[a-z_]+)"', sources)
    )
    assert len(used) > 60
    assert used - known == {"at"}, "`at` is shown as `prompt`"


def test_columns_and_axes_have_their_texts(html):
    """What the figures and tables name is resolved: no mark of a word is left in what a person reads."""
    assert "@@" not in re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    figures = re.search(r'id="figures">(.*?)</script>', html, re.DOTALL)[1]
    assert set(re.findall(r"@@([a-z0-9_]+)\|", figures)) <= set(page_strings().table)


def test_scripts_name_only_what_their_page_has():
    """A page without the table of items has no ``Items``: the script that all pages share may not name it."""
    folder = Path(own.__file__).parent / "templates"
    defined = {
        name: set(re.findall(r"^const (\w+) =", path.read_text(encoding="utf-8"), re.MULTILINE))
        for name, path in ((path.name, path) for path in folder.glob("*.js"))
    }
    others = set().union(*(names for script, names in defined.items() if script != "page.js"))
    shared = re.sub(r"//.*", "", (folder / "page.js").read_text(encoding="utf-8"))
    assert others >= {"Items", "Downloads"}
    assert {name for name in others if re.search(rf"\b{name}\b", shared)} == set()
