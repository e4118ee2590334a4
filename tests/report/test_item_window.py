"""The window of an item and the links to items, in a browser."""

import pytest

from browser import CHROMIUM, opened
from evaluation_summaries import scored_item
from steelyard.report.items import JoinedItems, pack
from steelyard.report.page import Page, render
from strategies import case

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]
RANKING = (("a",), ("b",))
CASES = [
    case("p", "ab", ["a>b"], category=("math",), ranking=RANKING),
    case("q", "ab", ["a>b"], category=("code",), ranking=RANKING),
    case("r", "ab", ["a>b"], category=("code",), ranking=RANKING),
]
SCORES = {"p": {"a": 1.0, "b": 0.0}, "q": {"a": -1.0, "b": 3.0}, "r": {"a": 0.0, "b": None}}
OTHER = {"p": {"a": 1234.5678, "b": 12.345}, "q": {"a": 20.0, "b": 10.0}, "r": {"a": 10.0, "b": 11.0}}


def evaluation(scores):
    return [
        scored_item(
            name,
            category=next(one for one in CASES if one.prompt.id == name).prompt.category[0],
            num_pairs=1,
            num_correct=int((own["b"] is not None) and own["a"] > own["b"]),
            scores=own,
            ranking=RANKING,
        )
        for name, own in scores.items()
    ]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Open the page at a fragment of its address."""
    folder = tmp_path_factory.mktemp("window")
    packed = pack(JoinedItems({"cases": CASES}, [evaluation(SCORES), evaluation(OTHER)]), budget=2**24)
    html = render(Page("title", "en", ("first", "second"), False, (), (), (), packed, (), "1"))
    (folder / "page.html").write_text(f"<!doctype html>{html}", encoding="utf-8")

    def at(fragment):
        shown = opened(f"file://{folder}/page.html#{fragment}", folder / "profile")
        assert shown.complaints == []
        return shown.document

    return at


def test_bars_of_all_prompts_share_the_scale_of_the_model(page):
    """The first model scores from -1 to 3: on p its scores 1 and 0 are at one half and one quarter."""
    better, worse = page("item=p").all("article")
    assert [bar.attributes["style"][:18] for bar in better.all("i")] == ["inline-size:50.0%;", "inline-size:100.0%"]
    assert worse.all("i")[0].attributes["style"].startswith("inline-size:25.0%")
    assert [value.text for value in better.all("span", "value")] == ["1.00", "1235"]
    assert "1234.5678" in better.all("span", "score")[1].attributes["title"]


def test_an_answer_that_the_model_puts_first_by_mistake_is_marked(page):
    better, worse = page("item=q").all("article")
    assert [chip.text for chip in better.all("span", "chip")] == ["chosen"]
    assert [chip.text for chip in worse.all("span", "chip")] == ["rejected", "highest score"]
    assert "misplaced" in worse.classes
    assert worse.attributes["aria-label"] == "Answer B, rejected"


def test_a_link_leads_to_the_same_rows_of_the_table(page):
    def rows(fragment):
        return [
            row.all("bdi", "id")[0].text for row in page(fragment).all("div", id="browser")[0].all("tbody")[0].all("tr")
        ]

    assert sorted(rows("items")) == ["p", "q", "r"]
    assert rows("items&category=math") == ["p"]
    assert rows("items&outcome=right&model=second&sort=at&down=0") == ["p", "q"]
    assert rows("items&sort=at&down=1") == ["r", "q", "p"]
    assert sorted(rows("items&outcome=constructor&sort=toString&group=%7B&model=nobody")) == ["p", "q", "r"]
