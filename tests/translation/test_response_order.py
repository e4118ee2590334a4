"""The order of responses by the words of the bench: swapped ones are found where enough texts teach their words."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from each_value import each
from steelyard.core.numerics import generator
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.translation.order_evidence import (
    ReadItem,
    ReadText,
    ReadTranslation,
    TranslatedTexts,
    letter_rows,
    smoother_of,
)
from steelyard.translation.response_order import ResponseOrder, _cross_in_all

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
                prompt=Prompt(
                    id=f"p{item}", messages=(Message(role="user", content=texts(0, language)),), language=language
                ),
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


def random_letters(num_texts: int) -> list[list[np.ndarray]]:
    """Numbers of letters of texts, of a source and three translations."""
    rng = generator(0, "letters")
    return [[np.unique(rng.integers(40, size=9)).astype(np.int32) for _ in range(num_texts)] for _ in range(4)]


def views_of(letters: list[list[np.ndarray]]) -> list[TranslatedTexts]:
    """The translations into three languages of items of a prompt and two responses."""
    texts = [[ReadText(each, len(each)) for each in of_language] for of_language in letters]
    places = [slice(start, start + 3) for start in range(0, len(texts[0]), 3)]
    names = ("de", "fr", "es")
    items = [
        ReadItem(
            texts[0][place], {name: ReadTranslation(0, list(texts[side][place])) for side, name in enumerate(names, 1)}
        )
        for place in places
    ]
    return [TranslatedTexts(items, texts[0], letter_rows(letters[0], 40), name) for name in names]


def test_predictions_are_those_of_a_regression_without_the_responses():
    """Beside the solution of the smaller regression, for a bench of six items, from the sources and from two others."""
    letters = random_letters(18)
    views = views_of(letters)
    kernels = [(each @ each.T).toarray() for each in (letter_rows(of_language, 40) for of_language in letters)]
    total = sum(view.restored for view in views) / 2
    evidence = views[0].evidence(smoother_of(kernels[0].astype(np.float32)), total, 2)
    for column, sources in enumerate((kernels[0], (kernels[2] + kernels[3]) / 2)):
        expected = []
        for start in range(0, 18, 3):
            pair = [start + 1, start + 2]
            others = np.setdiff1d(np.arange(18), pair)
            weights = sources[np.ix_(pair, others)] @ np.linalg.inv(sources[np.ix_(others, others)] + np.eye(16))
            fits = weights @ kernels[1][np.ix_(others, pair)]
            expected.append(fits[0, 0] + fits[1, 1] - fits[0, 1] - fits[1, 0])
        assert evidence[:, column] == pytest.approx(np.array(expected) / np.std(expected), abs=1e-4)


LANGUAGES = ["de", "fr", "es", "nl", "sv"]


def accused_in_languages(swapped: dict[str, set[int]], *, lacking: set[tuple[str, int]]) -> dict[str, set[int]]:
    """The accused items of each language of a bench. Each text has three words, a translation one of its own more.

    Sources have other words for two of the three. The words of a language are random letters.
    """
    rng = generator(0, "bench of languages")
    words = {name: ["".join(map(chr, rng.integers(97, 123, size=7))) for _ in range(30)] for name in ["en", *LANGUAGES]}

    def case(number: int, language: str, texts: list[list[int]], *, is_swapped: bool) -> Case:
        prompt, first, second = (" ".join(words[language][word] for word in each) for each in texts)
        answers = (second, first) if is_swapped else (first, second)
        return Case(
            prompt=Prompt(id=f"p{number}", messages=(Message(role="user", content=prompt),), language=language),
            responses=tuple(Response(id=f"r{place}", text=text) for place, text in enumerate(answers)),
        )

    check, cases = ResponseOrder(), []
    items = [[rng.permutation(30)[:3].tolist() for _ in range(3)] for _ in range(100)]
    loose = [[[each[0], *rng.permutation(30)[:2].tolist()] for each in item] for item in items]
    for language in LANGUAGES:
        for number, texts in enumerate(items):
            if (language, number) not in lacking:
                source = case(number, "en", loose[number], is_swapped=False)
                more = [[*each, *rng.permutation(30)[:1].tolist()] for each in texts]
                target = case(number, language, more, is_swapped=number in swapped.get(language, set()))
                cases.append((language, number, source, target))
                check.add(source, target)
    found = {language: set() for language in LANGUAGES}
    for place, (language, number, source, target) in enumerate(cases):
        if list(check.findings(place, source, target)):
            found[language].add(number)
    return found


def test_other_languages_tell_the_order_where_the_source_is_loose():
    """A swap accuses its language alone, also where others have swaps of their own and lack items."""
    swapped = {"de": {3, 40, 77}, "fr": {3, 12}, "es": {60}}
    lacking = {("de", number) for number in range(80, 100)} | {("sv", 40), ("nl", 3)}
    assert accused_in_languages(swapped, lacking=lacking) == {name: swapped.get(name, set()) for name in LANGUAGES}


def test_responses_that_changed_places_in_all_languages_are_crossed_in_all():
    """Those that most languages accuse, but not those that one of them accuses strongly."""
    views = views_of(random_letters(150))
    for place, view in enumerate(views):
        view.odds = np.full(len(view.pairs), 4.0)
        view.odds[[5, 20, 35]] = [-6.0, -5.0, 2.0][place]
        view.odds[8] = [-30.0, 4.0, 4.0][place]
    _cross_in_all(views)
    for view in views:
        assert set(np.flatnonzero(view.order != np.arange(150)) // 3) == {5, 20, 35}


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
    for place, (left, right, number) in enumerate(rows):
        cases.append(
            tuple(
                Case(
                    prompt=Prompt(id=f"p{place}", messages=(Message(role="user", content=text),), language=language),
                    responses=tuple(Response(id=f"r{each}", text=text * each) for each in range(number)),
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
    for number in range(60):
        check.add(*(replace(case, prompt=replace(case.prompt, id=f"p{number}")) for case in cases))
    list(check.findings(0, *cases))
    assert time.process_time() - start < 8.0, "seconds for 720 texts of 46 words"
