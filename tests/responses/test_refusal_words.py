"""The words that spare most answers the search for refusals: no pattern can match without one of its language's."""

import re
import tomllib
from importlib.resources import files

from each_value import each
from steelyard.responses.phrases import UNUSUAL_CASE

TABLE = tomllib.loads(files("steelyard").joinpath("data/cleaning.toml").read_text(encoding="utf-8"))
PARSER = re._parser  # the tree of a pattern, from which the words follow for every text
NAMES = re._constants
BROKEN = "\0"


def texts_without(pattern, beginnings, words):
    """Return how the texts can end that a pattern matches, after these beginnings, without any of the words.

    A text is its last literal characters; `BROKEN` stands for characters that may be anything.
    """
    for operation, value in pattern:
        if operation is NAMES.LITERAL:
            beginnings = {text + chr(value) for text in beginnings}
        elif operation is NAMES.SUBPATTERN:
            beginnings = texts_without(value[3], beginnings, words)
        elif operation is NAMES.BRANCH:
            beginnings = set().union(*(texts_without(branch, beginnings, words) for branch in value[1]))
        elif operation in (NAMES.MAX_REPEAT, NAMES.MIN_REPEAT):
            least, most, repeated = value
            once = texts_without(repeated, beginnings, words)
            broken = {text + BROKEN for text in once} if most > 1 else once
            beginnings = broken if least else beginnings | broken
        elif operation not in (NAMES.AT, NAMES.ASSERT, NAMES.ASSERT_NOT):
            beginnings = {text + BROKEN for text in beginnings}
        beginnings = {text[-40:] for text in beginnings if not any(word in text for word in words)}
    return beginnings


@each("language", TABLE["refusals"])
def test_no_refusal_is_without_one_of_the_words(language):
    words = TABLE["refusal_words"][language]
    assert words == [word.lower() for word in words]
    for pattern in TABLE["refusals"][language]:
        assert texts_without(PARSER.parse(pattern), {BROKEN}, words) == set(), pattern


def test_the_derivation_finds_what_a_pattern_can_match():
    parse = PARSER.parse
    assert texts_without(parse("(?:not|never) ok"), {BROKEN}, [" ok"]) == set()
    assert texts_without(parse("(?:not|never) ok"), {BROKEN}, ["not ok"]) == {f"{BROKEN}never ok"}
    assert texts_without(parse("very? ok"), {BROKEN}, ["very"]) == {f"{BROKEN}ver ok"}
    assert texts_without(parse("no.*t"), {BROKEN}, ["not"]) != set()
    assert texts_without(parse("(?:no)+t"), {BROKEN}, ["not"]) != set()


def test_letters_match_others_of_their_lower_case_alone():
    letters = {letter for words in TABLE["refusal_words"].values() for word in words for letter in word}
    everything = "".join(chr(point) for point in range(0x110000))
    similar = re.findall(f"[{re.escape(''.join(letters))}]", everything, re.IGNORECASE)
    assert len(similar) > len(letters)
    for letter in letters:
        for other in re.findall(re.escape(letter), "".join(similar), re.IGNORECASE):
            assert other.lower() == letter or UNUSUAL_CASE.match(other), (letter, other)
