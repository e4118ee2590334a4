import pytest

from format_rows import read
from steelyard.core.errors import RecordError


def answer(text, rank, **fields):
    return {"answer": text, "model": f"m{text}", "rank": rank, **fields}


def row(*answers, prompt="\n\nHuman: 问\n\nAssistant: "):
    return {"prompt": prompt, "answers": list(answers), "turns": 1, "num_responses": len(answers), "source": ["s"]}


def test_ranks_are_tiers_and_equal_ranks_one_tier():
    (one,), _ = read("nectar", row(answer("x", 2), answer("y", 1), answer("z", 2)))
    x, y, z = (response.id for response in one.responses)
    assert one.ranking == ((y,), (x, z))
    assert [response.author for response in one.responses] == ["mx", "my", "mz"]
    assert (one.prompt.source, one.judgments, one.ratings) == ("s", (), ())


def test_the_open_turn_of_the_assistant_is_no_turn():
    given = row(answer("x", 1), prompt="\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant: ")
    (one,), _ = read("nectar", given)
    assert [(turn.role, turn.content) for turn in one.prompt.messages] == [
        ("user", "a"), ("assistant", "b"), ("user", "c"),
    ]  # fmt: skip


def test_an_answer_without_a_rank_is_not_ranked():
    (one,), _ = read("nectar", row(answer("x", None), answer("y", 1)))
    assert one.ranking == ((one.responses[1].id,),)


@pytest.mark.parametrize(
    ("item", "found"),
    [
        ({"model": "m", "rank": 1}, "an answer without a text"),
        ({"answer": "x", "model": 3, "rank": 1}, "a model that is not a name"),
        ({"answer": "x", "model": "m", "rank": "first"}, "a rank that is not a number"),
    ],
)
def test_a_broken_answer_is_named(item, found):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1 at answers\[1\]: {found}"):
        read("nectar", row(answer("y", 1), item))
