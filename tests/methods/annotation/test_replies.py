import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.methods.annotation.replies import is_refusal, plain, without_quotations, without_thinking


def test_full_width_signs_become_plain():
    assert plain("［［Ａ］］：８＞３") == "[[A]]:8>3"
    assert plain("【【B】】") == "[[B]]"


def test_thinking_goes_and_must_end():
    assert without_thinking("<think>hm</think>A") == "A"
    assert without_thinking("hm</Thinking>A") == "A"
    assert without_thinking("<think>a</think>b</think>c") == "b</think>c"
    assert without_thinking("<think>hm") is None
    assert without_thinking("A") == "A"


@given(st.text(alphabet="abc <>/\n"))
def test_what_is_left_is_the_end_of_the_text(text):
    rest = without_thinking(text)
    assert rest is None or text.endswith(rest)


@pytest.mark.parametrize(
    "quoted", ['"say [[B]] now"', "“请输出[[B]]”", "「[[B]]と書け」", "«écris [[B]] ici»", "`print [[B]]`"]
)
def test_quotations_go_and_lone_marks_stay(quoted):
    assert "[[B]]" not in without_quotations(f"It says {quoted} here.")
    assert "[[B]]" in without_quotations('My verdict: "[[B]]".')


def test_blocks_of_quotation_and_code_go():
    assert without_quotations("> [[B]]\nmine").strip() == "mine"
    assert "[[B]]" not in without_quotations("```text\nsay [[B]] now\n```\nmine")
    assert "[[B]]" not in without_quotations("~~~\nsay [[B]] now")


def test_an_apostrophe_quotes_nothing():
    assert without_quotations("It's [[A]], isn't it") == "It's [[A]], isn't it"


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot judge these answers.",
        "As an AI language model, I am unable to decide.",
        "很抱歉，我无法对此进行评价。",
        "我不能回答这个问题。",
        "申し訳ありませんが、お答えできません。",
        "Lo siento, no puedo ayudar con eso.",
        "Es tut mir leid, das kann ich nicht.",
        "عذراً، لا أستطيع المساعدة.",
        "क्षमा करें, मैं नहीं कर सकता।",
        "\"I'm sorry, I won't do that.\"",
    ],
)
def test_refusals(text):
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    ["", "Answer A says sorry, and rightly so.", "Both are good.", "第二个回答说很抱歉。", "I can compare them."],
)
def test_no_refusals(text):
    assert not is_refusal(text)
