import pytest

import tiny
import tiny_families
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from strategies import prompt

CASE = Case(
    prompt=prompt("p", "为什么？"), responses=tuple(Response(id=text, text=text) for text in ("因为。", "no", "z" * 40))
)


def official_ids(folder, response):
    """Template to text, stripped, tokenised with special tokens: word for word what the published code does."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    sample = tokenizer.apply_chat_template(tiny_families.turns(CASE, response), tokenize=False)
    return tokenizer(sample.strip()).input_ids


def expected(folder, ids):
    weight = tiny_families.stored(folder)["v_head.weight"].double().numpy()[0]
    return weight @ tiny_families.hidden_states(folder, ids)[-1]


def test_the_reward_is_read_at_the_last_token_of_the_stripped_text(tmp_path):
    folder = tiny_families.save_cheemsrm(tmp_path)
    (line,) = build("models", "cheemsrm", {"path": folder}).score([CASE])
    for response in CASE.responses:
        ids = official_ids(folder, response)
        assert ids[-1] == tiny.tokenizer().convert_tokens_to_ids("<|im_end|>")
        assert line.scores[response.id] == pytest.approx(expected(folder, ids), abs=1e-4)


def test_two_beginning_marks_only_where_they_are_asked_for(tmp_path):
    folder = tiny_families.save_cheemsrm(tmp_path, template=tiny.WITH_BOS, adds_bos=True)
    official = official_ids(folder, CASE.responses[0])
    bos = tiny.tokenizer().bos_token_id
    assert official[:2] == [bos, bos]
    fixed, published = (build("models", "cheemsrm", {"path": folder, "as_published": asked}) for asked in (False, True))
    name = CASE.responses[0].id
    assert next(published.score([CASE])).scores[name] == pytest.approx(expected(folder, official), abs=1e-4)
    assert next(fixed.score([CASE])).scores[name] == pytest.approx(expected(folder, official[1:]), abs=1e-4)
    assert abs(expected(folder, official) - expected(folder, official[1:])) > 1e-3
    assert [model.protocol()["as_published"] for model in (fixed, published)] == [False, True]


def test_a_tokenizer_that_adds_no_mark_has_none_to_double(tmp_path):
    folder = tiny_families.save_cheemsrm(tmp_path)
    plain, published = (build("models", "cheemsrm", {"path": folder, "as_published": asked}) for asked in (False, True))
    assert list(plain.score([CASE])) == list(published.score([CASE]))
