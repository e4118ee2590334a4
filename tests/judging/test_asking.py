import json
import re
from contextlib import contextmanager
from functools import partial

import msgspec
import pytest

from chat_server import chatting, completion, preferring, record
from steelyard.core.comparison import Question
from steelyard.core.errors import CeilingError, FailuresError, ModelError
from steelyard.core.plugins import build
from steelyard.core.types import Message
from steelyard.io.ledger import open_ledger
from steelyard.io.progress import observed
from steelyard.judging.asking import PricedChat, answers_of, as_request, ask_panel, ask_requests, tokens_used
from steelyard.judging.early_abort import FirstFailures
from steelyard.judging.panel import build_panel, choose_panel
from steelyard.judging.planning import plan_comparisons
from steelyard.judging.token_use import Ceilings
from strategies import case

CASES = [case(f"p{number}", "ab", text=f"question {number}") for number in range(12)]


def planned(cases=CASES, design="pairs"):
    return lambda: (one for own in cases for one in plan_comparisons(own, design, seed=0))


def jury_at(server, design="pairs", **judge):
    chat = {"base_url": server.url, "model": "m", "num_tries": 1, "workers": 4}
    return build_panel(choose_panel(design, chat=chat, judge=judge))


def test_everything_is_asked_once_and_read_back(tmp_path):
    with chatting(preferring("answer b")) as server, open_ledger(None) as ledger:
        jury = jury_at(server, prompt_language="en")
        assert ask_panel(jury, planned(), ledger) == {"m": (24, 0, 0)}
        assert ask_panel(jury, planned(), ledger) == {"m": (24, 24, 0)}
        assert len(server.questions) == 24
        for comparison in planned()():
            (verdict,) = answers_of(jury, comparison, ledger)["m"].verdicts
            better = verdict.left if verdict.outcome == "left" else verdict.right
            assert (better, verdict.is_inconsistent) == ("b", False)


def test_after_a_kill_only_the_rest_is_asked(tmp_path):
    with chatting() as server:
        with open_ledger(tmp_path / "l") as ledger:
            ask_panel(jury_at(server), planned(CASES[:5]), ledger)
        with open_ledger(tmp_path / "l") as ledger:
            assert ask_panel(jury_at(server), planned(), ledger) == {"m": (24, 10, 0)}
        assert len(server.questions) == 24


def test_a_long_run_goes_on_where_it_was_stopped_and_leaves_no_gap(monkeypatch):
    """Blocks with answered ends come last, and what is missing within them is asked too."""
    monkeypatch.setattr("steelyard.judging.asking._BLOCK", 4)
    cases = [case(f"p{number}", "ab", text=f"question {number}") for number in range(20)]

    def number(question):
        return int(re.search(r"question (\d+)", question["messages"][-1]["content"])[1])

    with chatting() as server, open_ledger(None) as ledger:
        ask_panel(jury_at(server), planned([one for one in cases[:13] if one.prompt.id != "p5"]), ledger)
        before = len(server.questions)
        chat = {"base_url": server.url, "model": "m", "workers": 1}
        jury = build_panel(choose_panel("pairs", chat=chat, judge={}))
        assert ask_panel(jury, planned(cases), ledger, prefix_distance=1) == {"m": (40, 24, 0)}
    later = [number(question) for question in server.questions[before:]]
    assert sorted(later) == [5, 5, *(place for place in range(13, 20) for _ in range(2))]
    # 13 lies in a block that began with an answered comparison.
    assert set(later[-2:]) == {5}


def test_failures_are_asked_again_and_nothing_else():
    is_broken = True

    def answer(question):
        if is_broken and "question 3" in question["messages"][-1]["content"]:
            return (500, b"broken")
        return "[[A]]"

    with chatting(answer) as server, open_ledger(None) as ledger:
        assert ask_panel(jury_at(server), planned(), ledger) == {"m": (24, 0, 2)}
        assert ledger.failures() == {"http_500": 2}
        is_broken = False
        assert ask_panel(jury_at(server), planned(), ledger) == {"m": (24, 22, 0)}
        assert (len(server.questions), ledger.failures()) == (26, {})


def test_equal_questions_are_asked_once():
    with chatting() as server, open_ledger(None) as ledger:
        same = [case("p", "ab", text="Why?"), case("q", "ab", text="Why?")]
        found = ask_panel(jury_at(server, orders="both"), planned(same), ledger)
        assert found == {"m": (2, 0, 0)}
        assert len(server.questions) == 2


def test_other_settings_are_other_questions():
    with chatting() as server, open_ledger(None) as ledger:
        ask_panel(jury_at(server), planned(), ledger)
        for judge in ({"criteria": False}, {"max_tokens": 9}, {"style": "gemma"}):
            assert ask_panel(jury_at(server, **judge), planned(), ledger)["m"].num_kept == 0


def test_samples_of_a_question_are_requests_of_their_own():
    with chatting() as server:
        chat = jury_at(server).members[0].chat
        question = Question(messages=(Message(role="user", content="why?"),), max_tokens=9)
        requests = [as_request(question, chat, repeat) for repeat in range(3)]
        seeded = as_request(msgspec.structs.replace(question, seed=7), chat)
        assert len({one.id for one in (*requests, seeded)}) == 4
        assert [one.repeat for one in requests] == [0, 1, 2]
        assert as_request(question, chat) == requests[0]
        list(chat.ask([requests[0], seeded]))
    assert sorted(str(question.get("seed")) for question in server.questions) == ["7", "None"]


def test_a_run_of_failures_ends_early():
    with chatting(lambda _: (500, b"out of memory")) as server, open_ledger(None) as ledger:
        with pytest.raises(FailuresError, match=r"the first 20 requests all failed .*out of memory"):
            ask_panel(jury_at(server), planned(), ledger)
        assert len(server.questions) < 28


@pytest.mark.parametrize("status", [400, 500])
def test_a_chat_that_answered_before_may_refuse_any_number_of_texts(status):
    """Its settings are right: a refusal is about the text. A server that fails may still be down."""
    with chatting(lambda _: (status, b"no")) as server, open_ledger(None) as ledger:
        chat = jury_at(server).members[0].chat
        questions = [Question(messages=(Message(role="user", content=f"why {n}?"),), max_tokens=9) for n in range(40)]
        requests = [as_request(question, chat) for question in questions]
        rule = FirstFailures(has_answers=True)
        asking = partial(ask_requests, PricedChat("m", chat), requests, ledger, num_requests=40, first_failures=rule)
        if status == 400:
            assert asking() == (40, 0, 40)
        else:
            with pytest.raises(FailuresError, match="the first 20 requests all failed"):
                asking()


def test_a_run_of_cut_replies_ends_early():
    with chatting(lambda _: completion("I think", "length")) as server, open_ledger(None) as ledger:
        with pytest.raises(ModelError, match="20 of 20 replies were cut off"):
            ask_panel(jury_at(server), planned(), ledger)
        # The replies are kept: with more of them allowed, the run goes on.
        found = ask_panel(jury_at(server), planned(), ledger, max_truncated=1.0)["m"]
        assert found.num_kept >= 20
        assert found.num_failed == 0


def test_cut_replies_under_way_are_kept_too():
    """They are paid for: when the twentieth ends the sending, all that was sent is awaited."""
    many = [case(f"p{number}", "ab", text=f"question {number}") for number in range(40)]
    with chatting(lambda _: completion("I think", "length")) as server, open_ledger(None) as ledger:
        with pytest.raises(ModelError, match="20 of 20 replies were cut off"):
            ask_panel(jury_at(server), planned(many), ledger)
        assert len(ledger) == len(server.questions) < 80


def test_a_ceiling_counts_what_every_member_cost_before():
    """The first member still has a request, and the second one has spent the allowance in an earlier call."""
    with chatting() as server, open_ledger(None) as ledger:
        (member,) = jury_at(server).members
        panel = jury_at(server)._replace(
            members=tuple(
                member._replace(
                    name=name, chat=build("chats", "openai_compatible", {"base_url": server.url} | settings)
                )
                for name, settings in (("a", {"model": "a"}), ("b", {"model": "b"}))
            )
        )
        panel = panel._replace(members=tuple(own._replace(price=(1000.0, 10000.0)) for own in panel.members))
        ask_panel(panel._replace(members=panel.members[1:]), planned(), ledger)
        ask_panel(panel._replace(members=panel.members[:1]), planned(CASES[:10]), ledger)
        before = len(server.questions)
        # A reply of 7 and 3 tokens costs 0.037: 24 and 20 of them 1.628.
        with pytest.raises(CeilingError, match=r"max_cost=1.62 is reached: .*cost 1\.63"):
            ask_panel(panel, planned(), ledger, ceilings=Ceilings(cost=1.62))
        assert len(server.questions) == before
        ask_panel(panel, planned(), ledger, ceilings=Ceilings(cost=2.0))
        assert len(server.questions) == before + 4


def test_first_tokens_are_not_cut_off():
    body = completion("A", "length", logprobs=[("A", -0.1), ("B", -3.0)], usage=(9, 1))
    with chatting(lambda _: body) as server, open_ledger(None) as ledger:
        assert ask_panel(jury_at(server, style="first_token"), planned(), ledger)["m"] == (24, 0, 0)


def test_a_panel_is_asked_member_by_member(tmp_path):
    from steelyard.judging.panel import PanelMember

    members = [
        PanelMember(chat=record(tmp_path / f"{name}.jsonl", {"text": text}) | {"name": name}, judge={"orders": "one"})
        for name, text in (("a", "[[A]]"), ("b", "[[A]]"), ("c", "hm"))
    ]
    jury = build_panel(choose_panel("pairs", chat={}, judge={}, members=members))
    with open_ledger(None) as ledger:
        assert ask_panel(jury, planned(), ledger) == dict.fromkeys("abc", (12, 0, 0))
        for comparison in planned()():
            answers = answers_of(jury, comparison, ledger)
            assert list(answers) == ["a", "b", "c", "panel"]
            (verdict,) = answers["panel"].verdicts
            assert (verdict.outcome, verdict.members) == ("left", {"a": "left", "b": "left", "c": "unparsed"})


def two_prompts():
    return [
        one
        for own in (case("p", "ab", text="one"), case("q", "ab", text="two"))
        for one in plan_comparisons(own, "pairs", seed=0)
    ]


@pytest.mark.parametrize(("price", "cost"), [(None, None), ((3.0, 15.0), (4 * 100 * 3 + 4 * 20 * 15) / 1e6)])
def test_tokens_and_what_they_cost(tmp_path, price, cost):
    chat = record(tmp_path / "r.jsonl", {"text": "[[A]]", "prompt_tokens": 100, "reply_tokens": 20})
    jury = build_panel(choose_panel("pairs", chat=chat, judge={}, price=price))
    with open_ledger(None) as ledger:
        ask_panel(jury, two_prompts, ledger)
        used = msgspec.to_builtins(tokens_used(jury, two_prompts, ledger)["recorded"])
    assert used == {
        "num_replies": 4, "prompt": 400, "reply": 80, "uncounted": 0, "cost": cost and pytest.approx(cost),
        "odd_usage": 0, "other_models": {},
    }  # fmt: skip


class FiguresSeen(list):
    """Observes the progress bars: the figures of each advance."""

    @contextmanager
    def open(self, title, total):
        yield lambda step: self.append(step.figures)


def test_what_is_asked_and_spent_so_far_can_be_followed(tmp_path):
    chat = record(tmp_path / "r.jsonl", {"text": "[[A]]", "prompt_tokens": 100, "reply_tokens": 20})
    jury = build_panel(choose_panel("pairs", chat=chat, judge={}, price=(3.0, 15.0)))
    seen, again = FiguresSeen(), FiguresSeen()
    with open_ledger(None) as ledger:
        for observer in (seen, again):
            with observed(observer.open):
                ask_panel(jury, two_prompts, ledger)
    assert [figures["replies"] for figures in seen] == [1, 2, 3, 4]
    assert seen[1] == {
        "replies": 2, "failed": 0, "prompt_tokens": 200, "reply_tokens": 40,
        "cost": pytest.approx((2 * 100 * 3 + 2 * 20 * 15) / 1e6),
    }  # fmt: skip
    # What an earlier run paid for is counted too.
    assert again[-1] == seen[-1]


def test_what_fails_in_every_run_does_not_keep_a_run_from_its_end():
    def answer(question):
        number = int(re.search(r"question (\d+)", question["messages"][-1]["content"])[1])
        return (400, b"no") if number >= 12 else "[[A]]"

    cases = [case(f"p{number}", "ab", text=f"question {number}") for number in range(24)]
    with chatting(answer) as server, open_ledger(None) as ledger:
        for _ in range(2):
            assert ask_panel(jury_at(server), planned(cases), ledger)["m"].num_failed == 24
        # Requests that never failed before end the run as ever.
        with pytest.raises(FailuresError, match=r"the first 2\d requests all failed"):
            ask_panel(
                jury_at(server),
                planned([case(f"x{number}", "ab", text=f"question {number}") for number in range(30, 60)]),
                ledger,
            )


def test_a_ceiling_of_cost_ends_a_run_whose_replies_have_no_counts():
    zeros = completion("[[A]]", usage=(0, 0))
    with chatting(lambda _: zeros) as server, open_ledger(None) as ledger:
        (member,) = jury_at(server).members
        panel = jury_at(server)._replace(members=(member._replace(price=(3.0, 15.0)),))
        with pytest.raises(ModelError, match=r"2\d of 2\d replies have no token counts: their cost is unknown"):
            ask_panel(panel, planned(), ledger, ceilings=Ceilings(cost=1.0))
        # Without the ceiling the run goes on.
        assert ask_panel(panel, planned(), ledger)["m"].num_questions == 24


def test_what_a_server_does_not_count_is_told(tmp_path):
    chat = record(
        tmp_path / "r.jsonl", {"contains": ["\none\n"], "text": "[[A]]"}, {"text": "[[A]]", "failure": "failed"}
    )
    jury = build_panel(choose_panel("pairs", chat=chat, judge={}))
    with open_ledger(None) as ledger:
        ask_panel(jury, two_prompts, ledger)
        used = msgspec.to_builtins(tokens_used(jury, two_prompts, ledger)["recorded"])
    assert (used["num_replies"], used["uncounted"], used["prompt"]) == (2, 2, 0)


@pytest.mark.parametrize("silence", [{"reasoning": "Let me think."}, {}])
def test_replies_without_a_text_are_billed_too(silence):
    def answer(question):
        if is_silent:
            return (200, json.dumps(completion(None, usage=(100, 16), **silence)).encode())
        return (200, json.dumps(completion("[[A]]", usage=(100, 20))).encode())

    with chatting(answer) as server, open_ledger(None) as ledger:
        jury = jury_at(server)
        member = jury.members[0]
        jury = jury._replace(members=(member._replace(price=(3.0, 15.0)),))
        is_silent = True
        ask_panel(jury, two_prompts, ledger)
        is_silent = False
        seen = FiguresSeen()
        with observed(seen.open):
            ask_panel(jury, two_prompts, ledger)
        (used,) = tokens_used(jury, two_prompts, ledger).values()
    number = 2 * len(two_prompts())
    assert (used.num_replies, used.prompt, used.reply) == (number, number * 200, number * 36)
    assert (used.failed_prompt, used.failed_reply) == (number * 100, number * 16)
    assert used.cost == pytest.approx((used.prompt * 3 + used.reply * 15) / 1e6)
    assert seen[-1]["cost"] == pytest.approx(used.cost)
