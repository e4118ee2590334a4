"""The fast path of cleaning gives the figures of the plain definition: on the built-in corpus and on any text."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plain_cleaning import figures, plain_hashes
from steelyard.core.types import Response
from steelyard.responses.faults import window_hashes
from steelyard.stages.simulate import Config, simulate

PIECES = [
    "I'm sorry, but I can't", "抱歉，我无法回答", "Üzgünüm, yardımcı olamam", "ſorry", "İ", "not ok", "I am ChatGPT,",
    "developed by OpenAI", "我是通义千问", "by", "a@b.org", "www.a@b.org/c", "https://a.org/b", "`code`", "```\nx\n```",
    "$x$", "\\(y\\)", '"quoted"', "“", "”", "\uff08", "\uff09", "(", ")", "]", "Ã¤Ã¶", "锟斤拷", "&amp;", "\\u00e4",
    "▁the", "\ufffd", "\ud83d", "\n", " ", "word ", "word ", "词语", "词语",
]  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=12)), max_size=25).map("".join)


@settings(max_examples=150)
@given(texts, texts, st.sampled_from(["en", "zh", "tr", "el", None, "xx"]))
def test_any_text_has_the_figures_of_the_plain_definition(text, prompt, language):
    fast, plain = figures(Response(id="a", text=text), prompt=prompt, language=language)
    assert fast == plain


@given(st.text(min_size=40, max_size=90), st.integers(1, 40))
def test_hashes_by_doubling_are_the_polynomial_of_each_window(text, size):
    points = np.array([ord(character) for character in text], np.uint32)
    assert window_hashes(points, size).tolist() == plain_hashes(text, size)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    out = tmp_path_factory.mktemp("kinds") / "out"
    simulate(out, Config())
    return [json.loads(line) for line in (out / "kinds.jsonl").read_text(encoding="utf-8").splitlines()]


def test_every_kind_of_worse_answer_has_the_figures_of_the_plain_definition(kinds):
    num_compared = 0
    for case in kinds:
        prompt = "\n".join(turn["content"] for turn in case["prompt"]["messages"])
        for row in case["responses"]:
            fast, plain = figures(
                Response(id="a", text=row["text"]), prompt=prompt, language=case["prompt"]["language"]
            )
            assert fast == plain
            num_compared += 1
    assert num_compared > 500
