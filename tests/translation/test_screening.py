import time
import tomllib
from pathlib import Path

import pytest

from each_value import each
from steelyard.core.comparison import Reply
from steelyard.translation.screening import (
    LANGUAGE_BOUND_CLASSES,
    find_language_bound,
    language_bound_question,
    read_language_bound_reply,
)

PROMPTS = tomllib.loads(Path(__file__).with_name("language_bound_prompts.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("reason", LANGUAGE_BOUND_CLASSES)
def test_most_of_our_own_prompts_of_a_class_are_found(reason):
    finds = [find_language_bound(text, "en") for text in PROMPTS[reason]]
    assert len(finds) == 40
    assert sum(find is not None for find in finds) >= 36
    assert sum(find is not None and find.reason == reason for find in finds) >= 36


def test_similar_prompts_that_can_be_translated_stay():
    assert [text for text in PROMPTS["translatable"] if find_language_bound(text, "en")] == []


@each(
    ("text", "reason"),
    [
        ("Generate two rhymes for the following word. Moon", "lexemes"),
        ("Make the text more grammatically correct. This is the second time, and the vibes were nice.", "grammar"),
        ("Define a new language with words that mix numbers and letters, such as 'XU4ma'", "characters"),
        ("Which Ghostscript option sets the resolution?", "software"),
    ],
)
def test_the_classes_of_the_paper_are_found(text, reason):
    assert find_language_bound(text, "en").reason == reason


@each(
    "text",
    [
        "Write a Python function that counts the vowels of a string.",
        "Implement an algorithm that checks whether a word is a palindrome.",
        "```\ndef reverse(words): ...\n```\nWhy does it not reverse the letters of the words?",
    ],
)
def test_programs_about_letters_and_words_can_be_translated(text):
    assert find_language_bound(text, "en") is None


@each("language", ["zh", "de", "he", "pt-BR", "zho_Hans"])
def test_prompts_in_other_languages_have_no_rules(language):
    assert find_language_bound("Spell 'rhythm' backwards.", language) is None


@each("language", ["en", "eng_Latn", "en-GB", None])
def test_an_excerpt_shows_the_match_between_ellipses_where_it_is_cut(language):
    text = f"{'x ' * 100}What rhymes with orange? {'y ' * 100}"
    find = find_language_bound(text, language)
    assert find.reason == "lexemes"
    assert "What rhymes with orange?" in find.excerpt
    assert find.excerpt.startswith("…")
    assert find.excerpt.endswith("…")
    assert len(find.excerpt) < 140
    assert find_language_bound("What rhymes?", language).excerpt == "What rhymes?"


@each(
    "unit",
    [
        "a",
        " ",
        "correct the following this these ",
        "a.b.c(",
        "use 'aaa ",
        "letters in the ",
        "Excel ",
        "made-up new ",
        "你",
    ],
)
def test_time_is_linear_in_the_length_of_a_text(unit):
    def seconds(length):
        text = (unit * (length // len(unit) + 1))[:length]
        start = time.thread_time()
        find_language_bound(text, "en")
        return time.thread_time() - start

    seconds(1000)  # compiles the rules
    short = min(seconds(3_000) for _ in range(3))
    # Eight times the text: quadratic time would be 64 times as long. The garbage collector does not run every time.
    assert min(seconds(24_000) for _ in range(3)) < 30 * short + 0.05


def test_the_question_holds_the_prompt_and_asks_for_one_of_the_classes():
    question = language_bound_question(["你好 {x}", "And now?"], max_tokens=7)
    system, user = (message.content for message in question.messages)
    assert "你好 {x}\n\nAnd now?" in user
    for name in LANGUAGE_BOUND_CLASSES:
        assert name.upper() in system
    assert question.max_tokens == 7


@each(
    ("text", "answer"),
    [
        ("GRAMMAR", "grammar"),
        ("The answer is: lexemes.", "lexemes"),
        ("TRANSLATABLE", "translatable"),
        ("CHARACTERS or LEXEMES", None),
        ("I cannot say", None),
        ("", None),
        (None, None),
    ],
)
def test_a_reply_names_one_class_or_is_unparsed(text, answer):
    assert read_language_bound_reply(Reply(request="r", text=text)) == answer
    assert read_language_bound_reply(Reply(request="r", text=text, failure="timeout")) is None
