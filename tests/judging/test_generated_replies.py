"""Replies of equal shapes in 24 languages: those with a verdict are read at equal rates, and none is misread."""

from collections import Counter

import pytest

from each_value import each
from generated_replies import FIVE, PHRASES, TIED, generated_replies
from steelyard.judging.reply_parsing import ParsedReply, read_choice, read_ranking, read_rating

AB = ("A", "B")


def parse(reply):
    """Return the verdict that the parsers read."""
    if reply.task == "rating":
        return read_rating(reply.text).value
    if reply.task == "ranking":
        reading = read_ranking(reply.text, tuple(FIVE))
        return None if isinstance(reading, ParsedReply) else reading
    if reply.task == "tied":
        return read_choice(reply.text, reply.form, TIED, tie="C").value
    return read_choice(reply.text, reply.form, AB).value


def compare(languages):
    """Return the share of verdicts that are read, by language, and the replies that are misread."""
    read, whole, misread = Counter(), Counter(), []
    for reply in generated_replies():
        if reply.language in languages:
            value = parse(reply)
            misread += [] if value in (None, reply.truth) else [(reply, value)]
            whole[reply.language] += reply.truth is not None
            read[reply.language] += reply.truth is not None and value == reply.truth
    return {language: read[language] / number for language, number in whole.items()}, misread


@each("language", ["en", "he", "zh"])
def test_no_reply_is_misread_and_nearly_all_verdicts_are_read(language):
    shares, misread = compare({language})
    assert misread == []
    assert shares[language] >= 0.97


@pytest.mark.slow
def test_verdicts_are_read_at_equal_rates_in_all_languages():
    shares, misread = compare(set(PHRASES))
    assert len(shares) == 24
    assert misread == []
    assert max(shares.values()) - min(shares.values()) <= 0.03, shares


@each(
    ("text", "label"),
    [
        ("Я выбираю Б", "B"),
        ("Я выбираю А", "A"),
        ("Ответ В лучше", "B"),  # the look-alike of B: only two answers are labelled
        ("А лучше B", None),  # "and": a word
        ("В целом, хорошо.", None),
        ("А почему?", None),
        ("תשובה ב' טובה יותר", "B"),
        ("אני בוחר ב-ב", "B"),
        ("나는 좋습니다", None),
        ("답변은 다 좋습니다", None),
        ("답변 가운데 B가 더 좋습니다", None),
        ("我选乙", "B"),
        ("我选乙醇", None),
        ("甲醇更好", None),
        ("甲还是乙", None),
        ("คำตอบก็ดีกว่า", None),
        ("The verdict is B with 80% confidence", "B"),
        ("Accuracy: A: 8, B: 7\nStyle: A: 6, B: 9", None),
        ("A: 1, B: 2", None),  # scores or places
        ("A: 8 errors, B: 7 errors", None),
        ("8/10 vs 7/10", None),
    ],
)
def test_letters_of_other_scripts_and_scores_are_verdicts_only_where_they_name_answers(text, label):
    assert read_choice(text, "letter", AB).value == label


@each("label", [("В", None), ("Б", "B"), ("Г", "D"), ("А", "A"), ("丙", "C"), ("ג", "C")])
def test_a_letter_that_may_be_two_labels_is_none_of_them(label):
    name, value = label
    assert read_choice(f"[[{name}]]", "brackets", ("A", "B", "C", "D")).value == value
