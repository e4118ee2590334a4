from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.checks import check_case
from steelyard.core.comparison import Answer, PairVerdict, ResponseRating, Showing
from steelyard.core.types import Message, Response
from steelyard.judging.planning import add_verdicts, plan_comparisons, refusal_reason, separating_mark
from strategies import case, cases, judgment, prompt


def shown(one, design, **fields):
    return [tuple(r.id for r in own.responses) for own in plan_comparisons(one, design, seed=0, **fields)]


def test_every_pair_once():
    found = shown(case(responses="abcde"), "pairs")
    assert {frozenset(pair) for pair in found} == {frozenset(pair) for pair in combinations("abcde", 2)}
    assert len(found) == 10


def test_only_the_pairs_that_are_asked_for():
    assert [set(pair) for pair in shown(case(responses="abcd"), "pairs", pairs=[(3, 0), (1, 2)])] == [
        {"a", "d"},
        {"b", "c"},
    ]
    assert shown(case(responses="abcd"), "pairs", pairs=[]) == []


def test_triples_are_the_circular_ones():
    found = shown(case(responses="abcde"), "triples")
    assert [set(triple) for triple in found] == [set("abc"), set("bcd"), set("cde"), set("dea"), set("eab")]


def test_all_at_once():
    assert [set(one) for one in shown(case(responses="abcd"), "best")] == [set("abcd")]
    assert shown(case(responses="abcdef"), "ratings") == [tuple("abcdef")]


def test_the_order_depends_on_the_case_alone():
    many = [case(str(number), "ab") for number in range(200)]
    orders = [shown(one, "pairs")[0] for one in many]
    assert orders == [shown(one, "pairs")[0] for one in many]
    first = sum(order == ("a", "b") for order in orders)
    assert 70 < first < 130  # a fair coin: four standard deviations are 28


@pytest.mark.parametrize(
    ("responses", "design", "why"),
    [
        ("a", "pairs", "fewer than 2 responses"),
        ("ab", "triples", "fewer than 3 responses"),
        ("abcde", "best", "more than 4 responses"),
        ("", "ratings", "no responses"),
        ("ab", "pairs", None),
        ("a", "ratings", None),
    ],
)
def test_what_a_design_cannot_show(responses, design, why):
    assert refusal_reason(case(responses=responses), design) == why
    assert bool(shown(case(responses=responses), design)) == (why is None)


BOTH = (Showing(shown=("a", "b"), outcome="left"), Showing(shown=("b", "a"), outcome="unparsed", detail="no verdict"))
UNREAD = PairVerdict(left="a", right="b", outcome="unparsed", detail="no verdict", showings=BOTH)


def test_several_replies_are_one_judgment_that_keeps_them():
    (added,) = add_verdicts(case(responses="ab"), [{"m": Answer(verdicts=(UNREAD,))}], by="m").judgments
    assert (added.verdict, added.reason, added.shown) == ("none", "unparsed: no verdict", None)
    assert (added.judge, added.kind, added.task) == ("m", "llm", "m-1")
    assert added.meta == {
        "orders": [
            {"shown": ["a", "b"], "outcome": "left"},
            {"shown": ["b", "a"], "outcome": "unparsed", "detail": "no verdict"},
        ]
    }


def test_a_single_reply_has_its_order():
    one = PairVerdict(left="b", right="a", outcome="right", showings=(Showing(shown=("b", "a"), outcome="right"),))
    (added,) = add_verdicts(case(responses="ab"), [{"m": Answer(verdicts=(one,))}], by="m").judgments
    assert (added.left, added.verdict, added.shown, added.meta, added.reason) == ("b", "right", ("b", "a"), None, None)


def test_every_reply_can_be_a_judgment():
    added = add_verdicts(case(responses="ab"), [{"m": Answer(verdicts=(UNREAD,))}], by="m", each=True).judgments
    assert [(one.verdict, one.shown) for one in added] == [("left", ("a", "b")), ("none", ("b", "a"))]


def test_of_a_panel_every_reply_is_signed_by_its_member():
    said = {name: Answer(verdicts=(UNREAD,)) for name in ("m", "n", "o")}
    panel = PairVerdict(left="a", right="b", outcome="unparsed", members=dict.fromkeys(said, "unparsed"))
    answers = [said | {"panel": Answer(verdicts=(panel,))}]
    (together,) = add_verdicts(case(responses="ab"), answers, by="panel").judgments
    assert (together.judge, together.meta) == ("panel", {"members": dict.fromkeys("mno", "unparsed")})
    each = add_verdicts(case(responses="ab"), answers, by="panel", each=True).judgments
    assert [one.judge for one in each] == ["m", "m", "n", "n", "o", "o"]


def test_ratings_are_written_and_missing_ones_are_not():
    answer = Answer(
        ratings=(
            ResponseRating(response="a", value=7.0),
            ResponseRating(response="b", value=None, outcome="refused"),
        )
    )
    found = add_verdicts(case(responses="ab"), [{"m": answer}], by="m")
    assert found.judgments == ()
    (added,) = found.ratings
    assert (added.response, added.value, added.range, added.rater, added.kind) == ("a", 7.0, (1.0, 10.0), "m", "llm")


@given(cases(max_responses=4, max_judgments=5), st.integers(1, 3))
def test_what_was_there_stays_and_ids_stay_unique(one, times):
    left, right = (response.id for response in one.responses[:2])
    verdict = PairVerdict(left=left, right=right, outcome="tie")
    found = one
    for _ in range(times):
        found = add_verdicts(found, [{"m": Answer(verdicts=(verdict,))}] * 2, by="m")
    assert check_case(found).judgments[: len(one.judgments)] == one.judgments
    assert len(found.judgments) == len(one.judgments) + 2 * times


def test_ids_that_are_taken_are_left_alone():
    own = judgment("a>b", id="x")
    found = add_verdicts(case(responses="ab", judgments=[own]), [{"m": Answer(verdicts=(UNREAD,))}], by="m")
    assert found.judgments[0] == own


def test_the_mark_is_one_for_all_questions_about_a_prompt_and_depends_on_every_response():
    marks = {own.mark for own in plan_comparisons(case(responses="abc"), "pairs", seed=0)}
    others = {own.mark for own in plan_comparisons(case(responses="abd"), "pairs", seed=0)}
    other_prompt = {own.mark for own in plan_comparisons(case(responses="abc", text="Why?"), "pairs", seed=0)}
    assert len(marks) == len(others) == len(other_prompt) == 1
    assert len(marks | others | other_prompt) == 3


@given(cases())
def test_the_mark_does_not_depend_on_the_order_of_the_responses(one):
    assert separating_mark(one.prompt, one.responses) == separating_mark(one.prompt, one.responses[::-1])


def test_the_mark_is_in_no_text_even_where_a_response_holds_every_likely_one(monkeypatch):
    # A response that holds the first mark of its own case cannot be found by trial here: the hash is replaced by one
    # that ignores the response.
    monkeypatch.setattr("steelyard.judging.planning.content_id", lambda text: text[0] * 16)
    shown = Response(id="a", text="00000000 11111111"), Response(id="b", text="22222222")
    assert separating_mark(prompt(), shown) == "33333333"
    talk = Response(id="c", messages=(Message(role="assistant", content="33333333"),))
    assert separating_mark(prompt(reference="44444444"), (*shown, talk)) == "55555555"
