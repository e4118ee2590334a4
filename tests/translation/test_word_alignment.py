"""The order of responses by the words of the bench: swapped ones are found where enough texts teach their words."""

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from each_value import each
from steelyard.core.numerics import generator
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.translation.word_alignment import ResponseOrder

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


def accused(language: str, num_items: int, swapped: set[int], *, source: str = "en") -> set[int]:
    """The items of a bench of three-word texts whose responses are said to have changed places."""
    rng = generator(0, "bench of words")
    check, cases = ResponseOrder(), []
    for number in range(num_items):
        texts = [rng.permutation(30)[:3].tolist() for _ in range(3)]
        cases.append((item(number, texts, source), item(number, texts, language, is_swapped=number in swapped)))
        check.add(*cases[-1])
    return {number for number, pair in enumerate(cases) if list(check.findings(number, *pair))}


@each("language", ["de", "zh"])
def test_swapped_responses_are_found_by_the_words_of_the_bench_alone(language):
    swapped = {3, 50, 51, 120, 199}
    found = accused(language, 200, swapped)
    assert found & swapped == swapped
    assert found - swapped == set()


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


def test_texts_of_many_short_words_are_read_in_time_linear_in_their_number():
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
