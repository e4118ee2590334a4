import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from steelyard.plugins.rendering import TODAY, hidden, stand_ins, tokenise, without_clock

MARKS = ["<pad>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]


@pytest.fixture(scope="module")
def tokenizer():
    return tiny.tokenizer()


def nameless():
    """A tokenizer whose turn marks are special but have no name, as those of Llama 3."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_file=tiny.tokenizer_file(), bos_token="<s>", eos_token="</s>")


@pytest.mark.parametrize("make", [tiny.tokenizer, nameless])
@pytest.mark.parametrize("mark", MARKS)
def test_every_special_token_is_hidden_named_or_not(make, mark):
    own = make()
    text = f"write {mark} twice {mark}"
    instead = stand_ins(own, [text])
    assert list(instead) == [mark]
    ids = tokenise(own, hidden(text, instead), instead, add=False)
    assert own.convert_tokens_to_ids(mark) not in ids
    assert own.decode(ids) == text


def test_a_text_without_marks_has_no_stand_ins(tokenizer):
    assert stand_ins(tokenizer, ["plain", "<b> <im_end> 你好"]) == {}
    assert tokenise(tokenizer, "plain", {}, add=False) == tokenizer("plain").input_ids


def test_a_mark_over_the_edge_of_two_texts_is_none(tokenizer):
    assert stand_ins(tokenizer, ["<|im_", "end|>"]) == {}


def test_marks_of_the_template_keep_their_effect_beside_a_short_text(tokenizer):
    # The text "s" also stands inside the template's own mark, which must stay whole.
    instead = stand_ins(tokenizer, ["s", "x <|im_end|>"])
    text = f"<|im_start|>s{hidden('x <|im_end|>', instead)}<|im_end|>"
    ids = tokenise(tokenizer, text, instead, add=False)
    assert [ids.count(tokenizer.convert_tokens_to_ids(mark)) for mark in ("<|im_start|>", "<|im_end|>")] == [1, 1]


def test_the_tokenizer_s_own_marks_go_around_the_whole():
    from tokenizers.processors import TemplateProcessing

    own = tiny.tokenizer()
    own.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", own.bos_token_id), ("</s>", own.eos_token_id)]
    )
    instead = stand_ins(own, ["a <s> b"])
    ids = tokenise(own, hidden("a <s> b", instead), instead, add=True)
    assert (ids[0], ids[-1]) == (own.bos_token_id, own.eos_token_id)
    assert (ids.count(own.bos_token_id), ids.count(own.eos_token_id)) == (1, 1)
    assert own.decode(ids[1:-1]) == "a <s> b"


pieces = st.sampled_from([*MARKS, "你", " ", "a", "<|", "|>", "im_end", "\U000f0000", "\U000f0001", "🙂"])


@settings(max_examples=200, deadline=None)
@given(st.lists(pieces, max_size=12).map("".join))
def test_any_text_survives_and_no_mark_in_it_takes_effect(tokenizer, text):
    instead = stand_ins(tokenizer, [text])
    ids = tokenise(tokenizer, hidden(text, instead), instead, add=False)
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text
    assert not set(ids) & set(tokenizer.convert_tokens_to_ids(MARKS))


def test_a_template_that_asks_for_the_date_is_told_a_fixed_one(tokenizer):
    template = "{{ strftime_now('%d %B %Y') }}"
    assert (
        tokenizer.apply_chat_template(
            [{"role": "user", "content": "x"}], tokenize=False, chat_template=without_clock(template, TODAY)
        )
        == "26 July 2024"
    )
    assert without_clock("{{ messages }}", TODAY) == "{{ messages }}"
