from collections import Counter

import pytest

from format_rows import read, write
from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.plugins.formats._languages import language_code, language_name
from steelyard.plugins.formats.site_votes import both_turns, written_turns
from strategies import case, judgment

SIDES = ("conversation_a", "conversation_b")


def row(first, second):
    return Row(Place("f", 3), dict(zip(SIDES, (first, second), strict=True)))


def turns(*contents):
    return [{"role": role, "content": one} for role, one in zip(["user", "assistant"] * 3, contents, strict=False)]


def block(text, **fields):
    return [{"type": "text", "text": text, **fields}]


def test_turns_of_text_have_no_blocks_and_come_back():
    given = row(turns("问", "甲"), turns("问", "乙"))
    found = both_turns(given, SIDES, warnings := Counter())
    assert found.blocks is None
    assert [[turn.content for turn in part] for part in found.parts] == [["问"], ["甲"], ["乙"]]
    assert written_turns(found.parts, SIDES, found.blocks) == given.value
    assert not +warnings


def test_turns_of_one_text_part_come_back_with_what_stands_beside_the_text():
    given = row(*(turns(block("问", image=None), block(text, image=None)) for text in ("甲", "乙")))
    found = both_turns(given, SIDES, warnings := Counter())
    assert found.blocks == {"type": "text", "image": None}
    assert written_turns(found.parts, SIDES, found.blocks) == given.value
    assert not +warnings


def test_what_is_left_out_or_joined_is_counted():
    two = [*block("a"), *block("b", cut=True), {"type": "image"}]
    found = both_turns(row(*(turns(two, block(text)) for text in "xy")), SIDES, warnings := Counter())
    assert found.parts.prompt[0].content == "a\nb"
    assert +warnings == {
        "turns whose parts are joined": 2,
        "parts of turns that are not text, left out": 2,
        "other keys of turns, left out": 4,  # "cut" and the image's kind, in both conversations
    }


@pytest.mark.parametrize("broken", ["text", [], [{"role": "user"}], [3]])
def test_what_is_no_conversation_is_named(broken):
    with pytest.raises(RecordError, match=r"^f:3 at conversation_b: 'conversation_b' is neither"):
        both_turns(row(turns("q", "a"), broken if broken != "text" else 7), SIDES, Counter())


def test_languages_by_name_and_code():
    assert [language_code(name) for name in ("Chinese", "he", "unknown", None)] == ["zh", "he", None, None]
    assert (language_name("zh"), language_name(None)) == ("Chinese", None)


def chatbot_arena_turns(*texts):
    return [{"role": role, "content": text} for role, text in zip(["user", "assistant"] * 4, texts, strict=False)]


ROW = {
    "question_id": "q1",
    "model_a": "m",
    "model_b": "n",
    "winner": "model_b",
    "judge": "arena_user_7",
    "conversation_a": chatbot_arena_turns("问", "甲"),
    "conversation_b": chatbot_arena_turns("问", "乙"),
    "language": "Chinese",
}


@pytest.mark.parametrize(
    ("winner", "verdict", "meta"),
    [
        ("model_a", "left", None),
        ("model_b", "right", None),
        ("tie", "tie", None),
        ("tie (bothbad)", "tie", {"winner": "tie (bothbad)"}),
        ("both_bad", "tie", {"winner": "both_bad"}),
    ],
)
def test_a_vote_is_a_judgment_of_its_judge(winner, verdict, meta):
    (one,), warnings = read("chatbot_arena", {**ROW, "winner": winner})
    (said,) = one.judgments
    assert (said.left, said.right) == tuple(response.id for response in one.responses)
    assert (said.verdict, said.meta) == (verdict, meta)
    assert (said.judge, said.kind, one.ranking) == ("arena_user_7", "human", None)
    assert (one.prompt.id, one.prompt.language) == ("q1", "zh")
    assert [response.author for response in one.responses] == ["m", "n"]
    assert not warnings


def test_votes_of_mt_bench_from_csv_are_cut_at_their_turn_and_a_model_is_no_person():
    sides = {key: chatbot_arena_turns("q", text, "more", "x") for key, text in zip(SIDES, "ab", strict=True)}
    rows = [{**ROW, **sides, "winner": "tie (inconsistent)", "judge": "gpt4_pair", "turn": "1"}]
    (one,), _ = read("chatbot_arena", *rows)
    assert [response.text for response in one.responses] == ["a", "b"]
    (vote,) = one.judgments
    assert (vote.verdict, vote.judge, vote.kind) == ("tie", "gpt4_pair", "llm")
    (row,), dropped = write("chatbot_arena", one)
    assert (row["judge"], row["winner"]) == ("gpt4_pair", "tie (inconsistent)")
    assert not dropped.keys() & {"judges", "judgment details", "ties"}


def test_a_name_of_no_language_is_counted_and_an_unknown_one_is_not():
    (named, lost, unknown), warnings = read(
        "chatbot_arena",
        *({**ROW, "question_id": name, "language": name} for name in ("Traditional Chinese", "Klingon", "unknown")),
    )
    assert [one.prompt.language for one in (named, lost, unknown)] == ["zh-Hant", None, None]
    assert warnings == {"names of no known language": 1}


def test_from_where_the_conversations_part_both_are_answers():
    row = {
        **ROW,
        "conversation_a": chatbot_arena_turns("a", "b", "c", "d"),
        "conversation_b": chatbot_arena_turns("a", "x", "c", "y"),
    }
    (one,), _ = read("chatbot_arena", row)
    assert [turn.content for turn in one.prompt.messages] == ["a"]
    assert [[turn.content for turn in response.messages] for response in one.responses] == [
        ["b", "c", "d"], ["x", "c", "y"],
    ]  # fmt: skip


def test_parts_of_a_turn_are_its_text_and_images_are_counted():
    parts = [{"type": "text", "text": "看"}, {"type": "image", "image": "…"}]
    both = {
        side: [{"role": "user", "content": parts}, {"role": "assistant", "content": [{"type": "text", "text": text}]}]
        for side, text in (("conversation_a", "x"), ("conversation_b", "y"))
    }
    (one,), warnings = read("chatbot_arena", {**ROW, **both})
    assert one.prompt.messages[0].content == "看"
    assert warnings["parts of turns that are not text, left out"] == 2


@pytest.mark.parametrize("winner", ["model_c", None, 1])
def test_an_unknown_winner_is_named(winner):
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at winner: unknown winner"):
        read("chatbot_arena", {**ROW, "winner": winner})


def test_conversations_that_share_no_turn_are_refused():
    with pytest.raises(RecordError, match=r"^f\.jsonl:1: conversation_a and conversation_b share no turn"):
        read("chatbot_arena", {**ROW, "conversation_b": chatbot_arena_turns("other", "乙")})
    other = {side: chatbot_arena_turns("另一个问", text) for side, text in zip(SIDES, "xy", strict=True)}
    with pytest.raises(RecordError, match=r"^f\.jsonl:2: id 'q1' is already used at f\.jsonl:1"):
        read("chatbot_arena", ROW, ROW | other)


def test_a_language_that_was_changed_is_written_as_it_is_now():
    (one,), _ = read("chatbot_arena", {**ROW, "language": "unknown"})
    assert one.prompt.language is None
    changed = type(one)(
        prompt=type(one.prompt)(id="q1", messages=one.prompt.messages, language="he"),
        responses=one.responses,
        judgments=one.judgments,
        meta=one.meta,
    )
    assert write("chatbot_arena", changed)[0][0]["language"] == "Hebrew"


def test_a_verdict_the_other_way_round_is_the_same_vote():
    (row,), dropped = write("chatbot_arena", case(responses="ab", judgments=["b>a", "a>b"]))
    assert (row["winner"], dropped["judgments beyond one per row"]) == ("model_b", 1)


def test_other_shapes_are_counted():
    for one in (case(responses="abc", judgments=["a>b"]), case(responses="ab", judgments=[judgment("a?b")])):
        assert write("chatbot_arena", one) == ([], {"cases of another shape": 1})
