import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from steelyard.core.types import Case, Message, Response
from steelyard.networks.answer_tokens import (
    AnswerRow,
    AnswerTokens,
    cut_as_published,
    shared,
    with_published_marks,
)
from steelyard.networks.conversation import Rendering
from strategies import prompt

TOKENIZER = tiny.tokenizer()
RENDERING = Rendering(template=tiny.CHATML, strip=False)


def row(text, *, asked="What is it?", with_header=False, template=tiny.CHATML):
    answers = AnswerTokens(TOKENIZER, Rendering(template=template, strip=False), with_header=with_header)
    (found,) = answers.rows(Case(prompt=prompt("p", asked), responses=(Response(id="a", text=text),)))
    return found


@pytest.mark.parametrize(
    "text", ["The answer is here.", "你好，世界。", "\n\nfirst", " x", "What is it?", "👩‍👩‍👧‍👦", "שלום"]
)
def test_the_answer_is_its_text_with_the_marks_behind_it(text):
    found = row(text)
    assert TOKENIZER.decode(found.ids[found.start :]) == text + "<|im_end|>\n"
    assert (
        TOKENIZER.decode(found.ids[: found.start]) == "<|im_start|>user\nWhat is it?<|im_end|>\n<|im_start|>assistant\n"
    )


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=20))
def test_whatever_the_answer_its_first_token_is_not_the_prompt_s(text):
    found = row(text)
    head = "<|im_start|>user\nWhat is it?<|im_end|>\n<|im_start|>assistant\n"
    before = TOKENIZER.decode(found.ids[: found.start])
    assert head.startswith(before)
    # A token that holds the end of the prompt and the start of the answer is the answer's: at most the last one.
    assert len(TOKENIZER(head).input_ids) - found.start in (0, 1)


def test_an_answer_that_quotes_the_prompt_keeps_the_quotation():
    quoting = row("You ask: What is it? What is it?")
    assert TOKENIZER.decode(quoting.ids[quoting.start :]).count("What is it?") == 2


def test_with_the_header_what_the_template_writes_between_is_the_answer_s():
    found = row("x", with_header=True)
    assert TOKENIZER.decode(found.ids[found.start :]) == "<|im_start|>assistant\nx<|im_end|>\n"


def test_a_token_across_the_border_is_the_answer_s():
    # "it" may be one token: where the template puts nothing between prompt and answer, both ends share it.
    joined = "{% for message in messages %}{{ message.content }}{% endfor %}"
    found = row("s", asked="What is it? The answer i", template=joined)
    ids = TOKENIZER("What is it? The answer is").input_ids
    assert list(found.ids) == ids
    assert found.start == shared(TOKENIZER("What is it? The answer i").input_ids, ids) == len(ids) - 1


def test_an_answer_of_several_turns_has_no_row_of_its_own():
    turns = (Message(role="assistant", content="a"), Message(role="user", content="b"))
    case = Case(prompt=prompt("p"), responses=(Response(id="a", messages=turns), Response(id="b", text="x")))
    answers = AnswerTokens(TOKENIZER, RENDERING, with_header=False)
    assert [found is None for found in answers.rows(case)] == [True, False]
    assert answers.rows(Case(prompt=prompt("p"), responses=())) == []


def test_shared_beginnings():
    assert [shared(*both) for both in (([1, 2], [1, 3]), ([], [1]), ([1], [1, 2]), ([2], [1]))] == [1, 0, 1, 0]


def test_published_marks_and_cuts_by_hand():
    assert with_published_marks(AnswerRow((5, 6, 7), 2), bos=1, eos=2) == AnswerRow((1, 5, 6, 7, 2), 3)
    assert with_published_marks(AnswerRow((5, 6), 1), bos=None, eos=2) == AnswerRow((2, 5, 6, 2), 2)
    whole = AnswerRow(tuple(range(300)), 200)
    assert cut_as_published(whole, 300) == whole
    assert cut_as_published(whole, 299) == AnswerRow((*range(72, 200), *range(200, 300)), 128)
    assert cut_as_published(whole, 200) == AnswerRow((*range(72, 200), *range(200, 272)), 128)
