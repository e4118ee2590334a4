"""Pages in two languages stay in step: the same commands, the same headings, the same links, and each leads to the
other."""

import re

import pytest

from package_source import ROOT

CHINESE = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "README.zh.md", *ROOT.glob("docs/**/*.zh.md")))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^(#+) +(.+)$", flags=re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
INLINE = re.compile(r"`([^`\n]+)`")


def english_of(name):
    return name.replace(".zh.md", ".md")


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text):
    """The language and the lines of every fenced block; what follows two or more spaces explains and may differ."""
    return [
        (language, [re.split(r"(?<=\S)  +", line)[0] for line in body.splitlines()])
        for language, body in FENCE.findall(text)
    ]


def prose(text):
    return FENCE.sub("", text)


def targets(text, own, other):
    """Where the links lead, in any order, for no two languages share one; a Chinese page counts as its English one."""
    found = [target for target in LINK.findall(prose(text)) if target.split("/")[-1] not in (own, other)]
    return sorted(target.split("#")[0].replace(".zh.", ".") for target in found)


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    titles = [title.lower() for _, title in HEADING.findall(prose(text))]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def test_the_front_pages_exist_in_chinese():
    assert {"README.zh.md", "docs/tour.zh.md"} <= set(CHINESE)


@pytest.mark.parametrize("name", CHINESE)
def test_the_commands_are_the_same(name):
    assert blocks(read(name)) == blocks(read(english_of(name)))


@pytest.mark.parametrize("name", CHINESE)
def test_the_headings_have_the_same_levels(name):
    own, other = ([marks for marks, _ in HEADING.findall(prose(read(page)))] for page in (name, english_of(name)))
    assert own == other


@pytest.mark.parametrize("name", CHINESE)
def test_the_links_lead_to_the_same_places(name):
    own, other = (page.split("/")[-1] for page in (name, english_of(name)))
    assert targets(read(name), own, other) == targets(read(english_of(name)), own, other)


@pytest.mark.parametrize("name", CHINESE)
def test_the_names_in_code_are_the_same(name):
    own, other = (sorted(set(INLINE.findall(prose(read(page))))) for page in (name, english_of(name)))
    assert [word.replace(".zh.md", ".md") for word in own] == other


@pytest.mark.parametrize("name", CHINESE)
def test_each_language_links_to_the_other_at_the_top(name):
    own, other = (page.split("/")[-1] for page in (name, english_of(name)))
    assert f"]({other})" in read(name).split("\n## ")[0].splitlines()[2]
    assert f"]({own})" in read(english_of(name)).split("\n## ")[0].splitlines()[2]


@pytest.mark.parametrize("name", sorted({*CHINESE, *map(english_of, CHINESE)}))
def test_every_link_of_ours_has_a_page_and_a_heading(name):
    for target in LINK.findall(prose(read(name))):
        if target.startswith("http"):
            continue
        file, _, anchor = target.partition("#")
        path = (ROOT / name).parent / file if file else ROOT / name
        assert path.exists(), target
        assert not anchor or anchor in anchors(path.read_text(encoding="utf-8")), target


@pytest.mark.parametrize("name", CHINESE)
def test_chinese_text_has_chinese_marks(name):
    """No half-width comma or full stop between Chinese characters: the mark of a machine's translation."""
    plain = INLINE.sub("", LINK.sub("", prose(read(name))))
    assert re.findall(r"[\u4e00-\u9fff][,;:?!.][\u4e00-\u9fff ]", plain) == []


def test_a_changed_command_is_seen_and_a_changed_explanation_is_not():
    first = "```\nsteelyard a b --out c     why\n  core/   what\n```\n"
    assert blocks(first) == blocks("```\nsteelyard a b --out c          别的\n  core/  话\n```\n")
    assert blocks(first) != blocks("```\nsteelyard a b --out d     why\n  core/   what\n```\n")
    assert blocks(first) == [("", ["steelyard a b --out c", "  core/"])]
