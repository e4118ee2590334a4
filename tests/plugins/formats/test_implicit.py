from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Message
from steelyard.plugins.formats._implicit import (
    Parts,
    are_texts,
    cut_turns,
    implicit_parts,
    is_found_again,
    shared_turns,
    whole_texts,
    whole_turns,
)

turns = st.lists(st.sampled_from("abc"), max_size=4).map(
    lambda names: tuple(Message(role="user", content=name) for name in names)
)


def row(chosen, rejected, *, names=("chosen", "rejected")):
    return Row(Place("f", 1), dict(zip(names, (chosen, rejected), strict=True)))


def parts(prompt, chosen, rejected):
    roles = ("user", "assistant", "assistant")
    texts = zip(roles, (prompt, chosen, rejected), strict=True)
    return Parts(*((Message(role=role, content=text),) for role, text in texts))


@given(prompt=turns, chosen=turns, rejected=turns)
def test_a_cut_loses_no_turn_and_leaves_both_sides_one(prompt, chosen, rejected):
    if not (prompt + chosen and prompt + rejected):
        return
    cut = cut_turns(prompt + chosen, prompt + rejected)
    assert (cut.prompt + cut.chosen, cut.prompt + cut.rejected) == (prompt + chosen, prompt + rejected)
    assert cut.chosen
    assert cut.rejected
    assert len(cut.prompt) >= min(len(prompt), len(prompt + chosen) - 1, len(prompt + rejected) - 1)
    is_longest = min(len(cut.chosen), len(cut.rejected)) == 1 or cut.chosen[0] != cut.rejected[0]
    assert is_longest


@pytest.mark.parametrize(
    ("wanted", "found"),
    [(parts("q\n", "a", "b"), True), (parts("q", "a", "b"), False), (parts("q\n", "a\nb", "a\nc"), False)],
)
def test_texts_are_whole_only_where_the_prompt_is_found_again(wanted, found):
    texts = whole_texts(wanted, ("good", "bad"))
    assert (texts is not None) == found
    if texts is not None:
        assert implicit_parts(Row(Place("f", 1), texts), Counter(), ("good", "bad")) == wanted


def test_turns_are_found_again_unless_the_answers_begin_alike():
    one = parts("q", "a", "b")
    assert are_texts(one)
    assert is_found_again(one)
    assert shared_turns(Row(Place("f", 1), whole_turns(one)), ("chosen", "rejected")) == one
    both = Parts(one.prompt, one.chosen + one.prompt, one.chosen + one.chosen)
    assert not are_texts(both)
    assert not is_found_again(both)
    assert not is_found_again(Parts((), one.chosen, one.rejected))


def test_the_names_of_the_sides_stand_in_the_error():
    with pytest.raises(RecordError, match=r"^f:1: good and bad share no prompt"):
        implicit_parts(row("x", "y", names=("good", "bad")), Counter(), ("good", "bad"))
    with pytest.raises(RecordError, match=r"^f:1 at bad: "):
        shared_turns(row([{"role": "user", "content": "q"}], 3, names=("good", "bad")), ("good", "bad"))
