"""What every kind of tasks has to do, and what agreement means in each."""

from itertools import combinations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from each_value import each
from steelyard.annotation.agreement import count_agreement, disputed_points
from steelyard.annotation.answers import Origin, TaskAnswer
from steelyard.annotation.questions import shared_marks
from steelyard.annotation.task_kinds import TaskRules, kind_named, kind_names
from steelyard.core.errors import ConfigError
from steelyard.workbench.pipeline.projects import ProjectSettings
from steelyard.workbench.pipeline.question_words import catalogues_of
from task_kind_cases import cases_for, rules_for, simulated

CATALOGUES = catalogues_of(ProjectSettings())
ORIGIN = Origin("someone", "1-1", (), "b", {"stage": "annotation"})
PAIRWISE = kind_named("pairwise")


@each("name", kind_names())
@each("seed", range(8))
def test_an_answer_that_is_complete_is_accepted_and_agrees_with_itself(name, seed):
    kind = kind_named(name)
    shown, answer = simulated(name, CATALOGUES, seed=seed, place=seed % 4)
    assert kind.misfits(answer, shown, CATALOGUES) == ()
    assert kind.contradictions(answer, tuple(shown)) == ()
    counts = count_agreement(tuple(shown), (answer, answer), kind)
    assert counts.num_same == counts.num_judged > 0
    assert disputed_points(tuple(shown), (answer, answer), kind) == ()
    # What is stored is what was entered.
    assert msgspec.convert(msgspec.to_builtins(answer), TaskAnswer) == answer


@pytest.mark.parametrize("name", kind_names())
@given(first=st.integers(0, 50), second=st.integers(0, 50))
def test_agreement_does_not_depend_on_who_is_first(name, first, second):
    kind = kind_named(name)
    shown, mine = simulated(name, CATALOGUES, seed=first)
    _, theirs = simulated(name, CATALOGUES, seed=second)
    ids = tuple(shown)
    assert count_agreement(ids, (mine, theirs), kind) == count_agreement(ids, (theirs, mine), kind)
    disputed = set(disputed_points(ids, (mine, theirs), kind))
    assert disputed == set(disputed_points(ids, (theirs, mine), kind))
    counts = count_agreement(ids, (mine, theirs), kind)
    assert len(disputed) >= counts.num_judged - counts.num_same


@pytest.mark.parametrize("name", kind_names())
def test_nothing_entered_is_not_complete_unless_only_marks_are_asked_for(name):
    kind = kind_named(name)
    shown, _ = simulated(name, CATALOGUES)
    open_points = kind.contradictions(TaskAnswer(), tuple(shown))
    assert bool(open_points) == (name != "span_marking")
    assert kind.contradictions(TaskAnswer(cannot_judge="why"), tuple(shown)) == ()
    assert kind.points(TaskAnswer(cannot_judge="why"), tuple(shown)) == {}


@pytest.mark.parametrize("name", kind_names())
def test_what_no_page_sends_is_refused(name):
    kind = kind_named(name)
    shown, answer = simulated(name, CATALOGUES)
    replace = msgspec.structs.replace
    wrong = [
        replace(answer, entries={**answer.entries, "unknown": "x"}) if name != "triple" else None,
        replace(answer, scores={**answer.scores, "nobody": 3}),
        replace(answer, spans={"nobody": ((0, 1, "other", None),)}),
        replace(answer, ranking=(*answer.ranking, ("nobody",))),
        replace(answer, discarded={"nobody": "garbled"}),
    ]
    for refused in filter(None, wrong):
        assert kind.misfits(refused, shown, CATALOGUES), refused


@pytest.mark.parametrize("name", kind_names())
def test_every_case_of_a_kind_gets_tasks_and_what_people_enter_is_exported(name):
    kind = kind_named(name)
    for case in cases_for(name):
        design = kind.design(case, rules_for(name), seed=0)
        assert design
        assert {response for task in design for response in task} <= {each.id for each in case.responses}
    shown, answer = simulated(name, CATALOGUES)
    origin = ORIGIN._replace(shown=tuple(shown))
    judgments, ratings = kind.judgments(answer, origin), kind.ratings(answer, origin)
    case = kind.revise(cases_for(name)[0], answer, origin)
    assert judgments or ratings or case != cases_for(name)[0]
    for row in (*judgments, *ratings):
        assert row.task == "1-1"
        assert row.meta["stage"] == "annotation"


def ranked(*tiers, **fields):
    return TaskAnswer(ranking=tuple(tuple(tier) for tier in tiers), **fields)


@pytest.mark.parametrize(
    ("first", "second", "counts"),
    [
        (ranked("a", "b"), ranked("a", "b"), (1, 1)),
        (ranked("a", "b"), ranked("b", "a"), (0, 1)),
        (ranked("ab"), ranked("a", "b"), (0, 1)),
        (ranked("ab"), ranked("ba"), (1, 1)),
        (ranked(discarded={"a": "garbled"}), ranked("a", "b"), (0, 1)),
        (ranked(discarded={"a": "garbled"}), ranked(discarded={"b": "empty"}), (0, 0)),
        (TaskAnswer(cannot_judge="no"), ranked("a", "b"), (0, 0)),
        # Marks are no part of the agreement.
        (ranked("a", "b", spans={"a": ((0, 1, "other", None),)}), ranked("a", "b"), (1, 1)),
    ],
)
def test_agreement_of_a_pair(first, second, counts):
    assert tuple(count_agreement(("a", "b"), (first, second), PAIRWISE)) == counts


def test_pairs_cover_every_two_responses_once():
    case = cases_for("baseline", 1)[0]
    assert set(PAIRWISE.design(case, TaskRules(), seed=0)) == set(combinations(("r0", "r1", "r2"), 2))
    alone = msgspec.structs.replace(case, responses=case.responses[:1])
    assert PAIRWISE.design(alone, TaskRules(), seed=0) is None


def test_pairs_with_a_discarded_response_retire_and_nothing_is_added():
    plan = PAIRWISE.replan([("a", "b"), ("a", "c"), ("b", "c")], {"b"})
    assert (plan.staying, plan.retiring, plan.added, plan.remaining) == ((1,), (0, 2), (), ("a", "c"))


def test_a_pair_has_no_scores_and_no_order_of_what_was_discarded():
    shown = {"a": "x", "b": "y"}
    for wrong in (
        ranked("a", "b", scores={"a": 3}),
        ranked("a", "a"),
        ranked("b", discarded={"a": "garbled"}),
        ranked("a", "b", entries={"better": "first"}),
    ):
        assert PAIRWISE.misfits(wrong, shown, {})
    assert PAIRWISE.contradictions(ranked("a"), ("a", "b"))


def test_marks_are_shared_by_their_characters():
    first, second = ((0, 10, "x", "major"),), ((5, 15, "y", "major"),)
    assert shared_marks(first, second, with_severity=True) == pytest.approx(0.5)
    assert shared_marks(first, ((5, 15, "x", "minor"),), with_severity=True) == 0
    assert shared_marks(first, ((5, 15, "x", "minor"),), with_severity=False) == pytest.approx(0.5)
    assert shared_marks((), (), with_severity=True) == 1
    assert shared_marks(first, (), with_severity=True) == 0
    # Overlapping marks of one person count once.
    assert shared_marks((*first, *first), first, with_severity=True) == 1


def test_an_unknown_kind_names_those_that_exist():
    from steelyard.core.config import resolve_config

    with pytest.raises(ConfigError, match="pairwise"):
        resolve_config(TaskRules, {"kind": "pairwize"}, where="x")


def entries(**values):
    return TaskAnswer(entries=values)


REVIEW = kind_named("prompt_review")
KEPT = {"decision": "keep", "category": "code", "difficulty": "easy", "scenario": "work"}


@pytest.mark.parametrize(
    ("first", "second", "counts"),
    [
        (entries(**KEPT), entries(**KEPT), (4, 4)),
        (entries(**KEPT), entries(**{**KEPT, "category": "mathematics"}), (3, 4)),
        # A revised text is the same if its words are.
        (
            entries(**{**KEPT, "decision": "revise", "revised_text": "Why  so?"}),
            entries(**{**KEPT, "decision": "revise", "revised_text": "Why so?\n"}),
            (5, 5),
        ),
        # Who drops does not categorise: what only one says is no point of both, and still is to be aligned.
        (entries(**KEPT), entries(decision="drop", drop_reason="unsafe"), (0, 1)),
    ],
)
def test_agreement_of_prompt_reviews(first, second, counts):
    assert tuple(count_agreement((), (first, second), REVIEW)) == counts


def test_a_reviewed_prompt_is_exported_with_what_it_was():
    case = cases_for("prompt_review", 1)[0]
    revised = entries(**{**KEPT, "decision": "revise", "category": "mathematics/algebra", "revised_text": "Solve x."})
    after = REVIEW.revise(case, revised, ORIGIN)
    assert after.prompt.category == ("mathematics", "algebra")
    assert after.prompt.messages[-1].content == "Solve x."
    record = after.meta["prompt_review"]
    assert record["before"] == {"category": [], "text": case.prompt.messages[-1].content}
    assert (record["by"], record["task"], record["stage"]) == ("someone", "1-1", "annotation")
    assert (record["difficulty"], record["scenario"]) == ("easy", "work")
    assert REVIEW.revise(case, entries(decision="drop", drop_reason="unsafe"), ORIGIN) is None
    assert REVIEW.revise(case, TaskAnswer(cannot_judge="no"), ORIGIN) == case


def test_a_baseline_is_found_by_id_or_author_and_shown_last():
    kind, case = kind_named("baseline"), cases_for("baseline", 1)[0]
    design = (("r0", "r1"), ("r2", "r1"))
    assert kind.design(case, TaskRules(baseline="r1"), seed=0) == design
    assert kind.design(case, TaskRules(baseline="model 1"), seed=0) == design
    assert kind.design(case, TaskRules(), seed=0) == (("r1", "r0"), ("r2", "r0"))
    assert kind.design(case, TaskRules(baseline="absent"), seed=0) is None
    assert kind.replan(design, {"r1"}).remaining == ()


@pytest.mark.parametrize(("tiers", "value"), [(("a", "b"), 1), (("b", "a"), -1), (("ab",), 0)])
def test_better_than_the_baseline_is_a_rating_from_minus_one_to_one(tiers, value):
    (rating,) = kind_named("baseline").ratings(ranked(*tiers), ORIGIN._replace(shown=("a", "b")))
    assert (rating.response, rating.value, rating.range, rating.meta["baseline"]) == ("a", value, (-1, 1), "b")
    discarded = ranked(discarded={"a": "garbled"})
    assert kind_named("baseline").ratings(discarded, ORIGIN._replace(shown=("a", "b"))) == ()


def test_a_translation_has_points_and_the_score_of_its_errors():
    kind = kind_named("translation_quality")
    spans = ((0, 3, "Accuracy/Omission", "major"), (4, 6, "Other", "minor"), (6, 7, "Other", "minor"))
    answer = TaskAnswer(scores={"a": 72}, spans={"a": spans})
    quality, mqm = kind.ratings(answer, ORIGIN._replace(shown=("a",)))
    assert (quality.value, quality.range, quality.spans) == (72, (0, 100), spans)
    assert (mqm.dimension, mqm.value, mqm.spans) == ("mqm", -7, spans)
    assert kind.misfits(answer, {"a": "abcdefgh"}, {}) == ()
    for wrong in (
        (0, 3, "nonsense", "major"),
        (0, 3, "Other", None),
        (0, 3, "Other", "tiny"),
        (5, 99, "Other", "major"),
    ):
        assert kind.misfits(TaskAnswer(scores={"a": 1}, spans={"a": (wrong,)}), {"a": "abcdefgh"}, {})
    assert kind.misfits(TaskAnswer(scores={"a": 101}), {"a": "x"}, {})


@pytest.mark.parametrize(("score", "same"), [(80, True), (90, True), (91, False), (70, True), (69, False)])
def test_points_of_a_translation_agree_within_ten(score, same):
    kind = kind_named("translation_quality")
    answers = (TaskAnswer(scores={"a": 80}), TaskAnswer(scores={"a": score}))
    # The marks, none of either, are the second point.
    assert tuple(count_agreement(("a",), answers, kind)) == (1 + same, 2)


def test_native_speakers_get_a_sample_of_each_language_that_languages_share():
    kind = kind_named("native_check")
    cases = [
        msgspec.structs.replace(case, prompt=msgspec.structs.replace(case.prompt, language=language))
        for case in cases_for("native_check", 40)
        for language in ("id", "es")
    ]
    drawn = list(kind.select(cases, TaskRules(num_per_language=7), seed=5))
    by_language = {
        language: {case.prompt.id for case in drawn if case.prompt.language == language} for language in ("id", "es")
    }
    assert len(by_language["id"]) == 7
    assert by_language["id"] == by_language["es"]
    assert list(kind.select(reversed(cases), TaskRules(num_per_language=7), seed=5)) == drawn[::-1]
    other = kind.select(cases, TaskRules(num_per_language=7), seed=6)
    assert {case.prompt.id for case in other} != by_language["id"]
    assert len(list(kind.select(cases, TaskRules(), seed=5))) == 80
