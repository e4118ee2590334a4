"""Replies of equal shapes in 24 languages: those with a verdict are read at equal rates, and none is misread."""

from collections import Counter

import pytest

from each_value import each
from generated_replies import FIVE, PHRASES, TIED, generated_replies
from steelyard.core.comparison import Reply
from steelyard.judging.reply_parsing import ParsedReply, VerdictOrigin, read_choice, read_ranking, read_rating
from steelyard.plugins.judges.tasks import parse_choice

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
        ("A - 40%, B - 60%", "B"),
        ("A (7/10) vs. B (8/10)", "B"),
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


@each("language", PHRASES)
def test_words_of_a_tie_are_the_tie_only_where_one_is_offered(language):
    for text in (PHRASES[language]["tie"], f"{PHRASES[language]['both']}\n{PHRASES[language]['equal']}."):
        reply = Reply(request="r", text=text)
        assert parse_choice(reply, "letter", TIED, num_shown=2).place == 2, text
        two, three = (parse_choice(reply, "letter", TIED[:number], num_shown=number) for number in (2, 3))
        assert (two.place, two.detail) == (three.place, three.detail) == (None, "a tie, and none is offered"), text


@each(
    ("text", "label"),
    [
        ("[[B]] because the other one is not sure of the year", "B"),
        ("[[B]]\nAnswer A is not sure of the year.", "B"),
        ("I cannot decide easily, but [[B]]", "B"),
        ("[[B]]. Or either one.", None),
        ("[[B]]\nA long reason.\nStill, I cannot decide.", None),
    ],
)
def test_a_mark_is_withdrawn_by_the_judges_own_indecision_behind_it(text, label):
    assert read_choice(text, "brackets", AB).value == label


def test_another_key_is_a_verdict_unless_a_response_holds_one_or_the_key_is_there():
    assert read_choice('{"winner": "B"}', "json", AB).value == "B"
    assert read_choice('{"winner": "B"}', "json", AB, VerdictOrigin(is_contested=True)).value is None
    assert read_choice('{"answer": "A"}\n{"verdict": "B"}', "json", AB).value == "B"
