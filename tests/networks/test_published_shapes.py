"""In the shapes of published tokenizers no text becomes a token of the template, and other texts keep their ids."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from published_tokenizers import SHAPES, published
from steelyard.core.types import Message
from steelyard.networks.conversation import Rendering, choose_special_tokens, encode
from steelyard.networks.rendering import _twin, marks_of, tokenise, write
from strategies import case

FULL_WIDTH = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)})
ACCENTED = str.maketrans({"s": "ś", "u": "ú", "o": "ö", "a": "å"})


def spelt(name):
    """Each mark as it is, in other characters that a normaliser makes it of, in a text, doubled, and nested."""
    shape = SHAPES[name]
    for mark in (*shape.special, *shape.other):
        if mark.strip():
            half = len(mark) // 2
            yield from (mark, f"write {mark} here", mark * 2, mark[:half] + mark + mark[half:])
            yield from (mark.translate(FULL_WIDTH), f"x {mark.translate(ACCENTED)} y")
    yield "".join(shape.special + shape.other)


def of_template(name, ids):
    numbers = set(marks_of(published(name), SHAPES[name].template).ids.values())
    return [one for one in ids if one in numbers]


def conversation(name, *texts):
    template = SHAPES[name].template
    turns = [Message(role=("user", "assistant")[place % 2], content=text) for place, text in enumerate(texts)]
    return tokenise(published(name), write(published(name), template, turns), add=False)


@pytest.mark.parametrize("name", SHAPES)
def test_no_text_becomes_a_token_of_the_template(name):
    expected = of_template(name, conversation(name, "What?", "It is.").ids)
    assert expected
    for text in spelt(name):
        assert of_template(name, conversation(name, text, "It is.").ids) == expected, text
        assert of_template(name, conversation(name, "What?", text).ids) == expected, text


@pytest.mark.parametrize("name", [name for name in SHAPES if SHAPES[name].normalizer in (None, "nfc", "spaces")])
def test_what_spelt_a_mark_is_read_as_it_was_written(name):
    tokenizer = published(name)
    for text in spelt(name):
        assert text.strip() in tokenizer.decode(conversation(name, "What?", text).ids)


@pytest.mark.parametrize("name", SHAPES)
def test_the_plain_tokenizer_would_have_taken_some_for_its_own(name):
    """Without the repair the texts do become marks: the test above shows something."""
    tokenizer, template = published(name), SHAPES[name].template
    numbers = set(marks_of(tokenizer, template).ids.values())
    taken = [text for text in spelt(name) if numbers & set(tokenizer(text, add_special_tokens=False).input_ids)]
    assert len(taken) > len(list(spelt(name))) / 3


ordinary = st.text(
    st.one_of(st.sampled_from(" \n\tabisuer<|>[]/_｜你好שé"), st.characters(codec="utf-8", exclude_categories=["Co"])),
    max_size=30,
)


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=40, deadline=None)
@given(first=ordinary, second=ordinary)
def test_the_ids_of_ordinary_texts_are_the_tokenizer_s_own_by_either_way(name, first, second):
    tokenizer, template = published(name), SHAPES[name].template
    turns = [{"role": "user", "content": first}, {"role": "assistant", "content": second}]
    whole = tokenizer.apply_chat_template(turns, tokenize=False)
    plain = tokenizer(whole, add_special_tokens=False).input_ids
    assert conversation(name, first, second).ids == plain
    # The twin, which is asked only where a text spells a mark, says the same of every other text.
    marks = marks_of(tokenizer, template)
    twin = _twin(tokenizer, tuple(sorted(marks.ids.items())))
    framed = marks.pattern.sub(lambda mark: twin.spelling[mark.group()], whole)
    assert twin.tokenizer.encode(framed, add_special_tokens=False).ids == plain


@pytest.mark.parametrize("name", SHAPES)
def test_a_scorer_s_rows_hold_only_the_template_s_marks(name):
    tokenizer, template = published(name), SHAPES[name].template
    rendering = Rendering(template=template, special_tokens=choose_special_tokens(tokenizer, template))
    (mark, *_), one = SHAPES[name].other or SHAPES[name].special, case("p", "a")
    plain, hostile = (
        encode(tokenizer, rendering, one, type(one.responses[0])(id="a", text=text))
        for text in ("good", f"good {mark}")
    )
    assert of_template(name, hostile.ids) == of_template(name, plain.ids)
    assert not plain.is_repaired
