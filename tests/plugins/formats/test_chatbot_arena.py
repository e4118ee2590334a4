import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from strategies import case, judgment


def turns(*texts):
    return [{"role": role, "content": text} for role, text in zip(["user", "assistant"] * 4, texts, strict=False)]


ROW = {
    "question_id": "q1",
    "model_a": "m",
    "model_b": "n",
    "winner": "model_b",
    "judge": "arena_user_7",
    "conversation_a": turns("问", "甲"),
    "conversation_b": turns("问", "乙"),
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
    (one,), noted = read("chatbot_arena", {**ROW, "winner": winner})
    (said,) = one.judgments
    assert (said.left, said.right, said.verdict, said.meta) == ("a", "b", verdict, meta)
    assert (said.judge, said.kind, one.ranking) == ("arena_user_7", "human", None)
    assert (one.prompt.id, one.prompt.language) == ("q1", "zh")
    assert [response.author for response in one.responses] == ["m", "n"]
    assert not noted


def test_from_where_the_conversations_part_both_are_answers():
    row = {**ROW, "conversation_a": turns("a", "b", "c", "d"), "conversation_b": turns("a", "x", "c", "y")}
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
    (one,), noted = read("chatbot_arena", {**ROW, **both})
    assert one.prompt.messages[0].content == "看"
    assert noted["parts of turns that are no text, left out"] == 2


@pytest.mark.parametrize("winner", ["model_c", None, 1])
def test_an_unknown_winner_is_named(winner):
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at winner: unknown winner"):
        read("chatbot_arena", {**ROW, "winner": winner})


def test_conversations_that_share_no_turn_are_refused():
    with pytest.raises(RecordError, match=r"^f\.jsonl:1: conversation_a and conversation_b share no turn"):
        read("chatbot_arena", {**ROW, "conversation_b": turns("other", "乙")})
    with pytest.raises(RecordError, match=r"^f\.jsonl:2: id 'q1' stands at f\.jsonl:1 already"):
        read("chatbot_arena", ROW, ROW)


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
    (row,), lost = write("chatbot_arena", case(responses="ab", judgments=["b>a", "a>b"]))
    assert (row["winner"], lost["judgments beyond one a row"]) == ("model_b", 1)


def test_other_shapes_are_counted():
    for one in (case(responses="abc", judgments=["a>b"]), case(responses="ab", judgments=[judgment("a?b")])):
        assert write("chatbot_arena", one) == ([], {"cases of another shape": 1})
