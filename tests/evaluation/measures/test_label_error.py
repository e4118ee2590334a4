import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evaluation_summaries import resampled_bench
from steelyard.core.types import UNKNOWN_JUDGE, Scores
from steelyard.evaluation.bench_pairs import PairValues
from steelyard.evaluation.measures.label_error import MEASURE, estimate
from steelyard.evaluation.people_answers import NO_PEOPLE, ONE_PERSON, SETTLED_ALONE, first_answers
from steelyard.evaluation.tables import word
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.label_error import TOO_FEW
from strategies import case, cases, judgment

A_FIRST = (("a",), ("b",))


def pair(id, *answers, ranking=A_FIRST, **fields):
    return case(id, "ab", answers, ranking=ranking, **fields)


def measured(bench, *, is_right=lambda at: True):
    """The label error on a bench; the model prefers response a where it is right."""
    lines = [
        Scores(prompt=each.prompt.id, scores={"a": 1.0 if is_right(at) else 0.0, "b": 0.5})
        for at, each in enumerate(bench)
    ]
    return estimate(resampled_bench(bench, lines, num_resamples=200))


def by(*names, short="a>b", **fields):
    return [judgment(short, judge=name, **fields) for name in names]


def disagreeing(number, total, **fields):
    """A bench of pairs with two answers, contradictory for some."""
    return [
        pair(f"p{at}", *by("ann"), *by("bob", short="a<b" if at < number else "a>b"), **fields) for at in range(total)
    ]


def test_a_bench_by_hand():
    # 18 of 100 pairs are contradictory: e = 0.1. Whoever made the labels of those, half of them are wrong: 0.09; of the
    # other 82, 0.01 / 0.82 are wrong: 0.01 of all.
    found = measured(disagreeing(18, 100), is_right=lambda at: at >= 30)
    assert (found.num_people, found.num_pairs, found.num_twice) == (2, 100, 100)
    assert (found.num_unanswered, found.num_tied, found.num_overruled) == (0, 0, 0)
    assert found.why is None
    assert found.label.micro.value == pytest.approx(0.1, abs=0.004)
    assert found.model.micro.value == 0.7
    assert found.distance.micro.value == pytest.approx(0.2, abs=0.004)
    assert found.distance.micro.low < found.distance.micro.value < found.distance.micro.high
    assert found.most.micro.value == pytest.approx(0.18, abs=0.004)


def test_a_prompt_without_a_label_counts_for_the_disagreement():
    bench = [
        *(pair(f"d{at}", *by("ann"), *by("bob", short="a<b"), ranking=(("a", "b"),)) for at in range(18)),
        *disagreeing(0, 82),
    ]
    found = measured(bench)
    assert (found.num_pairs, found.num_twice) == (82, 100)
    assert found.person.micro.value == pytest.approx(0.1, abs=0.004)
    assert found.label.micro.value == pytest.approx(0.01 / 0.82, abs=0.002)


def test_labels_of_one_answer_have_the_error_of_the_sample_with_two():
    bench = [*disagreeing(18, 100), *(pair(f"q{at}", *by("ann")) for at in range(300))]
    found = measured(bench)
    assert (found.num_pairs, found.num_twice) == (400, 100)
    assert found.label.micro.value == pytest.approx(0.1, abs=0.004)


def test_pairs_without_an_answer_are_counted_and_in_no_value():
    found = measured([*disagreeing(18, 100), *(pair(f"q{at}") for at in range(7))], is_right=lambda at: at < 100)
    assert (found.num_pairs, found.num_unanswered) == (100, 7)
    assert found.model.micro.value == 1.0


def test_a_category_with_few_pairs_of_two_answers_has_no_value():
    bench = [*disagreeing(18, 100, category=("code",)), *disagreeing(0, 0)]
    bench += [pair(f"q{at}", *by("ann", "bob"), category=("chat",)) for at in range(5)]
    found = measured(bench)
    assert found.label.by_category["code"].value is not None
    assert (found.label.by_category["chat"].value, found.label.by_category["chat"].why) == (None, TOO_FEW)
    (panel,) = MEASURE.panels(found)
    assert any("why_too_few" in cell for row in panel.tables[0].table.rows for cell in row)


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (by("ann"), ONE_PERSON),
        ([*by("ann"), *by("ann", short="a<b", batch="2")], NO_PEOPLE),
        ([*by("ann"), *by("ann", batch="2")], ONE_PERSON),
        (by(UNKNOWN_JUDGE, UNKNOWN_JUDGE), ONE_PERSON),
        (by("gpt", "qwen", kind="llm"), NO_PEOPLE),
        (by("ann", "bob", short="a=b"), NO_PEOPLE),
        ([*by("ann"), *by("bob", short="a=b")], ONE_PERSON),
        ([*by("ann"), *by("bob", short="a?b")], ONE_PERSON),
        ([*by("ann"), *by("ann+bob", meta={"stage": "alignment"})], ONE_PERSON),
    ],
    ids=["one", "against-oneself", "repeated", "unnamed", "models", "ties", "a-tie", "unreadable", "settled"],
)
def test_evidence_that_tells_nothing_is_named(answers, why):
    found = measured([pair(f"p{at}", *answers) for at in range(60)])
    assert found.why == why
    assert found.label is None
    assert list(MEASURE.rows(found)) == list(MEASURE.panels(found)) == list(MEASURE.sentences("m", found)) == []


def test_settled_answers_without_the_first_ones_have_no_value():
    # As an export of aligned answers has it: people agreed on 90 pairs, and the others have what they settled alone.
    settled = by("ann+bob", meta={"stage": "alignment"})
    bench = [pair(f"p{at}", *(settled if at < 10 else by("ann", "bob"))) for at in range(100)]
    found = measured(bench)
    assert (found.why, found.num_settled_alone, found.label) == (SETTLED_ALONE, 10, None)
    both = [pair(f"p{at}", *by("ann", "bob"), *(settled if at < 10 else ())) for at in range(100)]
    assert (measured(both).why, measured(both).num_settled_alone) == (None, 0)


def test_no_overlap_of_people_has_no_value():
    found = measured([pair(f"p{at}", *by("ann" if at % 2 else "bob")) for at in range(60)])
    assert (found.why, found.num_people) == (ONE_PERSON, 2)


def test_few_pairs_of_two_answers_have_no_value():
    assert measured(disagreeing(2, 19)).why == TOO_FEW


def test_a_bench_without_judgments_has_no_summary():
    assert measured([pair("p"), pair("q")]) is None


def test_labels_against_all_answers_are_counted():
    found = measured([pair(f"p{at}", *by("ann", "bob", short="a<b" if at < 10 else "a>b")) for at in range(100)])
    assert found.num_overruled == 10
    # Nobody disagrees: people are right, and these ten labels wrong.
    assert found.label.micro.value == pytest.approx(0.1, abs=0.001)
    assert found.label.micro.low < 0.09
    assert found.label.micro.high > 0.12


def test_a_judge_is_measured_too_and_a_missing_verdict_is_wrong():
    bench = disagreeing(18, 100)
    verdicts = np.where(np.arange(100) < 40, np.nan, 1.0)
    lines = [Scores(prompt=each.prompt.id, scores={"a": 0.0, "b": 0.0}) for each in bench]
    values = PairValues(verdicts, verdicts - 1)
    found = estimate(resampled_bench(bench, lines, values=values, has_scores=False, has_rewards=False))
    assert found.model.micro.value == 0.6


def test_the_sentence_has_the_three_numbers():
    (sentence,) = MEASURE.sentences("my-model", measured(disagreeing(18, 100), is_right=lambda at: at >= 30))
    assert (sentence.key, sentence.values["model"]) == ("say_label_error", "my-model")
    error, perfect = (float(sentence.values[name].rstrip("%")) for name in ("error", "perfect"))
    assert error + perfect == pytest.approx(100, abs=0.11)
    assert float(sentence.values["distance"]) == pytest.approx(perfect - 70, abs=0.11)


@pytest.mark.parametrize(
    ("distance", "said"),
    [
        (Estimate(-0.578, -0.61, 0.02, 90), ("57.8", "above", "\N{MINUS SIGN}2.0 … 61.0")),
        (Estimate(0.1, -0.02, 0.2, 90), ("10.0", "below", "\N{MINUS SIGN}2.0 … 20.0")),
        (Estimate(None, None, None, 0), ("\N{EN DASH}", "below", "\N{EN DASH} … \N{EN DASH}")),
    ],
)
def test_a_model_above_a_perfect_one_is_said_to_be_above(distance, said):
    found = measured(disagreeing(18, 100))
    found = replace(found, distance=replace(found.distance, micro=distance))
    (sentence,) = MEASURE.sentences("m", found)
    number, side, gap = said
    assert (sentence.values["distance"], sentence.values["gap"]) == (number, gap)
    assert sentence.values["side"] == word(f"{side}_perfect")


@settings(deadline=None, max_examples=20)
@given(st.lists(cases(max_responses=4), max_size=3))
def test_every_person_has_one_answer_a_pair(drawn):
    found = first_answers(dict(enumerate(drawn)))
    expected = {}
    for at, each in enumerate(drawn):
        place = {response.id: position for position, response in enumerate(each.responses)}
        answers = {}
        for own in each.judgments:
            low, high = sorted((place[own.left], place[own.right]))
            if own.kind == "human" and own.verdict != "none":
                better = {"left": place[own.left], "right": place[own.right]}.get(own.verdict)
                label = "tie" if better is None else "low" if better == low else "high"
                # Identical rows are one judgment, however the file orders left and right.
                answers.setdefault((low, high, own.judge), []).append(label)
        for (low, high, _), labels in answers.items():
            counts = {name: len({name} & set(labels)) for name in ("low", "high", "tie")}
            chosen = [name for name, number in counts.items() if number]
            if len(chosen) == 1 and chosen[0] != "tie":
                votes = expected.setdefault((at, low, high), [0, 0])
                votes[chosen[0] == "high"] += 1
    got = zip(found.case.tolist(), found.low.tolist(), found.high.tolist(), found.votes.tolist(), strict=True)
    assert {(at, low, high): votes for at, low, high, votes in got} == expected
