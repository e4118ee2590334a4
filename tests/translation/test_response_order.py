"""The order of responses by the words of the bench: swapped ones are found where enough texts teach their words."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from each_value import each
from steelyard.core.numerics import generator
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.translation.passages import Passage
from steelyard.translation.response_order import ResponseOrder, _LetterGroups, _Tables, _Text, _weighted

Pair = tuple[Case, ...]
WORDS = {
    "en": "man dog house river stone bread night child garden letter window bridge winter horse apple market teacher "
    "mountain ship fire rain door king song road tree book snow wolf glass",
    "de": "mensch hund haus fluss stein brot nacht kind garten brief fenster brücke winter pferd apfel markt lehrer "
    "gebirge schiff feuer regen tür könig lied straße baum buch schnee wolf glas",
    "zh": "人 狗 房 河 石 饼 夜 童 园 信 窗 桥 冬 马 果 市 师 山 船 火 雨 门 王 歌 路 树 书 雪 狼 杯",
}


def sentence(words: list[int], language: str) -> str:
    vocabulary = WORDS[language].split()
    return ("" if language == "zh" else " ").join(vocabulary[word] for word in words) + "."


def item(number: int, texts: list[list[int]], language: str, *, is_swapped: bool = False) -> Case:
    prompt, first, second = (sentence(words, language) for words in texts)
    answers = (second, first) if is_swapped else (first, second)
    return Case(
        prompt=Prompt(id=f"p{number}", messages=(Message(role="user", content=prompt),), language=language),
        responses=tuple(Response(id=f"r{place}", text=text) for place, text in enumerate(answers, start=1)),
    )


def accused(language: str, num_items: int, swapped: set[int], *, source: str = "en", times: int = 1) -> set[int]:
    """The items of a bench of texts of three words whose responses are said to have changed places."""
    rng = generator(0, "bench of words")
    check, cases = ResponseOrder(), []
    for number in range(num_items):
        texts = [rng.permutation(30)[:3].tolist() * times for _ in range(3)]
        cases.append((item(number, texts, source), item(number, texts, language, is_swapped=number in swapped)))
        check.add(*cases[-1])
    return {number for number, pair in enumerate(cases) if list(check.findings(number, *pair))}


@each("language", ["de", "zh"])
def test_swapped_responses_are_found_by_the_words_of_the_bench_alone(language):
    swapped = {3, 50, 51, 120, 199}
    found = accused(language, 200, swapped)
    assert found & swapped == swapped
    assert found - swapped == set()


def test_words_tell_the_order_of_long_responses():
    """Texts of about 500 letters."""
    swapped = {3, 50, 99}
    assert accused("de", 100, swapped, times=30) == swapped


@each("language", ["de", "zh"])
def test_a_bench_in_order_accuses_nothing(language):
    assert accused(language, 200, set()) == set()
    assert accused(language, 70, set()) == set()


def test_a_third_of_swapped_responses_mislead_nothing():
    swapped = set(range(0, 200, 3))
    found = accused("de", 200, swapped)
    assert len(found & swapped) > 0.9 * len(swapped)
    assert len(found - swapped) <= 2


def cases_of(numbers: list[list[int]], texts: Callable[[int, str], str], order: dict[int, list[int]]) -> list[Pair]:
    """Cases of a prompt and responses, and their translations, in another order where it is given."""
    return [
        tuple(
            Case(
                prompt=Prompt(id="p", messages=(Message(role="user", content=texts(0, language)),), language=language),
                responses=tuple(
                    Response(id=f"r{place}", text=texts(answers[row], language))
                    for place, row in enumerate(rows, start=1)
                ),
            )
            for language, rows in (("en", range(len(answers))), ("de", order.get(item, range(len(answers)))))
        )
        for item, answers in enumerate(numbers)
    ]


def found_in(cases: list[Pair]) -> dict[int, list[str]]:
    """The responses that are said to have changed places, by item."""
    check = ResponseOrder()
    for pair in cases:
        check.add(*pair)
    named = {number: [each.before for each in check.findings(number, *pair)] for number, pair in enumerate(cases)}
    return {number: names for number, names in named.items() if names}


def test_names_that_both_languages_spell_alike_tell_the_order_without_a_known_word():
    rng = generator(0, "names")

    def text(number: int, language: str) -> str:
        """A name after words that tell nothing."""
        return f"{'the name is' if language == 'en' else 'der Name ist'} {chr(97 + number % 26) * 3}xo{number}"

    numbers = [rng.permutation(100_000)[:2].tolist() for _ in range(100)]
    cases = cases_of(numbers, text, {7: [1, 0], 60: [1, 0]})
    assert set(found_in(cases)) == {7, 60}


def test_of_more_responses_those_that_changed_places_are_named():
    rng = generator(0, "three")

    def text(number: int, language: str) -> str:
        return sentence([number % 30, number // 30 % 30, number // 900 % 30], language)

    numbers = [rng.integers(27_000, size=3).tolist() for _ in range(150)]
    cases = cases_of(numbers, text, {40: [2, 1, 0]})
    assert found_in(cases) == {40: ["response r1, response r3"]}


def test_predictions_are_those_of_a_regression_without_the_responses():
    """Beside the solution of the smaller regression, for a bench of six items."""
    rng = generator(0, "regression")
    groups, texts = _LetterGroups(), []
    for number in range(6):
        for place in range(3):
            words = rng.integers(30, size=3).tolist()
            pair = [Passage("", sentence(words, language), language) for language in ("en", "de")]
            letters = groups.of_source(pair[0]), groups.of(pair[1])
            texts.append(_Text(number, place, letters, (pair[0].size, pair[1].size)))
    tables = _Tables(texts)
    rows = np.array([[3 * item + 1, 3 * item + 2] for item in range(6)])
    predicted = tables.evidence(rows, np.arange(18))[:, 0]
    for pair, value in zip(rows, predicted, strict=True):
        others = np.setdiff1d(np.arange(18), pair)
        sources, targets = (
            (each @ each.T).toarray()
            for each in (_weighted([text.letters[side] for text in texts], 500) for side in (0, 1))
        )
        weights = sources[np.ix_(pair, others)] @ np.linalg.inv(sources[np.ix_(others, others)] + np.eye(16))
        fits = weights @ targets[np.ix_(others, pair)]
        assert value == pytest.approx(fits[0, 0] + fits[1, 1] - fits[0, 1] - fits[1, 0], abs=1e-5)


def test_a_finding_names_both_responses():
    texts = [[number % 30, (number + 7) % 30, (number + 11) % 30] for number in range(300)]
    check = ResponseOrder()
    cases = [
        (
            item(number, texts[3 * number : 3 * number + 3], "en"),
            item(number, texts[3 * number : 3 * number + 3], "de", is_swapped=number == 40),
        )
        for number in range(100)
    ]
    for pair in cases:
        check.add(*pair)
    (finding,) = check.findings(40, *cases[40])
    assert (finding.kind, finding.place) == ("swapped_responses", "responses")
    assert finding.before == "response r1, response r2"


def test_a_small_bench_and_one_of_a_single_language_say_nothing():
    assert accused("de", 20, {3, 5}) == set()
    assert accused("en", 200, {3, 5}) == set()


@settings(max_examples=30)
@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12), st.integers(0, 14)), max_size=8))
def test_any_responses_can_be_added(rows):
    check, cases = ResponseOrder(), []
    for left, right, number in rows:
        cases.append(
            tuple(
                Case(
                    prompt=Prompt(id="p", messages=(Message(role="user", content=text),), language=language),
                    responses=tuple(Response(id=f"r{place}", text=text * place) for place in range(number)),
                )
                for text, language in ((left, "en"), (right, "de"))
            )
        )
        check.add(*cases[-1])
    assert all(list(check.findings(number, *pair)) == [] for number, pair in enumerate(cases))


def test_many_texts_of_many_short_words_are_read_quickly():
    check = ResponseOrder()
    text = " ".join("ab"[number % 2] * (1 + number % 4) + str(number) for number in range(45))
    cases = [
        Case(
            prompt=Prompt(id="p", messages=(Message(role="user", content="x"),), language=language),
            responses=tuple(Response(id=f"r{place}", text=f"{text} {place}") for place in range(12)),
        )
        for language in ("en", "de")
    ]
    cases[1] = Case(
        prompt=cases[1].prompt,
        responses=tuple(Response(id=each.id, text=f"z {each.text}") for each in cases[1].responses),
    )
    start = time.process_time()
    for _ in range(60):
        check.add(*cases)
    list(check.findings(0, *cases))
    assert time.process_time() - start < 8.0, "seconds for 720 texts of 46 words"
