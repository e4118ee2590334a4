import pytest

from format_rows import read
from steelyard.core.errors import RecordError


def message(role, content, parent, **fields):
    return {"role": role, "content": content, "parentId": parent, "childrenIds": [], **fields}


def feedback(rating, answers, *, voted="a1", user="u1", question="问", **parts):
    """A vote on one of the answers, ``{id: text}``, to a question."""
    tree = {"q": message("user", question, None)}
    tree |= {name: message("assistant", text, "q", model=f"model of {name}") for name, text in answers.items()}
    tree |= parts.pop("tree", {})
    return {
        "user_id": user,
        "type": "rating",
        "data": {"rating": rating, **parts.pop("data", {})},
        "meta": {"message_id": voted, "chat_id": "c"},
        "snapshot": {"chat": {"chat": {"history": {"messages": tree}, **parts}}},
    }


def verdicts(case):
    texts = {response.id: response.text for response in case.responses}
    return [(texts[each.left], each.verdict, texts[each.right], each.judge) for each in case.judgments]


def test_a_vote_up_is_a_win_over_each_other_answer_and_a_vote_down_a_loss():
    up = feedback(1, {"a1": "甲", "a2": "乙", "a3": "丙"})
    down = feedback("-1", {"a1": "甲", "a2": "乙"}, voted="a2", user="u2")
    (first, second), warnings = read("open_webui", up, down)
    assert verdicts(first) == [("甲", "left", "乙", "u1"), ("甲", "left", "丙", "u1")]
    assert verdicts(second) == [("乙", "right", "甲", "u2")]
    assert [response.author for response in first.responses] == ["model of a1", "model of a2", "model of a3"]
    assert first.prompt.id == second.prompt.id  # so that a conversion joins the votes on one prompt
    assert not warnings


def test_a_vote_on_a_single_answer_is_a_rating():
    (case,), _ = read("open_webui", feedback(-1, {"a1": "甲"}))
    assert not case.judgments
    (rating,) = case.ratings
    assert (rating.value, rating.range, rating.rater, rating.kind) == (-1, (-1, 1), "u1", "human")


def test_the_prompt_is_the_branch_above_the_answer_with_the_system_prompt():
    tree = {
        "q": message("user", "Hello", None),
        "h": message("assistant", "Hi", "q"),
        "r": message("user", "Why?", "h"),
        "other": message("user", "a question on another branch", "h"),
        "a1": message("assistant", "So.", "r", arena=True, model="arena-model", selectedModelId="m1"),
    }
    row = feedback(1, {}, tree=tree, params={"system": "Be brief."}, data={"comment": "short"})
    (case,), warnings = read("open_webui", row)
    turns = [(turn.role, turn.content) for turn in case.prompt.messages]
    assert turns == [("system", "Be brief."), ("user", "Hello"), ("assistant", "Hi"), ("user", "Why?")]
    assert case.responses[0].author == "m1"  # the arena names the model after the vote
    assert warnings == {"other messages of the chat, left out": 1, "other keys of turns, left out": 1}


def test_an_answer_that_failed_is_not_beaten_and_a_cleared_vote_is_counted():
    (failed, cleared), warnings = read(
        "open_webui", feedback(1, {"a1": "甲", "a2": " \u200b"}), feedback(None, {"a1": "甲", "a2": "乙"})
    )
    assert not failed.judgments
    assert [rating.value for rating in failed.ratings] == [1]
    assert not cleared.judgments
    assert not cleared.ratings
    assert warnings["blank answers beside the one with a vote, left out"] == 1
    assert warnings["feedback without a vote"] == 1


@pytest.mark.parametrize("rating", [True, 0, "up", 5, [1]])
def test_other_numbers_are_no_votes(rating):
    (case,), warnings = read("open_webui", feedback(rating, {"a1": "甲", "a2": "乙"}))
    assert not case.judgments
    assert not case.ratings
    assert warnings["feedback without a vote"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"snapshot": None}, "no messages of its chat"),
        ({"meta": {"message_id": "lost"}}, "no message 'lost'"),
        ({"meta": {"message_id": "q"}}, "a message without a question"),
        ({"data": None}, "no 'data'"),
    ],
)
def test_feedback_without_its_chat_is_refused_by_line(change, message):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1.*{message}"):
        read("open_webui", feedback(1, {"a1": "甲", "a2": "乙"}) | change)


def test_a_message_above_itself_is_refused():
    tree = {"q": message("user", "x", "a1")}
    with pytest.raises(RecordError, match="above itself"):
        read("open_webui", feedback(1, {"a1": "甲"}, tree=tree))
