import pytest

from format_rows import read
from steelyard.core.errors import RecordError

SIDES = ("conversation_a", "conversation_b")


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


def test_what_is_left_out_or_joined_is_counted():
    parts = [
        {"type": "text", "text": "a", "image": None},
        {"type": "text", "text": "b", "cut": True},
        {"type": "image", "image": "…"},
    ]
    both = {
        side: [{"role": "user", "content": parts}, {"role": "assistant", "content": text}]
        for side, text in zip(SIDES, "xy", strict=True)
    }
    (one,), warnings = read("chatbot_arena", ROW | both)
    assert one.prompt.messages[0].content == "a\nb"
    assert warnings == {
        "turns whose parts are joined": 2,
        "parts of turns that are not text, left out": 2,
        "other keys of turns, left out": 4,  # "cut" and the image, in both conversations
    }


@pytest.mark.parametrize(
    ("broken", "problem"),
    [([{"role": "user"}], "turn 1 of 'conversation_b' has no text"), ([3], "'conversation_b' is neither")],
)
def test_what_is_no_conversation_is_named(broken, problem):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1 at conversation_b: {problem}"):
        read("chatbot_arena", ROW | {"conversation_b": broken})


@pytest.mark.parametrize("winner", [None, "", "  "])
def test_a_vote_without_a_winner_is_counted_and_the_others_are_read(winner):
    cases, warnings = read("chatbot_arena", {**ROW, "question_id": "none", "winner": winner}, ROW)
    assert [one.judgments[0].verdict for one in cases] == ["none", "right"]
    assert cases[0].judgments[0].reason == "no winner"
    assert warnings["votes without a winner"] == 1


@pytest.mark.parametrize("winner", ["model_c", 1])
def test_an_unknown_winner_is_named(winner):
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at winner: unknown winner"):
        read("chatbot_arena", {**ROW, "winner": winner})


def test_conversations_that_share_no_turn_are_refused():
    with pytest.raises(RecordError, match=r"^f\.jsonl:1: conversation_a and conversation_b share no turn"):
        read("chatbot_arena", {**ROW, "conversation_b": chatbot_arena_turns("other", "乙")})
    other = {side: chatbot_arena_turns("另一个问", text) for side, text in zip(SIDES, "xy", strict=True)}
    with pytest.raises(RecordError, match=r"^f\.jsonl:2: id 'q1' is already used at f\.jsonl:1"):
        read("chatbot_arena", ROW, ROW | other)
