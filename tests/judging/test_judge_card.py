import math

import numpy as np
import pytest

from steelyard.core.types import Case, Judgment, Message, Pair, Prompt, Response
from steelyard.judging.judge_card import judge_cards, people_labels


def judgment(verdict, *, judge="people", kind="human", pair=("a", "b"), shown=None, meta=None):
    left, right = pair
    return Judgment(left=left, right=right, verdict=verdict, judge=judge, kind=kind, shown=shown, meta=meta)


def case(index, *judgments, category="chat", language="en", texts=("long answer", "short"), **fields):
    return Case(
        prompt=Prompt(
            id=f"p{index}",
            messages=(Message(role="user", content=f"q{index}"),),
            category=(category,),
            language=language,
        ),
        responses=tuple(Response(id=name, text=text) for name, text in zip("abcd", texts, strict=False)),
        judgments=judgments,
        **fields,
    )


def llm(verdict, **fields):
    return judgment(verdict, judge="llm", kind="llm", **fields)


def only(cards):
    (card,) = cards.cards
    return card


def test_agreement_and_correlation_by_hand():
    # People, judge: 4 times equal strict, once opposite, once a tie of people, once a tie of the judge, once none.
    verdicts = [
        *[("left", "left")] * 3,
        ("right", "right"),
        ("left", "right"),
        ("tie", "left"),
        ("right", "tie"),
        ("left", "none"),
    ]
    cases = [case(index, judgment(people), llm(judge)) for index, (people, judge) in enumerate(verdicts)]
    found = judge_cards(cases, cases)
    card = only(found)
    assert (found.num_prompts, found.num_pairs, card.num_prompts, card.num_unlabelled) == (8, 8, 7, 1)
    assert card.people.agreement.value == pytest.approx(4 / 7)
    assert card.people.agreement_of_strict.value == pytest.approx(4 / 5)
    # Products: four times 1, once -1; six strict labels of people on these pairs, six of the judge.
    assert card.people.correlation.value == pytest.approx(3 / 6)
    assert card.people.effective_labels.value == pytest.approx(1 / (1 - 0.25))
    assert card.people.correlation.low < 0.5 < card.people.correlation.high


def test_a_pair_written_in_the_other_order_is_the_same_pair():
    cases = [case(index, judgment("left"), llm("right", pair=("b", "a"))) for index in range(5)]
    assert only(judge_cards(cases, cases)).people.agreement.value == 1.0


def test_people_s_label_is_the_vote_then_the_ranking_then_the_pairs():
    assert people_labels(case(0, judgment("left"), judgment("left", judge="ann"), judgment("right"))) == {("a", "b"): 0}
    assert people_labels(case(0, judgment("left"), judgment("right"))) == {("a", "b"): 2}
    assert people_labels(case(0, llm("left"), ranking=(("b",), ("a",)))) == {("a", "b"): 1}
    texts = ("1", "2", "3")
    ranked = case(0, texts=texts, ranking=(("c",), ("a", "b")))
    assert people_labels(ranked) == {("a", "b"): 2, ("a", "c"): 1, ("b", "c"): 1}
    assert people_labels(case(0, pairs=(Pair(better="b", worse="a"),))) == {("a", "b"): 1}
    assert people_labels(case(0)) == {}


def test_a_judge_that_guesses_is_worth_nothing():
    random = np.random.default_rng(0)
    cases = [
        case(index, *(make("left" if random.random() < 0.5 else "right") for make in (judgment, llm)))
        for index in range(200)
    ]
    card = only(judge_cards(cases, cases))
    assert card.people.kappa.low < 0 < card.people.kappa.high
    assert card.people.correlation.low < 0 < card.people.correlation.high
    assert card.people.effective_labels.low == 1.0


def test_biases_and_flips_by_hand():
    both = {"orders": [{"shown": ["a", "b"], "outcome": "left"}, {"shown": ["b", "a"], "outcome": "right"}]}
    cases = [
        # Always the first shown: left where a is first, right where b is.
        case(0, judgment("left"), llm("tie", meta=both | {"inconsistent": True})),
        case(1, judgment("right"), llm("left", shown=("a", "b")), llm("left", shown=("b", "a"))),
        case(
            2,
            judgment("left"),
            llm("left", shown=("a", "b")),
            llm("right", shown=("a", "b")),
            llm("left", shown=("a", "b"), meta={"seconds": 2}),
        ),
    ]
    card = only(judge_cards(cases, cases))
    # Strict replies for the first shown: 2 of 2, 1 of 2, 2 of 3.
    assert (card.first_preferred.value, card.first_preferred.n) == (pytest.approx(5 / 7), 7)
    assert (card.order_flips.value, card.order_flips.n) == (pytest.approx(1 / 2), 2)
    assert (card.repeat_flips.value, card.repeat_flips.n) == (1.0, 1)
    # Ordered by both: the second and the third pair. The judge takes the longer one twice, people once.
    assert (card.longer_preferred.value, card.longer_preferred.n) == (1.0, 2)
    assert card.longer_than_people.value == pytest.approx(0.5)


def test_each_judge_has_a_card_and_the_most_correlated_is_first():
    cases = [
        case(
            index,
            judgment("left" if index % 2 else "right"),
            llm("left"),
            judgment("left" if index % 2 else "right", judge="good", kind="llm"),
        )
        for index in range(40)
    ]
    found = judge_cards(cases, cases)
    assert [card.judge for card in found.cards] == ["good", "llm"]
    assert math.isclose(found.cards[0].people.correlation.value, 1.0)
    assert found.cards[1].people.correlation.value == 0.0
    assert found.cards[1].people.effective_labels.value == 1.0


def test_categories_and_languages_have_values_where_there_are_several():
    cases = [
        case(
            index,
            judgment("left"),
            llm("left" if index % 4 else "right"),
            category=("chat", "code")[index % 2],
            language=("en", "zh")[index % 2],
        )
        for index in range(40)
    ]
    card = only(judge_cards(cases, cases))
    assert card.by_category["chat"].agreement.value == pytest.approx(0.5)
    assert card.by_category["code"].agreement.value == 1.0
    assert list(card.by_language) == ["en", "zh"]
    assert only(judge_cards(cases[::2], cases)).by_category == {}


def test_spellings_of_a_category_and_of_a_language_are_one_row():
    cases = [
        case(
            index,
            judgment("left"),
            llm("left" if index % 4 else "right"),
            category=("Chat", "chat ", "code", "Chat")[index % 4],
            language=("zh", "zho_Hans", "en", "zh")[index % 4],
        )
        for index in range(40)
    ]
    card = only(judge_cards(cases, cases))
    assert {name: part.num_pairs for name, part in card.by_category.items()} == {"Chat": 30, "code": 10}
    assert {name: part.num_pairs for name, part in card.by_language.items()} == {"en": 10, "zh": 30}


def test_other_people_s_cases_are_joined_by_id_and_language():
    judged = [case(index, llm("left")) for index in range(10)]
    people = [case(index, ranking=(("a",), ("b",))) for index in range(5)]
    assert only(judge_cards(judged, people)).people.num_pairs == 5
    other = [case(index, ranking=(("a",), ("b",)), language="zh") for index in range(5)]
    assert judge_cards(judged, other).cards == ()


def test_prompts_of_one_text_are_one_unit():
    together = [case(0, judgment("left"), llm("left" if index else "right")) for index in range(2)]
    twins = [
        Case(
            prompt=Prompt(id=f"x{index}", messages=each.prompt.messages),
            responses=each.responses,
            judgments=each.judgments,
        )
        for index, each in enumerate(together)
    ]
    # Both pairs in one unit: no resample differs from the data, and there is no evidence for an interval.
    card = only(judge_cards(twins, twins))
    assert card.people.agreement.value == 0.5
    assert card.people.agreement.high - card.people.agreement.low > 0.9


def test_verdicts_in_unknown_orders_are_no_repeats():
    cases = [case(index, judgment("left"), llm("left"), llm("right")) for index in range(3)]
    assert only(judge_cards(cases, cases)).repeat_flips.n == 0


def test_a_repeated_row_is_one_vote_and_a_reply_of_the_judge():
    ann, bob, cem = judgment("left", judge="ann"), judgment("right", judge="bob"), judgment("right", judge="cem")
    assert people_labels(case(0, ann, ann, ann, bob, cem)) == {("a", "b"): 1}
    # Three replies left, one right: as rows of one judge without ids they are one vote each, and tie.
    again = [llm("left", shown=("a", "b"))] * 3
    cases = [case(index, ann, *again, llm("right", shown=("a", "b"))) for index in range(4)]
    card = only(judge_cards(cases, cases))
    assert card.people.agreement.value == 0.0
    # Repeats that agree stay in the share of pairs whose repeats differ: half of them, not all.
    steady = [case(index, ann, *again) for index in range(4, 8)]
    card = only(judge_cards([*cases, *steady], [*cases, *steady]))
    assert (card.repeat_flips.value, card.repeat_flips.n) == (0.5, 8)
