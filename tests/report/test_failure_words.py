import re
from pathlib import Path

import pytest

from steelyard.judging import published_verdicts, reply_parsing
from steelyard.report.missing_verdicts import detail_word, failure_word, no_verdict_word
from steelyard.report.page import LANGUAGES, page_strings

ENGLISH = re.compile(r"[a-z]{3}")


def in_chinese(text):
    assert LANGUAGES[1] == "zh"
    return page_strings().translate(text, "zh")


@pytest.mark.parametrize(
    "reason", ["timeout", "unreachable", "too_large", "too_long", "malformed", "empty", "http_503"]
)
def test_reasons_of_failed_requests_are_chinese_on_chinese_pages(reason):
    assert not ENGLISH.search(in_chinese(failure_word(reason)))


def test_a_status_keeps_its_number():
    assert in_chinese(failure_word("http_503")).endswith(" 503")
    assert page_strings().translate(failure_word("http_503"), "en") == "the server answered 503"


@pytest.mark.parametrize(
    ("detail", "kept"),
    [
        ("the labels have 0.05 of the probability", "0.05"),
        ("at 64 tokens", "64"),
        ("several verdicts: A, B", "A, B"),
        ("no verdict", ""),
        ("the verdict is someone else's", ""),
    ],
)
def test_why_a_reply_has_no_verdict_is_chinese_with_its_numbers(detail, kept):
    shown = in_chinese(detail_word(detail))
    assert kept in shown
    assert not ENGLISH.search(shown)


def test_a_reason_without_a_word_stays_as_it_is():
    assert in_chinese(failure_word("local_fault")) == "local_fault"
    for reason in ("both look wrong: see notes", "no time"):  # a person's
        assert no_verdict_word(reason) == reason


def test_every_reason_of_the_parsers_is_chinese_on_chinese_pages():
    """Their texts are those of the source: a constant, or one with a number, a label or several of them in it."""
    texts = set()
    for module in (reply_parsing, published_verdicts):
        source = Path(module.__file__).read_text(encoding="utf-8")
        for pattern in (r'ParsedReply\(\s*None, f?"(.*?)"\[?', r'detail="(.*?)"', r'^\s+return f?"(.*?)"(?: if|$)'):
            texts |= set(re.findall(pattern, source, re.MULTILINE))
        texts |= {text for line in re.findall(r"^\s+problem = (.*)$", source, re.MULTILINE) for text in quoted(line)}
    assert {"a verdict of another form", "a tie, and none is offered", "thinking without an end"} <= texts
    texts |= {reply_parsing.NO_CODE, "declines in words", "content filter: 1", "http_400: 2", "too_long: 3"}
    for text in texts - {""}:
        detail = re.sub(r"\{only.*?\}", "'D'", re.sub(r"\{sum.*?\}", "0.05", text))
        detail = re.sub(r"\{.*?\}", "A, B", detail)
        assert not ENGLISH.search(in_chinese(no_verdict_word(f"unparsed: {detail}"))), detail


def quoted(line):
    return re.findall(r'f?"(.*?)"', line)
