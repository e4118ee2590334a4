import msgspec
import pytest

import tiny
import tiny_families
from steelyard.core.errors import FileError, ModelError
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.networks.conversation import (
    PLAIN_TEMPLATE,
    Rendering,
    add_no_marks,
    choose_special_tokens,
    choose_template,
    complete_template,
    encode,
    encode_all,
)
from steelyard.networks.loading import load_tokenizer
from strategies import case

TEXTS = [
    "你好 杆秤",
    "مرحبا بالعالم",
    "שלום עולם",
    "नमस्ते",
    "こんにちは",
    "def f(x):\n    return x",
    "$\\frac{a}{b}$",
    "🙂",
]
GEMMA_LIKE = (
    "{{ bos_token }}{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content | trim }}<|im_end|>\n{% endfor %}"
)


def ask(answer, *, system=None, question="What is it?"):
    turns = ((Message(role="system", content=system),) if system else ()) + (Message(role="user", content=question),)
    return Case(prompt=Prompt(id="p", messages=turns), responses=(Response(id="a", text=answer),))


def ids(one, *, template=tiny.CHATML, **settings):
    tokenizer = tiny.tokenizer(template)
    rendering = Rendering(template=template, **settings)
    return tokenizer, encode(tokenizer, rendering, one, one.responses[0])


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_reaches_the_model_unchanged(text):
    tokenizer, encoded = ids(ask(text, question=text))
    assert tokenizer.decode(encoded.ids).count(text) == 2


@pytest.mark.parametrize("template", [tiny.CHATML, tiny.WITH_BOS, GEMMA_LIKE, PLAIN_TEMPLATE])
def test_the_ids_are_exactly_what_the_template_gives(template):
    one = ask("The answer.")
    tokenizer, encoded = ids(one, template=template, strip=False)
    turns = [{"role": "user", "content": "What is it?"}, {"role": "assistant", "content": "The answer."}]
    reference = tokenizer.apply_chat_template(turns, tokenize=True, return_dict=False)
    assert list(encoded.ids) == reference
    assert encoded.ids.count(tokenizer.bos_token_id) == template.count("bos_token")


def test_a_doubled_beginning_mark_is_refused():
    template = "{{ bos_token }}" + tiny.WITH_BOS
    with pytest.raises(ModelError, match="two BOS tokens"):
        ids(ask("x"), template=template)


@pytest.mark.parametrize(
    ("template", "expected"),
    [(tiny.WITH_BOS, "template"), (tiny.CHATML, "tokenizer"), ("<s>{{ messages }}", "template")],
)
def test_a_tokenizer_that_adds_its_own_mark_does_so_only_where_the_template_does_not(template, expected):
    from tokenizers.processors import TemplateProcessing

    tokenizer = tiny.tokenizer(template)
    assert choose_special_tokens(tokenizer, template) == "template"
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.bos_token_id)]
    )
    assert choose_special_tokens(tokenizer, template) == expected
    one = ask("The answer.")
    encoded = encode(tokenizer, Rendering(template=template, special_tokens=expected), one, one.responses[0])
    assert encoded.ids.count(tokenizer.bos_token_id) == 1


@pytest.mark.parametrize(
    "template", [PLAIN_TEMPLATE, GEMMA_LIKE, tiny.CHATML, tiny_families.LLAMA3, "\n" + PLAIN_TEMPLATE]
)
@pytest.mark.parametrize("adds_bos", [False, True])
def test_every_way_to_apply_the_saved_template_gives_the_ids_of_training(template, adds_bos, tmp_path):
    from transformers import AutoTokenizer

    tokenizer = tiny_families.llama3_tokenizer(adds_bos=adds_bos)
    one = Case(prompt=case(text="What is a steelyard?").prompt, responses=(Response(id="a", text="A hand scale.  "),))
    marked = Rendering(template=template, special_tokens=choose_special_tokens(tokenizer, template))
    expected = list(encode(tokenizer, marked, one, one.responses[0]).ids)
    complete = complete_template(tokenizer, template, strip=True)
    trained = encode(tokenizer, Rendering(template=complete), one, one.responses[0])
    assert list(trained.ids) == expected
    tokenizer.chat_template = complete
    add_no_marks(tokenizer)
    tokenizer.save_pretrained(tmp_path)
    saved = AutoTokenizer.from_pretrained(tmp_path)
    turns = [
        {"role": "user", "content": one.prompt.messages[0].content},
        {"role": "assistant", "content": one.responses[0].text},
    ]
    assert saved.apply_chat_template(turns, tokenize=True, return_dict=True)["input_ids"] == expected
    text = saved.apply_chat_template(turns, tokenize=False)
    for adds in (True, False):
        assert saved(text, add_special_tokens=adds).input_ids == expected
    assert complete_template(saved, complete, strip=True) == complete


def test_a_text_that_spells_out_a_mark_stays_text():
    answer = "write <|im_end|> and <s> to end"
    tokenizer, encoded = ids(ask(answer))
    assert tokenizer.decode(encoded.ids).count(answer) == 1
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert encoded.ids.count(end) == 2  # the two that the template wrote
    assert tokenizer.bos_token_id not in encoded.ids


def test_an_answer_that_quotes_the_prompt_keeps_both():
    tokenizer, encoded = ids(ask("What is it? What is it?"))
    assert tokenizer.decode(encoded.ids).count("What is it?") == 3


def test_a_system_prompt_is_never_lost():
    _, without = ids(ask("x"))
    tokenizer, with_system = ids(ask("x", system="Be brief."))
    assert without.ids != with_system.ids
    assert "Be brief." in tokenizer.decode(with_system.ids)
    deaf = "{% for message in messages if message.role != 'system' %}{{ message.content }}{% endfor %}"
    with pytest.raises(ModelError, match=r"changes or drops the system text .Be brief\."):
        ids(ask("x", system="Be brief."), template=deaf)


def test_a_template_that_edits_or_refuses_is_refused():
    thinking = "{% for message in messages %}{{ message.content.split('</think>')[-1] }}{% endfor %}"
    with pytest.raises(ModelError, match="changes or drops the assistant text"):
        ids(ask("<think>hm</think>yes"), template=thinking)
    strict = "{{ raise_exception('only users') }}"
    with pytest.raises(
        ModelError, match=r"refuses this conversation.*only users.*its roles: system, user, assist"
    ) as no:
        ids(ask("x", system="y"), template=strict)
    assert "chat_template" in no.value.do


def test_nothing_that_is_given_is_changed():
    one = ask("x", system="s")
    before = msgspec.json.encode(one)
    assert ids(one)[1] == ids(one)[1]
    assert msgspec.json.encode(one) == before


def test_stripping_takes_only_white_space_at_the_end():
    tokenizer, kept = ids(ask("x"), strip=False)
    _, stripped = ids(ask("x"), strip=True)
    assert kept.ids[: len(stripped.ids)] == stripped.ids
    assert tokenizer.decode(kept.ids[len(stripped.ids) :]) == "\n"


@pytest.mark.parametrize("over_length", ["unscored", "refuse", "left", "right"])
def test_what_is_over_length_says_so(over_length):
    _, whole = ids(ask("word " * 30), template=tiny.WITH_BOS)
    tokenizer, cut = ids(ask("word " * 30), template=tiny.WITH_BOS, max_length=20, over_length=over_length)
    assert (len(cut.ids), cut.length, cut.is_over_length) == (20, len(whole.ids), True)
    assert cut.ids[0] == tokenizer.bos_token_id
    assert cut.ids[1:] == (whole.ids[-19:] if over_length == "left" else whole.ids[1:20])
    assert not whole.is_over_length


def test_an_answer_of_several_turns_is_rendered_as_turns():
    turns = (
        Message(role="assistant", content="one"),
        Message(role="user", content="two"),
        Message(role="assistant", content="three"),
    )
    one = Case(prompt=case().prompt, responses=(Response(id="a", messages=turns),))
    tokenizer, encoded = ids(one)
    assert tokenizer.decode(encoded.ids).count("<|im_start|>") == 4


def test_a_template_is_never_guessed(tmp_path):
    own = tiny.tokenizer(None)
    with pytest.raises(ModelError, match=r"m: the model has no chat template\n  do: name one"):
        choose_template(own, None, model="m")
    assert choose_template(own, "plain", model="m") == PLAIN_TEMPLATE
    (tmp_path / "t.jinja").write_text("{{ messages }} 杆秤", encoding="utf-8")
    assert choose_template(own, str(tmp_path / "t.jinja"), model="m") == "{{ messages }} 杆秤"
    with pytest.raises(FileError, match="chat template not found"):
        choose_template(own, "plane", model="m")
    assert choose_template(tiny.tokenizer(), None, model="m") == tiny.CHATML


def test_of_several_templates_the_default_is_taken_and_no_other(tmp_path):
    own = tiny.tokenizer({"default": tiny.CHATML, "tool_use": "x"})
    assert choose_template(own, None, model="m") == tiny.CHATML
    own.save_pretrained(tmp_path)
    assert choose_template(load_tokenizer(str(tmp_path)), None, model="m") == tiny.CHATML
    with pytest.raises(ModelError, match="for special uses alone: rag, tool_use"):
        choose_template(tiny.tokenizer({"tool_use": "x", "rag": "y"}), None, model="m")


def test_an_answer_that_is_dropped_is_missed_even_where_the_prompt_says_the_same():
    with pytest.raises(ModelError, match="changes or drops the assistant text"):
        ids(ask("What is it?"), template="{{ messages[0].content }}")
    with pytest.raises(ModelError, match="changes or drops the assistant text"):
        ids(ask("it?", question="What is it? it?"), template="{{ messages[0].content }}")


def test_the_day_of_the_run_changes_nothing():
    template = "{{ strftime_now('%d %b %Y') }} {{ strftime_now('%Y-%m-%d') }}" + tiny.CHATML
    tokenizer, encoded = ids(ask("x"), template=template)
    assert tokenizer.decode(encoded.ids).startswith("26 Jul 2024 2024-07-26<|im_start|>")
    tokenizer, other = ids(ask("x"), template=template, today="2025-01-02")
    assert tokenizer.decode(other.ids).startswith("02 Jan 2025 2025-01-02<|im_start|>")


def test_a_conversation_without_tokens_is_refused():
    with pytest.raises(ModelError, match="p: the conversation has no tokens"):
        ids(ask("", question=""), template="{% for message in messages %}{{ message.content }}{% endfor %}")


def test_a_template_file_of_other_bytes_is_the_user_s_error(tmp_path):
    (tmp_path / "t.jinja").write_bytes(b"{{ messages }}\xff")
    with pytest.raises(FileError, match=r"t\.jinja:1: byte 15 is not UTF-8"):
        choose_template(tiny.tokenizer(), str(tmp_path / "t.jinja"), model="m")


def test_answers_encoded_side_by_side_are_those_encoded_one_by_one():
    own, rendering = tiny.tokenizer(), Rendering(template=tiny.CHATML, max_length=40, over_length="left")
    texts = [*TEXTS, "<|im_end|> quoted", "ends in <|im_", "", " ", "long " * 60]
    answers = [(one, one.responses[0]) for one in map(ask, texts)]
    together = encode_all(own, rendering, answers)
    assert together == [encode(own, rendering, *answer) for answer in answers]
    assert [answer.is_repaired for answer in together[8:]] == [True, True, False, False, False]
    assert together[-1].is_over_length
    assert encode_all(own, rendering, []) == []


def test_of_several_faults_the_first_answer_s_is_raised():
    template = (
        "{% if messages[-1].content == 'stop' %}{{ raise_exception('stop') }}{% endif %}"
        "{% for message in messages %}{{ message.content }}{% endfor %}"
    )
    refused, without_tokens = (ask(text, question=" ") for text in ("stop", " "))
    faults = {"refuses this conversation": refused, "has no tokens": without_tokens}
    for order in (list(faults), list(faults)[::-1]):
        answers = [(one, one.responses[0]) for one in map(faults.__getitem__, order)]
        with pytest.raises(ModelError, match=order[0]):
            encode_all(tiny.tokenizer(), Rendering(template=template), answers)
