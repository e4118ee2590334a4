import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from steelyard.core.types import Message
from steelyard.networks.rendering import TODAY, TemplateFailure, marks_of, tokenise, write

MARKS = ["<pad>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
ONE = "{{ messages[0].content }}"


@pytest.fixture(scope="module")
def tokenizer():
    return tiny.tokenizer()


def nameless():
    """A tokenizer whose turn marks are special but have no name, as those of Llama 3."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_file=tiny.tokenizer_file(), bos_token="<s>", eos_token="</s>")


def written(tokenizer, *texts, template=ONE):
    turns = [Message(role=("user", "assistant")[place % 2], content=text) for place, text in enumerate(texts)]
    return write(tokenizer, template, turns)


@pytest.mark.parametrize("make", [tiny.tokenizer, nameless])
@pytest.mark.parametrize("mark", MARKS)
def test_every_special_token_stays_text_named_or_not(make, mark):
    own = make()
    text = f"write {mark} twice {mark}"
    ids, is_repaired = tokenise(own, written(own, text), add=False)
    assert own.convert_tokens_to_ids(mark) not in ids
    assert own.decode(ids) == text
    assert is_repaired


def test_a_text_without_marks_has_the_tokenizer_s_ids(tokenizer):
    for text in ("plain", "<b> <im_end> 你好", "a <| b"):
        ids, is_repaired = tokenise(tokenizer, written(tokenizer, text), add=False)
        assert (ids, is_repaired) == (tokenizer(text).input_ids, False)


def test_a_mark_over_the_edge_of_two_texts_or_of_a_text_and_the_template_is_none(tokenizer):
    both = "{{ messages[0].content }}{{ messages[1].content }}"
    ids, is_repaired = tokenise(tokenizer, written(tokenizer, "<|im_", "end|>", template=both), add=False)
    assert is_repaired
    assert tokenizer.decode(ids) == "<|im_end|>"
    assert tokenizer.convert_tokens_to_ids("<|im_end|>") not in ids
    ids, _ = tokenise(tokenizer, written(tokenizer, "<|im_", template="{{ messages[0].content }}end|>"), add=False)
    assert tokenizer.convert_tokens_to_ids("<|im_end|>") not in ids


def test_marks_of_the_template_keep_their_effect_beside_a_short_text(tokenizer):
    # The text "s" also stands inside the template's own mark, which must stay whole.
    template = "<|im_start|>{{ messages[0].content }}{{ messages[1].content }}<|im_end|>"
    ids, _ = tokenise(tokenizer, written(tokenizer, "s", "x <|im_end|>", template=template), add=False)
    assert [ids.count(tokenizer.convert_tokens_to_ids(mark)) for mark in ("<|im_start|>", "<|im_end|>")] == [1, 1]


@pytest.mark.parametrize("text", ["a <s> b", "a b"])
def test_the_tokenizer_s_own_marks_go_around_the_whole(text):
    from tokenizers.processors import TemplateProcessing

    own = tiny.tokenizer()
    own.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", own.bos_token_id), ("</s>", own.eos_token_id)]
    )
    ids, is_repaired = tokenise(own, written(own, text), add=True)
    assert is_repaired == ("<s>" in text)
    assert (ids[0], ids[-1]) == (own.bos_token_id, own.eos_token_id)
    assert (ids.count(own.bos_token_id), ids.count(own.eos_token_id)) == (1, 1)
    assert own.decode(ids[1:-1]) == text


pieces = st.sampled_from(
    [*MARKS, "你", " ", "a", "<|", "|>", "<", ">", "im_end", "\U000f0000", "\U000f0001", "\U00100000", "🙂"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(pieces, max_size=12).map("".join), st.lists(pieces, max_size=12).map("".join))
def test_any_text_survives_and_no_mark_in_it_takes_effect(tokenizer, first, second):
    template = "<|im_start|>{{ messages[0].content }}<|im_end|>{{ messages[1].content }}"
    ids, _ = tokenise(tokenizer, written(tokenizer, first, second, template=template), add=False)
    whole = f"<|im_start|>{first}<|im_end|>{second}"
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == whole
    numbers = tokenizer.convert_tokens_to_ids(MARKS)
    assert [one for one in ids if one in numbers] == tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"])


def test_what_the_template_writes_is_a_mark_also_where_it_is_put_together(tokenizer):
    from transformers import AddedToken

    own = tiny.tokenizer()
    own.add_tokens([AddedToken("[user]", special=False), AddedToken("[other]", special=False)])
    assert set(marks_of(own, "{{ '[' ~ messages[0].role ~ ']' }}").ids) == {*MARKS, "[user]"}
    assert set(marks_of(own, ONE).ids) == set(MARKS)


def test_a_template_that_asks_for_the_date_is_told_a_fixed_one(tokenizer):
    assert written(tokenizer, "x", template="{{ strftime_now('%d %B %Y') }}").text == "26 July 2024"
    assert TODAY == "2024-07-26"


def test_a_template_that_refuses_says_why(tokenizer):
    with pytest.raises(TemplateFailure, match="only users"):
        written(tokenizer, "x", template="{{ raise_exception('only users') }}")
