"""OpenAssistant's trees: prompts with their replies as cases, what is left out, and the way back, depth first."""

import pytest

from format_rows import read
from steelyard.core.errors import RecordError

MESSAGES, TREES = "oasst_messages", "oasst_trees"
ROLES = ("prompter", "assistant")


def message(name, parent=None, *, tree="a", **fields):
    """A message whose depth is the length of its id: a, ab, abc take turns."""
    role = ROLES[(len(name) - 1) % 2]
    return {"message_id": name, "parent_id": parent, "text": name, "role": role, "message_tree_id": tree, **fields}


def in_tree(*names, **changes):
    """The rows of ids, each below the id without its last letter."""
    return [message(name, name[:-1] or None, tree=name[0], **changes.get(name, {})) for name in names]


def test_every_prompt_of_a_tree_is_a_case_with_its_dialogue_and_its_replies():
    rows = in_tree("a", "ab", "abc", "abcd", "ac", ab={"rank": 1, "lang": "en"}, ac={"rank": 0, "model_name": "m"})
    (first, second), warnings = read(MESSAGES, *rows)
    assert [response.id for response in first.responses] == ["ab", "ac"]
    assert first.ranking == (("ac",), ("ab",))
    assert [response.author for response in first.responses] == [None, "m"]
    assert first.responses[0].meta == {"lang": "en"}
    assert [(turn.role, turn.content) for turn in second.prompt.messages] == [
        ("user", "a"), ("assistant", "ab"), ("user", "abc"),
    ]  # fmt: skip
    assert (second.prompt.id, [response.id for response in second.responses], second.ranking) == ("abc", ["abcd"], None)
    assert not warnings


def test_equal_ranks_are_a_tie_and_a_reply_without_a_rank_is_in_no_tier():
    rows = in_tree("a", "ab", "ac", "ad", "ae", ab={"rank": 2}, ac={"rank": 0}, ad={"rank": 2}, ae={"rank": None})
    (case,), _ = read(MESSAGES, *rows)
    assert case.ranking == (("ac",), ("ab", "ad"))
    assert len(case.responses) == 4


def test_a_prompt_without_a_reply_is_a_prompt():
    (case,), warnings = read(TREES, {"message_tree_id": "a", "prompt": message("a", lang="sw")})
    assert (case.responses, case.ranking, case.prompt.language) == ((), None, "sw")
    assert warnings == {"prompts without a reply": 1}


def test_what_the_reviewers_left_out_is_left_out_with_all_below_it_and_counted():
    whole = {"review_result": True}
    rows = in_tree(
        "a", "ab", "abc", "abcd", "ac", "ad", "ae", "af",
        a=whole, ab={"deleted": True}, ac={"review_result": False}, ad={"review_result": None},
        ae={"review_count": 1}, af=whole,
    )  # fmt: skip
    (case,), warnings = read(MESSAGES, *rows)
    assert [response.id for response in case.responses] == ["af"]
    assert warnings == {
        "messages left out: deleted": 1,
        "messages left out: rejected in review": 1,
        "messages left out: not reviewed": 2,
        "messages left out: below one that is left out": 2,
    }
    assert len(case.responses) + 1 + sum(warnings.values()) == len(rows)


def test_a_file_without_results_of_reviews_says_nothing_of_them():
    (case,), warnings = read(MESSAGES, *in_tree("a", "ab", a={"review_count": 3}, ab={"review_count": 0}))
    assert len(case.responses) == 1
    assert not warnings


def test_messages_without_their_parent_are_counted_with_those_below():
    rows = [*in_tree("a", "ab"), message("xyz", "xy"), message("xyzu", "xyz")]
    (case,), warnings = read(MESSAGES, *rows)
    assert [response.id for response in case.responses] == ["ab"]
    assert warnings == {"messages left out: their parent is not in the file": 2}


def test_rows_without_the_id_of_their_tree_begin_a_tree_where_they_have_no_parent():
    rows = [{key: value for key, value in row.items() if key != "message_tree_id"} for row in in_tree("a", "ab", "c")]
    cases, _ = read(MESSAGES, *rows)
    assert [case.prompt.id for case in cases] == ["a", "c"]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([*in_tree("a", "ab"), message("ab", "a")], r"^f.jsonl:3: message_id 'ab' is already used at f.jsonl:2"),
        ([message("a"), message("b")], r"^f.jsonl:2: a second message without a parent .* first is at f.jsonl:1"),
        ([message("a"), message("b", "bc"), message("bc", "b")], r"^f.jsonl:2: message 'b' is its own ancestor"),
        ([message("a", "a")], r"^f.jsonl:1: message 'a' is its own ancestor"),
        ([message("a"), message("b", "a")], r"^f.jsonl:2 at role: a message of the prompter where one of the other"),
        ([message("a") | {"role": "assistant"}], r"^f.jsonl:1 at role: a message of the assistant where"),
        ([message("a") | {"role": "system"}], r"^f.jsonl:1 at role: unknown role 'system'\n.*prompter, assistant"),
        ([message("a") | {"rank": "first"}], r"^f.jsonl:1 at rank: 'first' is not a number"),
        ([message("a") | {"deleted": "no"}], r"^f.jsonl:1 at deleted: a value that is not true or false"),
        ([message("a") | {"text": None}], r"^f.jsonl:1: the row lacks 'text'"),
        ([*in_tree("a", "c"), message("ab", "a")], r"^f.jsonl:3: tree 'a' goes on after another (?s:.*) sort the rows"),
        ([*in_tree("a", "b"), message("a", tree="c")], r"^f.jsonl:3: id 'a' is already used at f.jsonl:1"),
    ],
)  # fmt: skip
def test_rows_that_are_no_trees_are_refused_with_their_line(rows, found):
    with pytest.raises(RecordError, match=found):
        read(MESSAGES, *rows)


def test_rows_sorted_by_their_tree_are_read():
    rows = [*in_tree("a", "c"), message("ab", "a")]
    cases, _ = read(MESSAGES, *sorted(rows, key=lambda row: row["message_tree_id"]))
    assert [case.prompt.id for case in cases] == ["a", "c"]


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ({"replies": 3}, "replies"),
        ({"replies": ["x"]}, r"^f.jsonl:1 at prompt.replies\[0\]: no message"),
        ({"replies": [message("ab", "zz")]}, r"^f.jsonl:1 at prompt.replies\[0\]: parent_id 'zz' is not"),
        ({"replies": [message("ab", "a", text=3)]}, r"^f.jsonl:1 at prompt.replies\[0\]: .* 'text'"),
    ],
)
def test_a_broken_message_in_a_tree_is_refused_with_its_place(prompt, found):
    with pytest.raises(RecordError, match=found):
        read(TREES, {"message_tree_id": "a", "prompt": message("a") | prompt})
