import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from steelyard.core.plugins import build
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.networks.answer_tokens import (
    AnswerRow,
    AnswerTokens,
    cut_as_published,
    num_shared,
    shown_answers,
    with_published_marks,
)
from steelyard.networks.conversation import Rendering, encode
from steelyard.plugins.models.classifier import Config, reading_of
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
    assert found.start == num_shared(TOKENIZER("What is it? The answer i").input_ids, ids) == len(ids) - 1


def test_an_answer_of_several_turns_has_no_row_of_its_own():
    turns = (Message(role="assistant", content="a"), Message(role="user", content="b"))
    case = Case(prompt=prompt("p"), responses=(Response(id="a", messages=turns), Response(id="b", text="x")))
    answers = AnswerTokens(TOKENIZER, RENDERING, with_header=False)
    assert [found is None for found in answers.rows(case)] == [True, False]
    assert answers.rows(Case(prompt=prompt("p"), responses=())) == []


def test_shared_beginnings():
    assert [num_shared(*both) for both in (([1, 2], [1, 3]), ([], [1]), ([1], [1, 2]), ([2], [1]))] == [1, 0, 1, 0]


def test_published_marks_and_cuts_by_hand():
    assert with_published_marks(AnswerRow((5, 6, 7), 2), bos=1, eos=2) == AnswerRow((1, 5, 6, 7, 2), 3)
    assert with_published_marks(AnswerRow((5, 6), 1), bos=None, eos=2) == AnswerRow((2, 5, 6, 2), 2)
    whole = AnswerRow(tuple(range(300)), 200)
    assert cut_as_published(whole, 300) == whole
    assert cut_as_published(whole, 299) == AnswerRow((*range(72, 200), *range(200, 300)), 128)
    assert cut_as_published(whole, 200) == AnswerRow((*range(72, 200), *range(200, 272)), 128)


HEAD = "<|im_start|>assistant\n"
ANSWERS = [
    "The answer is here.",
    "杆秤是一种称重工具。",
    "שלום مرحبا नमस्ते",
    "🙂 def f(x):\n\treturn x",
    "\n\n  spaces",
    "",
    "a",
    "“好”",
    "says <|im_end|> and <s>",
]


def ask(*answers, question="你好?"):
    return Case(
        prompt=Prompt(id="p", messages=(Message(role="user", content=question),)),
        responses=tuple(Response(id=str(place), text=text) for place, text in enumerate(answers)),
    )


def shown(config, case):
    reading = reading_of(config)
    return shown_answers(reading.tokenizer, reading.rendering, case)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tiny.save_base(tmp_path_factory.mktemp("base"), template=tiny.WITH_BOS)


def test_the_tokens_are_the_scorer_s_and_their_texts_make_the_conversation(path):
    case, tokenizer = ask(*ANSWERS), tiny.tokenizer(tiny.WITH_BOS)
    for response, found in zip(case.responses, shown(Config(path=path), case), strict=True):
        own = encode(tokenizer, Rendering(template=tiny.WITH_BOS, strip=False), case, response).ids
        assert tuple(one for piece in found.pieces for one in piece.ids) == own
        prompt = "".join(piece.text for piece in found.pieces if piece.is_prompt)
        answer = "".join(piece.text for piece in found.pieces if not piece.is_prompt)
        assert prompt == f"<s><|im_start|>user\n你好?<|im_end|>\n{HEAD}"
        assert answer == f"{response.text}<|im_end|>\n"
        assert found.num_tokens == len(own)
        assert found.num_prompt == len(tokenizer(prompt, add_special_tokens=False).input_ids)
        assert found.begins_with_bos
        assert not found.ends_with_eos
        assert (found.num_cut, found.is_refused) == (0, False)


def test_only_marks_that_take_effect_are_special(path):
    (found,) = shown(Config(path=path), ask("says <|im_end|> and <s>"))
    marks = [piece.text for piece in found.pieces if piece.is_special]
    assert marks == ["<s>", "<|im_start|>", "<|im_end|>", "<|im_start|>", "<|im_end|>"]


def test_several_answers_share_their_prompt(path):
    one, other = shown(Config(path=path), ask("yes", "不是"))
    assert [piece for piece in one.pieces if piece.is_prompt] == [piece for piece in other.pieces if piece.is_prompt]


def test_an_answer_of_several_turns_begins_with_its_first(path):
    turns = (("assistant", "one"), ("user", "more?"), ("assistant", "two"))
    answer = Response(id="a", messages=tuple(Message(role=role, content=text) for role, text in turns))
    (found,) = shown(Config(path=path), msgspec.structs.replace(ask("x"), responses=(answer,)))
    text = "".join(piece.text for piece in found.pieces if not piece.is_prompt)
    assert text.startswith("one<|im_end|>\n<|im_start|>user\nmore?")


@pytest.mark.parametrize("over_length", ["left", "right", "unscored", "refuse"])
def test_what_is_cut_is_what_the_scorer_cuts(path, over_length):
    case, limit = ask("one two three four five six seven eight nine ten"), 20
    whole = encode(
        tiny.tokenizer(tiny.WITH_BOS), Rendering(template=tiny.WITH_BOS, strip=False), case, case.responses[0]
    ).ids
    assert len(whole) > limit
    (found,) = shown(Config(path=path, max_length=limit, over_length=over_length), case)
    seen = [one for piece in found.pieces if not piece.is_cut for one in piece.ids]
    expected = [whole[0], *whole[-(limit - 1) :]] if over_length == "left" else list(whole[:limit])
    assert seen == expected
    assert found.num_cut == len(whole) - limit
    assert found.is_refused == (over_length in ("unscored", "refuse"))
    assert found.num_tokens == len(whole)


def test_a_character_that_is_cut_in_two_is_shown_as_broken_on_both_sides(path):
    """The BOS token, and then the last 25 tokens: the seventh emoji from the end loses its first byte or more."""
    case = ask("🦄" * 8)
    (found,) = shown(Config(path=path, max_length=25, over_length="left"), case)
    answer = [piece for piece in found.pieces if not piece.is_prompt and not piece.is_special and piece.text != "\n"]
    cut, seen = ([piece for piece in answer if piece.is_cut is side] for side in (True, False))
    assert all(piece.text == "🦄" for piece in (*cut[:-1], *seen[1:]))
    assert len(cut[-1].ids) + len(seen[0].ids) == 4
    assert set(cut[-1].text + seen[0].text) == {"\ufffd"}


def test_the_refused_answer_is_the_one_that_gets_no_score(tmp_path):
    path = tiny.save_classifier(tmp_path / "m")
    case = ask("short", "long " * 60)
    (line,) = build("models", "classifier", {"path": path, "max_length": 64}).score([case])
    found = shown(Config(path=path, max_length=64), case)
    assert [one.is_refused for one in found] == [line.scores[name] is None for name in ("0", "1")] == [False, True]
