"""A judge that is a Python function: asked in both orders through the ledger, its exceptions are failed requests."""

import pytest
from msgspec.structs import replace

import steelyard as sy
from strategies import case

CASES = [case(f"p{number}", "ab", text=f"Question {number}") for number in range(3)]


def winners(judged):
    """Who judged, and what: the id of the better answer, or a verdict without one."""
    return {
        (one.judge, {"left": one.left, "right": one.right}.get(one.verdict, one.verdict))
        for each in judged.cases
        for one in each.judgments
    }


def prefers_b(messages):
    """Prefer answer b, wherever it is shown."""
    question = messages[-1]["content"]
    return "[[A]]" if question.index("answer b") < question.index("answer a") else "[[B]]"


def test_a_function_is_asked_in_both_orders_and_signs_the_verdicts():
    judged = sy.judge(CASES, judge=prefers_b, num_resamples=20)
    assert winners(judged) == {("prefers_b", "b")}
    assert judged.counts.noted["questions"] == 6
    first = sy.judge(CASES, judge=lambda messages: "[[A]]", num_resamples=20)
    assert {winner for _, winner in winners(first)} == {"tie"}  # the first shown wins: inconsistent


def test_an_exception_is_a_failed_request_and_the_same_call_continues(tmp_path):
    asked, down = [], [True]

    def judge(messages):
        asked.append(messages[-1]["content"])
        if "Question 1" in asked[-1] and down:
            raise OSError("no route")
        return prefers_b(messages)

    with pytest.raises(sy.errors.FailuresError, match=r"2 of 6 requests failed \(OSError 2\)"):
        sy.judge(CASES, judge=judge, out=tmp_path / "out", num_resamples=20)
    down.clear()
    asked.clear()
    judged = sy.judge(CASES, judge=judge, out=tmp_path / "out", num_resamples=20)
    assert len(asked) == 2
    assert winners(judged) == {("judge", "b")}


def test_failures_without_a_reply_and_refusals_have_no_verdict():
    def fails(messages):
        raise ValueError("broken")

    failed = sy.judge(CASES, judge=fails, allow_failed=True, num_resamples=20)
    refused = sy.judge(CASES, judge=lambda messages: None, num_resamples=20)
    assert {winner for _, winner in winners(failed) | winners(refused)} == {"none"}


def test_a_fault_of_the_function_ends_the_run_at_the_first_question():
    asked = []

    def judge(messages):
        asked.append(messages)
        return messages["content"]

    with pytest.raises(sy.errors.ModelError, match=r"the function judge fails \(TypeError"):
        sy.judge(CASES, judge=judge, allow_failed=True)
    assert len(asked) == 1


def test_what_cannot_be_a_judge_is_refused():
    with pytest.raises(sy.errors.ModelError, match="returned int"):
        sy.judge(CASES, judge=lambda messages: 1)
    with pytest.raises(sy.errors.ConfigError, match="judge is int"):
        sy.judge(CASES, judge=3)
    with pytest.raises(sy.errors.ConfigError, match="a chat beside it"):
        sy.judge(CASES, judge=prefers_b, chat={"kind": "recorded", "path": "replies.jsonl"})


def test_a_dry_run_asks_nothing_and_knows_the_replies_so_far(tmp_path):
    asked = []

    def judge(messages):
        asked.append(messages[-1]["content"])
        return prefers_b(messages)

    dry = sy.judge(CASES, judge=judge, dry_run=True, rate=2.0, price=[1.0, 4.0], out=tmp_path / "out")
    assert asked == []
    assert not (tmp_path / "out").exists()
    assert (dry.num_cases, dry.models[0].num_requests) == (3, 6)
    assert dry.models[0].hours == pytest.approx(6 / 2 / 3600)
    assert dry.models[0].cost > 0
    sy.judge(CASES, judge=judge, out=tmp_path / "out", num_resamples=20)
    assert sorted(asked) == sorted({*asked})
    assert len(asked) == 6
    finished = sy.judge(CASES, judge=judge, dry_run=True, out=tmp_path / "out", num_resamples=20)
    assert (finished.models[0].num_requests, finished.models[0].num_answered) == (0, 6)


def test_a_case_and_its_copy_with_the_answers_swapped_are_the_same_questions():
    copies = [replace(CASES[0], prompt=replace(CASES[0].prompt, id=f"copy-{place}")) for place in range(6)]
    copies = [replace(one, responses=one.responses[:: (-1) ** place]) for place, one in enumerate(copies)]
    asked = []

    def always_first(messages):
        asked.append(messages[-1]["content"])
        return "[[A]]"

    judged = sy.judge(copies, judge=always_first, num_resamples=20)
    assert len(judged.cases) == 6
    assert len(asked) == len({*asked}) == 2
