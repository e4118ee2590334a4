import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.types import Case, Message, Prompt, Rating, Response, Scores
from steelyard.io.terminal_text import plain, width_of
from steelyard.networks.answer_tokens import Piece, ShownAnswer
from steelyard.report.case_analysis import analyze_case
from steelyard.report.case_scores import CaseScores
from steelyard.report.item_page import ItemPage, page_lines, page_record, prompt_lines, response_lines, token_lines
from strategies import case, cases, judgment

PIECES = (
    Piece("Hi", (5, 6), is_special=False, is_prompt=True, is_cut=False),
    Piece("你", (7,), is_special=False, is_prompt=False, is_cut=True),
)


def page(one, **fields):
    return ItemPage(analyze_case(one), ("item: case 1 of f",), "R", **fields)


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
    scored = CaseScores("s.jsonl", Scores(prompt="p", scores={"a": 1.0, "b": 2.0}))
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
    one, other = (CaseScores(f"{x}.jsonl", Scores(prompt="p", scores={"a": x, "b": None})) for x in (1.0, 2.0))
    one_case = case(responses="ab")
    assert "A  id a · score 1.0000" in texts(page(one_case, scored=(one,)))
    assert "B  id b · score none" in texts(page(one_case, scored=(one,)))
    assert "A  id a · 1.0.jsonl 1.0000 · 2.0.jsonl 2.0000" in texts(page(one_case, scored=(one, other)))


def test_the_record_has_everything_by_ids():
    one = case(responses="ab", judgments=["a>b", "b>a", "a?b"])
    scored = CaseScores("s.jsonl", Scores(prompt="p", scores={"a": 1.0, "b": 2.0}))
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


def text_texts(lines):
    return [plain(line) for line in lines]


def test_the_conversation_stands_turn_by_turn_with_the_reference():
    turns = (Message(role="system", content=""), Message(role="user", content="[bold]你好\x07"))
    prompt = Prompt(id="p", messages=turns, reference="世界")
    assert text_texts(prompt_lines(Case(prompt=prompt, responses=()), 40)) == [
        "", "PROMPT", "  system:", "    (empty)", "  user:", "    [bold]你好␇", "", "REFERENCE", "    世界",
    ]  # fmt: skip


def test_an_answer_has_its_id_tier_author_ratings_and_text():
    rating = Rating(
        response="a",
        rater="ann",
        kind="human",
        dimension="help",
        value=4,
        range=(1, 5),
        spans=((0, 2, "minor", "why"),),
    )
    unranged = Rating(response="a", rater="bob", kind="llm", dimension="style", value=0.5)
    responses = (
        Response(id="a", text="one two", author="gpt"),
        Response(id="b", messages=(Message(role="assistant", content="hi"), Message(role="user", content="ho"))),
        Response(id="c", text=""),
    )
    one = Case(prompt=case().prompt, responses=responses, ratings=(rating, unranged), ranking=(("b",), ("a",)))
    assert text_texts(response_lines(analyze_case(one), 70, remarks=[["score 1"], [], []])) == [
        "",
        "RESPONSES",
        "",
        "A  id a · tier 2 · by gpt · score 1",
        "  rated help 4 of 1 to 5 · ann (human) · minor at 0 to 2 (why)",
        "  rated style 0.5 · bob (llm)",
        "    one two",
        "",
        "B  id b · tier 1",
        "  assistant:",
        "    hi",
        "  user:",
        "    ho",
        "",
        "C  id c · not ranked",
        "    (empty)",
    ]


def test_a_case_without_answers_says_so():
    assert text_texts(response_lines(analyze_case(case(responses="")), 40, remarks=[])) == ["", "RESPONSES", "  none"]


def test_remarks_hang_behind_the_label_where_it_is_narrow():
    found = text_texts(response_lines(analyze_case(case(responses="a")), 20, remarks=[["evaluated/scores 1.25"]]))
    assert found[3:] == ["A  id a", "   evaluated/scores", "   1.25", "    answer a"]


START = Piece("<s>", (1,), is_special=True, is_prompt=True, is_cut=False)
END = Piece("</s>", (2,), is_special=True, is_prompt=False, is_cut=False)


def piece(text, *ids, is_prompt=False, is_cut=False):
    return Piece(text, ids or (9,), is_special=False, is_prompt=is_prompt, is_cut=is_cut)


def answer(*pieces, response="a", **fields):
    given = {"limit": 10, "over_length": "right", "is_refused": False, "bos": "<s>", "eos": "</s>", **fields}
    return ShownAnswer(response=response, pieces=pieces, **given)


def token_texts(answers, width=60, **options):
    lines = token_lines(answers, {"a": "A", "b": "B"}, width, **{"with_ids": False, **options})
    return [plain(line) for line in lines]


ASKED = (START, piece("Hi\n", 5, is_prompt=True))


def test_counts_are_of_tokens_and_marks_are_named():
    one = answer(*ASKED, piece("你", 7, 8), END)
    assert (one.num_tokens, one.num_prompt, one.num_cut) == (5, 2, 0)
    assert one.counted() == ["5 tokens: 2 prompt + 3 answer", "limit 10", "begins with BOS <s>", "ends with EOS </s>"]
    assert one.cut() is None


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, ["no BOS (<s>)", "ends with ok, not EOS (</s>)"]),
        ({"bos": None, "eos": None}, ["the tokenizer has no BOS", "ends with ok, not EOS"]),
    ],
)
def test_marks_that_are_missing_are_named_too(fields, told):
    assert answer(piece("ok"), **fields).counted()[2:] == told


def test_a_text_that_spells_a_mark_is_no_mark():
    one = answer(piece("<s>"), piece("</s>"))
    assert not one.begins_with_bos
    assert not one.ends_with_eos


@pytest.mark.parametrize(
    ("refused", "told"),
    [(True, "2 tokens over the limit: NOT SCORED"), (False, "2 tokens over the limit: cut off at the right, not seen")],
)
def test_what_is_over_the_limit_is_told(refused, told):
    one = answer(*ASKED, piece("ok"), piece("xy", 3, 4, is_cut=True), is_refused=refused)
    assert one.cut() == told
    assert one.counted()[-1] == "ends with ok, not EOS (</s>)"
    assert token_texts([one])[-4:] == ["  answer:", "    ok", "  answer, over the limit:", "    xy"]


def test_a_prompt_in_common_stands_once():
    found = token_texts([answer(*ASKED, piece("yes"), END), answer(*ASKED, piece("no"), END, response="b")])
    assert found == [
        "prompt, the same for all answers:",
        "  prompt:",
        "    ⟦<s>⟧│Hi␊",
        "",
        "A",
        "  4 tokens: 2 prompt + 2 answer · limit 10",
        "  begins with BOS <s> · ends with EOS </s>",
        "  answer:",
        "    yes│⟦</s>⟧",
        "",
        "B",
        "  4 tokens: 2 prompt + 2 answer · limit 10",
        "  begins with BOS <s> · ends with EOS </s>",
        "  answer:",
        "    no│⟦</s>⟧",
    ]


def test_prompts_that_differ_stand_with_their_answers():
    other = answer(START, piece("Ho\n", 6, is_prompt=True), piece("no"), response="b")
    found = token_texts([answer(*ASKED, piece("yes")), other])
    assert [line for line in found if line.startswith("    ⟦")] == ["    ⟦<s>⟧│Hi␊", "    ⟦<s>⟧│Ho␊"]


def test_ids_stand_behind_their_piece_and_pieces_that_are_long_are_folded():
    found = token_texts([answer(piece("你", 7, 8), piece("a\x1b", 3), piece("long" * 9, 4))], width=30, with_ids=True)
    assert found[-3:] == ["    你‹7,8›│a␛‹3›", "    " + ("long" * 9)[:25], "    " + ("long" * 9)[25:] + "‹4›"]
