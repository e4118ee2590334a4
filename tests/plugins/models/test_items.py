import pytest

import tiny
import tiny_families
from steelyard.core.errors import ConfigError
from steelyard.core.types import Case, Response
from steelyard.plugins.models._dialects import DIALECTS
from steelyard.plugins.models.remote import Config, Renderer, sent_form
from strategies import prompt

URL = "http://127.0.0.1:1"
TEXT = "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nx<|im_end|>\n"


def text_sent(folder, dialect):
    config = Config(url=URL, dialect=dialect, tokenizer=str(folder))
    renderer = Renderer(config, DIALECTS[dialect], "text")
    return renderer.item(
        Case(prompt=prompt("p", "q"), responses=()), Response(id="a", text="x")
    ).content, renderer.adds_marks


@pytest.mark.parametrize(
    ("template", "adds_bos", "dialect", "text", "adds_marks"),
    [
        (tiny.CHATML, False, "sglang", TEXT, False),
        (tiny.CHATML, True, "sglang", TEXT, True),  # the server adds the one mark
        (tiny.WITH_BOS, True, "sglang", TEXT, False),  # and is not sent the template's as well
        (tiny.WITH_BOS, False, "sglang", "<s>" + TEXT, False),
        (tiny.WITH_BOS, True, "openrlhf", "<s>" + TEXT, False),  # this server adds none
        (tiny.CHATML, True, "openrlhf", "<s>" + TEXT, True),
        (tiny.WITH_BOS, True, "vllm_classify", "<s>" + TEXT, False),  # this one does as it is told
        (tiny.CHATML, True, "vllm_classify", TEXT, True),
    ],
)
def test_the_server_s_tokens_have_one_beginning_mark(tmp_path, template, adds_bos, dialect, text, adds_marks):
    tokenizer = tiny.tokenizer(template)
    (tiny_families.adding_bos(tokenizer) if adds_bos else tokenizer).save_pretrained(tmp_path)
    assert text_sent(tmp_path, dialect) == (text, adds_marks)


def test_what_is_sent_follows_from_the_dialect_and_the_tokenizer():
    def sent(dialect, **settings):
        return sent_form(Config(url=URL, dialect=dialect, **settings), DIALECTS[dialect])

    assert sent("vllm_classify", tokenizer="t") == "tokens"
    assert sent("vllm_classify") == "messages"
    assert sent("tei_predict", tokenizer="t") == "text"
    assert sent("tei_rerank") == "pair"
    with pytest.raises(ConfigError, match="tei_rerank is not sent messages"):
        sent("tei_rerank", send="messages")
    with pytest.raises(ConfigError, match="openrlhf is sent text, which needs a tokenizer"):
        sent("openrlhf")
