import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.types import Scores
from steelyard.io.terminal_text import plain, width_of
from steelyard.networks.answer_tokens import Piece, ShownAnswer
from steelyard.report.item_page import ItemPage, page_lines, page_record
from steelyard.report.item_verdicts import Scored
from steelyard.report.opened import open_case
from strategies import case, cases, judgment

PIECES = (
    Piece("Hi", (5, 6), is_special=False, is_prompt=True, is_cut=False),
    Piece("你", (7,), is_special=False, is_prompt=False, is_cut=True),
)


def page(one, **fields):
    return ItemPage(open_case(one), ("item: case 1 of f",), "R", **fields)


def texts(found, width=80, **options):
    return [plain(line) for line in page_lines(found, width, **options)]


def tokens(*names):
    return tuple(
        ShownAnswer(name, PIECES, limit=2, over_length="right", is_refused=False, bos=None, eos=None) for name in names
    )


def headings(lines):
    return [words[0] for words in map(str.split, lines) if words and len(words[0]) > 3 and words[0].isupper()]


def test_the_page_begins_with_what_the_item_is_and_where_it_was_found():
    one = case(
        "p1", "abc", ["a>b", judgment("b>a", kind="llm")], language="zh", category=("数学", "x"), source="s", subset="t"
    )
    assert texts(page(one))[:4] == [
        "p1",
        "zh · 数学 › x · source s · subset t",
        "3 responses · 2 judgments (1 human, 1 llm) · 2 in conflict · 1 tier",
        "item: case 1 of f",
    ]
    assert texts(page(case(responses="a")))[1:3] == ["language unspecified", "1 response · 0 judgments · no ranking"]


def test_sections_stand_in_their_order_and_only_where_there_is_something():
    scored = Scored("s.jsonl", Scores(prompt="p", scores={"a": 1.0, "b": 2.0}))
    one = case(responses="ab", judgments=["a>b", "b>a"])
    full = page(one, scored=(scored,), model="m", tokens=tokens("a", "b"))
    heads = headings(texts(full, with_ids=True))
    assert heads == ["PROMPT", "RESPONSES", "JUDGMENTS", "CYCLE", "TIERS", "SCORES", "TOKENS"]
    assert "⟦special⟧ · │ between tokens · ‹id›" in texts(full, with_ids=True)
    assert "    Hi‹5,6›" in texts(full, with_ids=True)
    heads = [
        line.split("  ")[0] for line in texts(page(case(responses="ab"))) if line[:4].isupper() and line[:4].isalpha()
    ]
    assert heads == ["PROMPT", "RESPONSES", "JUDGMENTS", "TIERS"]


def test_scores_stand_beside_the_answers_with_names_where_there_are_several():
    one, other = (Scored(f"{x}.jsonl", Scores(prompt="p", scores={"a": x, "b": None})) for x in (1.0, 2.0))
    one_case = case(responses="ab")
    assert "A  id a · score 1.0000" in texts(page(one_case, scored=(one,)))
    assert "B  id b · score none" in texts(page(one_case, scored=(one,)))
    assert "A  id a · 1.0.jsonl 1.0000 · 2.0.jsonl 2.0000" in texts(page(one_case, scored=(one, other)))


def test_the_record_has_everything_by_ids():
    one = case(responses="ab", judgments=["a>b", "b>a", "a?b"])
    scored = Scored("s.jsonl", Scores(prompt="p", scores={"a": 1.0, "b": 2.0}))
    record = msgspec.json.decode(
        msgspec.json.encode(page_record(page(one, scored=(scored,), model="m", tokens=tokens("a"))))
    )
    assert record["case"]["prompt"]["id"] == "p"
    assert record["labels"] == {"a": "A", "b": "B"}
    assert record["num_conflicting"] == 2
    assert [own["is_conflicting"] for own in record["judgments"]] == [True, True, False]
    assert [own["cycle"] for own in record["judgments"]] == [1, 1, None]
    assert record["graph"][0] == {
        "first": "a", "second": "b", "outcome": ">", "by_kind": {"human": 1}, "is_conflicting": True,
    }  # fmt: skip
    assert record["cycles"][0]["circle"] == ["a", "b", "a"]
    assert record["tiers"] == [["a", "b"]]
    assert record["scores"][0] | {"scores": {"a": 1.0, "b": 2.0}, "name": "s.jsonl"} == record["scores"][0]
    (own,) = record["tokens"]
    assert (own["response"], own["model"], own["ids"]) == ("a", "m", [5, 6, 7])
    assert (own["num_tokens"], own["num_prompt"], own["num_cut"]) == (3, 2, 1)


@pytest.mark.parametrize("width", [20, 40, 80])
@given(one=cases(max_responses=6), more=st.text(max_size=50))
def test_no_line_is_wider_than_asked_or_acts_on_the_terminal(width, one, more):
    prompt = msgspec.structs.replace(one.prompt, id=more or "p", category=(more,), source=more, reference=more)
    lines = texts(page(msgspec.structs.replace(one, prompt=prompt)), width)
    assert all(width_of(line) <= width for line in lines)
    assert not any(character < " " or character == "\x7f" for line in lines for character in line)
