import re

import pytest

from steelyard.report.page import LANGUAGES, page_strings
from steelyard.report.run_records import detail_word, failure_word

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
    assert in_chinese(detail_word("'D' is none of A, B")) == "'D' is none of A, B"
