import pytest

from steelyard.io.terminal_text import plain
from steelyard.networks.answer_tokens import Piece, ShownAnswer
from steelyard.report.token_view import token_lines

START = Piece("<s>", (1,), is_special=True, is_prompt=True, is_cut=False)
END = Piece("</s>", (2,), is_special=True, is_prompt=False, is_cut=False)


def piece(text, *ids, is_prompt=False, is_cut=False):
    return Piece(text, ids or (9,), is_special=False, is_prompt=is_prompt, is_cut=is_cut)


def answer(*pieces, response="a", **fields):
    given = {"limit": 10, "over_length": "right", "is_refused": False, "bos": "<s>", "eos": "</s>", **fields}
    return ShownAnswer(response=response, pieces=pieces, **given)


def texts(answers, width=60, **options):
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
    assert texts([one])[-4:] == ["  answer:", "    ok", "  answer, over the limit:", "    xy"]


def test_a_prompt_in_common_stands_once():
    found = texts([answer(*ASKED, piece("yes"), END), answer(*ASKED, piece("no"), END, response="b")])
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
    found = texts([answer(*ASKED, piece("yes")), other])
    assert [line for line in found if line.startswith("    ⟦")] == ["    ⟦<s>⟧│Hi␊", "    ⟦<s>⟧│Ho␊"]


def test_ids_stand_behind_their_piece_and_pieces_that_are_long_are_folded():
    found = texts([answer(piece("你", 7, 8), piece("a\x1b", 3), piece("long" * 9, 4))], width=30, with_ids=True)
    assert found[-3:] == ["    你‹7,8›│a␛‹3›", "    " + ("long" * 9)[:25], "    " + ("long" * 9)[25:] + "‹4›"]
