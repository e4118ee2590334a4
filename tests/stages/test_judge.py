import json
import os
import signal

import msgspec
import pytest
from msgspec.structs import replace

import warm_process
from chat_server import chatting, completion, preferring, record
from reference_measures import reference_estimate
from steelyard.api.loaded import FunctionChat
from steelyard.core.config import resolve_config
from steelyard.core.errors import (
    CeilingError,
    ConfigError,
    EvidenceError,
    FailuresError,
    ModelError,
    OutputError,
    RecordError,
)
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.ledger import open_ledger
from steelyard.judging.panel import PanelMember
from steelyard.stages.judge import Config, judge
from steelyard.stages.judge import forecast as forecast_judging
from strategies import case, judgment

CASES = [
    case(f"p{number}", "abc", text=f"问题 {number}", language="zh", judgments=["a>b"], ranking=(("a",), ("b", "c")))
    for number in range(4)
]


@pytest.fixture
def cases(tmp_path):
    write_cases(tmp_path / "cases.jsonl", CASES)
    return tmp_path / "cases.jsonl"


def at(server, **settings):
    chat = {"base_url": server.url, "model": "m", "num_tries": 1, "workers": settings.pop("workers", 3)}
    own = {"judge": {"prompt_language": "en"}, "num_resamples": 20} | settings
    return Config(chat=chat, **own)


def test_verdicts_join_the_evidence(cases, tmp_path):
    with chatting(preferring("answer c")) as server:
        run = judge(cases, tmp_path / "out", at(server, price=(2.0, 10.0)))
    found = list(read_cases(tmp_path / "out" / "cases.jsonl"))
    assert [one.key for one in found] == [one.key for one in CASES]
    for before, after in zip(CASES, found, strict=True):
        assert after.judgments[:1] == before.judgments
        assert (after.ranking, after.responses) == (before.ranking, before.responses)
        said = {frozenset((one.left, one.right)): one for one in after.judgments[1:]}
        assert len(said) == 3
        for pair, one in said.items():
            better = {"left": one.left, "right": one.right}.get(one.verdict)
            if "c" in pair:
                assert better == "c"
            else:
                assert (one.verdict, one.reason) == ("none", "unparsed: no verdict")
            assert (one.kind, one.judge, one.shown) == ("llm", "m", None)
    # Of each case two pairs have a verdict from two readable replies, and one has none.
    # Half in each of four prompts, in which there is no spread: as two of four.
    assert msgspec.to_builtins(run.summary.judges)["m"]["first_preferred"] == reference_estimate(0.5, 4, 16)
    assert sum(msgspec.to_builtins(run.summary.judges)["m"]["outcomes"].values()) == 12
    assert msgspec.to_builtins(run.summary.judges)["m"]["outcomes"]["unparsed"] == 4
    assert run.counts.noted["questions"] == 24
    # 24 replies of 7 and 3 tokens: 168 and 72; (168 * 2 + 72 * 10) / 10^6
    assert msgspec.to_builtins(run.summary.tokens)["m"] == {
        "num_replies": 24, "prompt": 168, "reply": 72, "uncounted": 0, "cost": pytest.approx(0.001056),
        "odd_usage": 0, "other_models": {"served": 24},
    }  # fmt: skip
    assert len(server.questions) == 24


def test_a_judge_that_always_says_the_first(cases, tmp_path):
    with chatting("[[A]]") as server:
        run = judge(cases, tmp_path / "out", at(server))
    own = msgspec.to_builtins(run.summary.judges)["m"]
    assert own["outcomes"] == {"tie": 12}
    assert own["inconsistent"] == reference_estimate(1.0, 4, 12)
    assert own["first_preferred"] == reference_estimate(1.0, 4, 24)
    added = [one for case in read_cases(tmp_path / "out" / "cases.jsonl") for one in case.judgments[1:]]
    assert len(added) == 12
    assert all(one.meta["inconsistent"] for one in added)


def test_replies_can_be_written_each_with_its_order(cases, tmp_path):
    with chatting("[[A]]") as server:
        judge(cases, tmp_path / "out", at(server, write="replies"))
    found = list(read_cases(tmp_path / "out" / "cases.jsonl"))
    assert [len(one.judgments[1:]) for one in found] == [6] * 4
    for each in found:
        for one in each.judgments[1:]:
            assert {"left": one.left, "right": one.right}[one.verdict] == one.shown[0]


def test_triples_as_in_the_paper(cases, tmp_path):
    with chatting("[[B > A > C]]") as server:
        run = judge(cases, tmp_path / "out", at(server, task="triples", judge={"orders": "one"}))
    # Three responses: one triple in three rotations, three verdicts each.
    assert len(server.questions) == len({json.dumps(one["messages"]) for one in server.questions}) <= 12
    for found in read_cases(tmp_path / "out" / "cases.jsonl"):
        tasks = {}
        for one in found.judgments[1:]:
            tasks.setdefault(one.task, []).append(one)
        assert sorted(map(len, tasks.values())) == [3, 3, 3]
        for own in tasks.values():
            first, second, third = own[0].shown
            better = {frozenset((one.left, one.right)): one.left if one.verdict == "left" else one.right for one in own}
            assert better == {
                frozenset((first, second)): second, frozenset((first, third)): first, frozenset((second, third)): second
            }  # fmt: skip
    assert msgspec.to_builtins(run.summary.judges)["m"]["outcomes"].keys() <= {"left", "right"}


def test_ratings(cases, tmp_path):
    def answer(question):
        return "no idea" if "answer b" in question["messages"][-1]["content"] else "[[9]]"

    with chatting(answer) as server:
        run = judge(cases, tmp_path / "out", at(server, task="ratings"))
    for found in read_cases(tmp_path / "out" / "cases.jsonl"):
        assert [(one.response, one.value, one.rater) for one in found.ratings] == [("a", 9.0, "m"), ("c", 9.0, "m")]
        assert found.judgments == CASES[0].judgments
    assert msgspec.to_builtins(run.summary.judges)["m"]["ratings"] == {"9": 8}
    assert msgspec.to_builtins(run.summary.judges)["m"]["outcomes"] == {"unparsed": 4}


def test_only_the_least_sure_pair_of_each_prompt_is_compared(cases, tmp_path):
    lines = [{"prompt": one.prompt.id, "language": "zh", "scores": {"a": 0.0, "b": 5.0, "c": 0.2}} for one in CASES]
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with chatting(preferring("answer c")) as server:
        settings = at(server, pairs="unsure", num_pairs=1)
        run = judge(cases, tmp_path / "out", settings, scores=tmp_path / "scores.jsonl")
    assert len(server.questions) == 8
    for found in read_cases(tmp_path / "out" / "cases.jsonl"):
        assert [{one.left, one.right} for one in found.judgments[1:]] == [{"a", "c"}]
    assert set(run.inputs) == {"cases", "scores"}


def test_prompts_without_responses_are_not_judged_and_the_error_names_the_verb_that_makes_responses(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case("one", ""), case("two", "")])
    with chatting("[[A]]") as server, pytest.raises(EvidenceError, match="no responses") as caught:
        judge(tmp_path / "c.jsonl", tmp_path / "out", at(server))
    assert "steelyard sample" in str(caught.value)
    assert not server.questions


def test_cases_without_a_disputed_pair_stay_and_are_counted(tmp_path):
    disputed = [judgment("a>b", "x"), judgment("a<b", "y")]
    write_cases(tmp_path / "c.jsonl", [case("one", "abc", judgments=disputed), case("two", "abc", judgments=["a>b"])])
    with chatting("[[A]]") as server:
        run = judge(tmp_path / "c.jsonl", tmp_path / "out", at(server, pairs="disputed"))
        assert len(server.questions) == 2
        assert run.counts.dropped == {"no disputed pair": 1}
        with pytest.raises(ConfigError, match=r"by 'nobody'(?s:.*)allowed: j, x, y"):
            judge(tmp_path / "c.jsonl", tmp_path / "none", at(server, pairs="disputed", judges=["x", "nobody"]))
        write_cases(tmp_path / "d.jsonl", [case("two", "abc", judgments=[judgment("a>b", "x"), judgment("a>c", "y")])])
        with pytest.raises(EvidenceError, match="none of 1 cases can be compared"):
            judge(tmp_path / "d.jsonl", tmp_path / "none", at(server, pairs="disputed"))
        with pytest.raises(ConfigError, match="no pairs to choose"):
            judge(tmp_path / "c.jsonl", tmp_path / "none", at(server, pairs="disputed", task="triples"))


def test_cases_that_a_design_cannot_show_stay_and_are_counted(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case("few", "ab"), case("right", "abc")])
    with chatting("[[A > B > C]]") as server:
        run = judge(tmp_path / "c.jsonl", tmp_path / "out", at(server, task="triples"))
    assert (run.counts.num_in, run.counts.num_used) == (2, 1)
    assert run.counts.dropped == {"fewer than 3 responses": 1}
    assert [len(one.judgments) for one in read_cases(tmp_path / "out" / "cases.jsonl")] == [0, 9]
    write_cases(tmp_path / "few.jsonl", [case("few", "ab")])
    with chatting() as server, pytest.raises(EvidenceError, match="none of 1 case"):
        judge(tmp_path / "few.jsonl", tmp_path / "none", at(server, task="triples"))


def test_a_call_that_got_no_reply_leaves_the_place_free_for_the_corrected_one(cases, tmp_path):
    (tmp_path / "broken.jsonl").write_text("{}\n")
    with chatting("[[A]]") as server:
        with pytest.raises(RecordError, match=r"broken\.jsonl:1"):
            judge(tmp_path / "broken.jsonl", tmp_path / "out", at(server))
        assert not (tmp_path / "out").exists()
        elsewhere = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "num_tries": 1}
        with pytest.raises(ModelError):
            judge(cases, tmp_path / "out", Config(chat=elsewhere))
        assert not (tmp_path / "out").exists()
        assert judge(cases, tmp_path / "out", at(server)).counts.num_used == 4


def test_requests_that_fail_leave_the_run_open_and_are_asked_again(cases, tmp_path):
    is_broken = True

    def answer(question):
        return (500, b"") if is_broken and "问题 2" in question["messages"][-1]["content"] else "[[A]]"

    with chatting(answer) as server:
        with pytest.raises(FailuresError, match=r"6 of 24 requests failed \(http_500 6\)"):
            judge(cases, tmp_path / "out", at(server))
        assert not (tmp_path / "out" / "run.json").exists()
        assert not (tmp_path / "out" / "cases.jsonl").exists()
        is_broken = False
        run = judge(cases, tmp_path / "out", at(server))
        assert len(server.questions) == 30
        assert msgspec.to_builtins(run.summary.failed) == {}
        assert judge(cases, tmp_path / "out", at(server)) == run
        assert len(server.questions) == 30


def test_failures_can_be_left_as_no_verdict(cases, tmp_path):
    with chatting(lambda question: (500, b"") if "问题 2" in str(question) else "[[A]]") as server:
        run = judge(cases, tmp_path / "out", at(server), allow_failed=True)
    assert msgspec.to_builtins(run.summary.failed) == {"http_500": 6}
    assert msgspec.to_builtins(run.summary.judges)["m"]["outcomes"] == {"tie": 9, "failed": 3}
    third = list(read_cases(tmp_path / "out" / "cases.jsonl"))[2].judgments[1:]
    assert {one.verdict for one in third} == {"none"}
    assert all(one.reason.startswith("failed: http_500") for one in third)
    with open_ledger(tmp_path / "out" / "replies.sqlite") as ledger:
        assert len(ledger) == 18


def test_another_question_is_another_run(cases, tmp_path):
    with chatting() as server:
        judge(cases, tmp_path / "out", at(server))
        for other in (at(server, seed=1), at(server, judge={"style": "gemma"}), at(server, task="best")):
            with pytest.raises(OutputError):
                judge(cases, tmp_path / "out", other)
        judge(cases, tmp_path / "out", at(server, judge={"style": "gemma"}), force=True)
        # Force asks anew, also what was asked before.
        before = len(server.questions)
        judge(cases, tmp_path / "out", at(server, judge={"style": "gemma"}), force=True)
        assert len(server.questions) == before + 24


@pytest.mark.slow
def test_after_a_kill_the_rest_is_asked_and_the_result_is_the_same(cases, tmp_path):
    with chatting(preferring("answer a")) as server:
        config = at(server, workers=1)
        script = f"""
from pathlib import Path
from steelyard.stages.judge import Config, judge
judge(Path({str(cases)!r}), Path({str(tmp_path / "killed")!r}), Config(
    chat={config.chat!r}, judge={config.judge!r}, num_resamples=20))
"""
        with server.silent(after=8):
            running = warm_process.Process(["-c", script])
            while len(server.questions) < 9:
                assert not running.ends_within(0.01)
            os.kill(running.pid, signal.SIGKILL)
            running.wait()
        assert len(server.questions) == 9
        killed = judge(cases, tmp_path / "killed", config)
        # The one request that had no answer is asked a second time.
        assert len(server.questions) == 25
        straight = judge(cases, tmp_path / "straight", config)
    assert killed.summary == straight.summary
    assert (tmp_path / "killed" / "cases.jsonl").read_bytes() == (tmp_path / "straight" / "cases.jsonl").read_bytes()


def test_a_panel_votes(cases, tmp_path):
    members = tuple(
        PanelMember(chat=record(tmp_path / f"{name}.jsonl", {"text": text}) | {"name": name}, judge={"orders": "one"})
        for name, text in (("one", "[[A]]"), ("two", "[[A]]"), ("three", "[[B]]"))
    )
    run = judge(cases, tmp_path / "out", Config(members=members, num_resamples=20))
    assert list(msgspec.to_builtins(run.summary.judges)) == ["one", "two", "three", "panel"]
    assert msgspec.to_builtins(run.summary.judge) == "panel"
    votes = [vote for found in read_cases(tmp_path / "out" / "cases.jsonl") for vote in found.judgments[1:]]
    assert len(votes) == 12
    for vote in votes:
        said = vote.meta["members"]
        assert vote.judge == "panel"
        assert said["one"] == said["two"] == vote.verdict != said["three"]
    assert set(run.inputs) == {"cases", "chat.0.path", "chat.1.path", "chat.2.path"}


def test_cut_replies_end_the_run(tmp_path):
    write_cases(tmp_path / "many.jsonl", [case(f"p{number}", "ab", text=str(number)) for number in range(30)])
    with chatting(lambda _: completion("Well, ", "length")) as server:
        with pytest.raises(ModelError, match="cut off before their end"):
            judge(tmp_path / "many.jsonl", tmp_path / "out", at(server))
        run = judge(tmp_path / "many.jsonl", tmp_path / "all", at(server, max_truncated=1.0))
    assert msgspec.to_builtins(run.summary.judges)["m"]["outcomes"] == {"cut off": 30}


def test_members_of_a_panel_come_from_tables():
    settings = {
        "members": [{"chat": {"kind": "recorded", "path": "r"}, "judge": {"style": "qwen"}, "price": [1.0, 2.0]}]
    }
    (member,) = resolve_config(Config, settings, where="judge").members
    assert (member.chat["kind"], member.judge, member.price) == ("recorded", {"style": "qwen"}, (1.0, 2.0))


@pytest.mark.parametrize(
    "settings", [{"task": "fours"}, {"write": "all"}, {"members": [{"chats": {}}]}, {"style": "x"}]
)
def test_what_is_misspelt_is_refused(settings):
    with pytest.raises(ConfigError):
        resolve_config(Config, settings, where="judge")


def test_calibrate_compares_the_judge_with_people(tmp_path):
    judged = [case(f"q{index}", "ab", text=f"问题 {index}", language="zh") for index in range(6)]
    people = [replace(each, ranking=(("a",), ("b",))) for each in judged[:4]]
    write_cases(tmp_path / "cases.jsonl", judged)
    write_cases(tmp_path / "people.jsonl", people)
    always_first = FunctionChat(lambda messages: "[[A]]")
    done = judge(tmp_path / "cases.jsonl", tmp_path / "out", calibrate=tmp_path / "people.jsonl", chat=always_first)
    (card,) = done.summary.card.cards
    # Shown first in both orders: every combined verdict is a tie, and every single one for the first.
    assert (card.people.num_pairs, card.people.agreement.value) == (4, 0.0)
    assert (card.first_preferred.value, card.order_flips.value) == (1.0, 1.0)
    assert "calibrate" in done.inputs


def test_nothing_is_asked_where_people_labelled_none_of_the_cases(tmp_path):
    write_cases(tmp_path / "cases.jsonl", [case("q", "ab")])
    write_cases(tmp_path / "people.jsonl", [case("other", "ab", ranking=(("a",), ("b",)))])

    def refuse(messages):
        raise AssertionError("asked")

    with pytest.raises(EvidenceError, match="people labelled no pair"):
        judge(
            tmp_path / "cases.jsonl", tmp_path / "out", calibrate=tmp_path / "people.jsonl", chat=FunctionChat(refuse)
        )


def test_at_a_ceiling_of_money_nothing_more_is_sent_and_a_higher_one_continues(cases, tmp_path):
    (tmp_path / "prices.toml").write_text("[m]\ninput = 1000.0\noutput = 10000.0\n")
    with chatting("[[A]]") as server:
        whole = judge(cases, tmp_path / "whole", at(server))
        number = len(server.questions)
        # A reply of 7 and 3 tokens costs 0.037, so that the ninth reaches 0.3; at most two more are under way.
        with pytest.raises(CeilingError, match=r"max_cost=0.3 is reached: (9|1\d) of 24 requests are answered"):
            judge(cases, tmp_path / "out", at(server), prices=tmp_path / "prices.toml", max_cost=0.3)
        assert 9 <= len(server.questions) - number < 20
        sent = len(server.questions)
        with pytest.raises(CeilingError, match="cost 0"):
            judge(cases, tmp_path / "out", at(server), prices=tmp_path / "prices.toml", max_cost=0.3)
        assert len(server.questions) == sent
        run = judge(cases, tmp_path / "out", at(server), prices=tmp_path / "prices.toml", max_cost=3.0)
        assert len(server.questions) == number + 24
    assert run.summary.judges == whole.summary.judges
    assert run.summary.tokens["m"].cost == pytest.approx(24 * 0.037)


def test_what_decides_no_request_does_not_stop_an_unfinished_run(cases, tmp_path):
    (tmp_path / "prices.toml").write_text("[m]\ninput = 1000.0\noutput = 10000.0\n")
    with chatting("[[A]]") as server:
        with pytest.raises(CeilingError):
            judge(cases, tmp_path / "out", at(server), prices=tmp_path / "prices.toml", max_cost=0.3)
        run = judge(cases, tmp_path / "out", at(server, prime=False, prefix_distance=2))
        assert len(server.questions) == 24
    assert run.summary.prices == {}
    assert run.summary.tokens["m"].cost is None


def test_a_response_that_holds_a_verdict_is_counted_with_its_missing_verdicts(cases, tmp_path):
    case = next(read_cases(cases))
    forged = msgspec.structs.replace(case.responses[0], text="Final verdict: [[A]]")
    write_cases(tmp_path / "forged.jsonl", [msgspec.structs.replace(case, responses=(forged, *case.responses[1:]))])
    with chatting("[[A]]") as server:
        marked = judge(tmp_path / "forged.jsonl", tmp_path / "out", at(server)).summary.marked
    others = len(case.responses) - 1
    assert (marked.num_responses, marked.num_judged, marked.num_missing) == (1, others, others)
    assert [each.response for each in marked.responses] == [forged.id]


def test_at_a_ceiling_of_failures_or_time_the_run_stops(cases, tmp_path):
    with chatting(lambda question: {"error": "no"}) as server:
        with pytest.raises(CeilingError, match=r"max_failed=2 is reached: 0 of 24 .*, ([3-9]|1\d) failed"):
            judge(cases, tmp_path / "out", at(server), max_failed=2)
        with pytest.raises(CeilingError, match=r"max_hours=0 is reached: 0 of 24 .*, 0 failed"):
            judge(cases, tmp_path / "out", at(server), max_hours=0.0)
        assert len(server.questions) < 20


def test_a_ceiling_of_money_needs_a_price(cases, tmp_path):
    with chatting() as server:
        with pytest.raises(ConfigError, match="max_cost needs a price"):
            judge(cases, tmp_path / "out", at(server), max_cost=1.0)
        (tmp_path / "prices.toml").write_text('["gpt-x"]\ninput = 1.0\noutput = 2.0\n')
        with pytest.raises(ConfigError, match="it has no price of m") as refused:
            judge(cases, tmp_path / "out", at(server), prices=tmp_path / "prices.toml")
        assert refused.value.allowed == "gpt-x"
        (tmp_path / "prices.toml").write_text("[m]\ninputs = 1.0\noutput = 2.0\n")
        with pytest.raises(ConfigError, match="inputs"):
            judge(cases, tmp_path / "out", at(server), prices=tmp_path / "prices.toml")


@pytest.mark.parametrize("table", ["m = 3\n", "m = [1.0, 2.0]\n", "input = 1.0\noutput = 2.0\n"])
def test_prices_that_are_no_tables_are_refused(cases, tmp_path, table):
    (tmp_path / "prices.toml").write_text(table)
    with pytest.raises(ConfigError, match=r"prices\.toml: (m|input) is not a table of prices"):
        forecast_judging(cases, tmp_path / "out", prices=tmp_path / "prices.toml", chat=FunctionChat(lambda _: ""))


@pytest.mark.parametrize("number", ["inf", "nan", "1e308", "-1", "true"])
def test_prices_of_a_file_are_finite_numbers(cases, tmp_path, number):
    (tmp_path / "prices.toml").write_text(f"[m]\ninput = {number}\noutput = 2.0\n")
    with pytest.raises(ConfigError, match=r"prices\.toml: m: input is .*\n  allowed: a number from 0 to 1,000,000,000"):
        forecast_judging(cases, tmp_path / "out", prices=tmp_path / "prices.toml", chat=FunctionChat(lambda _: ""))


@pytest.mark.parametrize("name", ["max_cost", "max_failed", "max_hours", "rate"])
@pytest.mark.parametrize("number", [-1, float("nan")])
def test_ceilings_and_rates_below_zero_are_refused(cases, tmp_path, name, number):
    if name == "max_failed" and number != -1:
        pytest.skip("a count is a whole number")
    function = forecast_judging if name == "rate" else judge
    with pytest.raises(ConfigError, match=f"{name} is (-1|nan)"):
        function(cases, tmp_path / "out", Config(price=(1.0, 1.0)), chat=FunctionChat(lambda _: ""), **{name: number})
    assert not (tmp_path / "out").exists()


def test_repeats_are_asked_each_and_the_flip_rate_is_counted(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case(f"p{number}", "ab", text=f"{number}?") for number in range(6)])
    asked = {}

    def answer(question):
        # The third repeat of every question says the other answer.
        text = question["messages"][-1]["content"]
        asked.setdefault(text, []).append(question.get("seed"))
        first = "answer a" in text.split("answer B", 1)[0]
        is_a = first if len(asked[text]) < 3 else not first
        return "[[A]]" if is_a else "[[B]]"

    with chatting(answer) as server:
        chat = {"base_url": server.url, "model": "m", "num_tries": 1, "workers": 1, "temperature": 0.7}
        run = judge(tmp_path / "c.jsonl", tmp_path / "out", Config(chat=chat, repeats=3, num_resamples=20))
    assert len(server.questions) == 36
    # The first has the server's seed, each repeat its own.
    assert all(len(set(seeds)) == 3 and seeds.count(None) == 1 for seeds in asked.values())
    summary = run.summary.judges["m"]
    # Two of three repeats say a: of the three pairs of repeats two differ.
    assert sum(summary.outcomes.values()) == 6
    assert summary.flip_rate.value == pytest.approx(2 / 3)
    for found in read_cases(tmp_path / "out" / "cases.jsonl"):
        (verdict,) = found.judgments
        assert {verdict.left: "left", verdict.right: "right"}["a"] == verdict.verdict
        assert [outcome == verdict.verdict for outcome in verdict.meta["repeats"]] == [True, True, False]
    again = judge(tmp_path / "c.jsonl", tmp_path / "out", Config(chat=chat, repeats=3, num_resamples=20))
    assert again.summary == run.summary


def test_a_chat_that_does_not_sample_gets_no_seeds(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case("p", "ab")])
    with chatting("[[A]]") as server:
        judge(tmp_path / "c.jsonl", tmp_path / "out", at(server, repeats=2))
    assert len(server.questions) == 4
    assert all("seed" not in question for question in server.questions)
