import msgspec
import pytest

import tiny
from steelyard.core.plugins import build
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.networks.answer_tokens import shown_answers
from steelyard.networks.conversation import Rendering, encode
from steelyard.plugins.models.classifier import Config, reading_of

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
    """The beginning mark, and then the last 25 tokens: the seventh emoji from the end loses its first byte or more."""
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
