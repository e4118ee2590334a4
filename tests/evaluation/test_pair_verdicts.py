import json

import msgspec
import pytest
from msgspec import to_builtins

from chat_server import chatting, preferring, record
from steelyard.core.errors import EvidenceError, FailuresError
from steelyard.core.types import Response
from steelyard.evaluation.columns import bench_columns
from steelyard.evaluation.pair_verdicts import local_pairs
from steelyard.io.cases import write_cases
from steelyard.plugins.benches.column_benches import STYLES
from steelyard.stages.compare import compare
from steelyard.stages.evaluate import Config, evaluate
from strategies import case, judgment

CASES = [
    case("p", "abc", text="one", category=("code",), language="zh", ranking=(("a",), ("b",), ("c",))),
    case("q", "cab", text="two", category=("chat",), language="he", ranking=(("a",), ("b", "c"))),
]


@pytest.fixture
def bench(tmp_path):
    write_cases(tmp_path / "bench.jsonl", CASES)
    return tmp_path / "bench.jsonl"


def config(chat, **settings):
    given = {"num_resamples": 20, "allow_unscored": settings.pop("allow_unscored", False), "baselines": ("longer",)}
    judge = {"prompt_language": "en"} | settings.pop("judge", {})
    return Config(model={"chat": chat, "judge": judge, **settings}, **given)


def at(server):
    return {"base_url": server.url, "model": "m", "num_tries": 1}


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_pairs_as_positions_in_their_cases():
    assert local_pairs(bench_columns(CASES, None, "strict")) == [[(0, 1), (0, 2), (1, 2)], [(1, 2), (1, 0)]]


def test_pairs_count_as_they_were_judged(bench, tmp_path):
    # It prefers a, and between b and c of the first case it names neither: p 2 of 3 pairs, q 2 of 2.
    with chatting(preferring("answer a")) as server:
        summary = evaluate([bench], tmp_path / "out", config(at(server)), model="llm_judge").summary
        assert len(server.questions) == 10
    assert summary.model == "m"
    assert to_builtins(summary.outcomes) == {
        "num_pairs": 5, "win": 4, "loss": 0, "tie": 0, "unparsed": 1, "refused": 0, "cut_off": 0, "failed": 0,
        "by_language": {
            "he": {"win": 2, "loss": 0, "tie": 0, "unparsed": 0, "refused": 0, "cut_off": 0, "failed": 0},
            "zh": {"win": 2, "loss": 0, "tie": 0, "unparsed": 1, "refused": 0, "cut_off": 0, "failed": 0},
        },
    }  # fmt: skip
    # code 2/3, chat 1: their mean; without a verdict counted wrong, half and right
    assert summary.accuracy.value == pytest.approx(5 / 6)
    policies = summary.policies
    assert policies["wrong"].accuracy == summary.accuracy
    assert policies["half"].accuracy.value == pytest.approx((2.5 / 3 + 1) / 2)
    assert policies["half"].accuracy_micro.value == pytest.approx(4.5 / 5)
    assert policies["half"].accuracy.n == 5
    assert policies["right"].accuracy.value == 1.0
    assert (policies["wrong"].exact_match.value, policies["right"].exact_match.value) == (0.5, 1.0)
    assert policies["half"].exact_match is None
    assert summary.protocol["members"]["m"]["judge"]["style"] == "plain"


def test_people_are_held_against_each_other_beside_the_judge(tmp_path):
    said = [judgment(short, judge=name) for name in ("ann", "bob") for short in ("a>b", "b>c")]
    cases = [case("p", "abc", said, text="one", ranking=(("a",), ("b",), ("c",)))]
    write_cases(tmp_path / "people.jsonl", cases)
    with chatting(preferring("answer a")) as server:
        found = evaluate([tmp_path / "people.jsonl"], tmp_path / "out", config(at(server)), model="llm_judge").summary
        assert len(server.questions) == 6  # the pairs of the bench, both ways, and nothing more for this
    own = found.measures.human_ceiling.resolved
    # It prefers a to b; of b and c it names neither, which is wrong.
    assert own.human.micro.value == 1.0
    assert own.model.micro.value == 0.5
    assert found.measures.kendall_tau is None


def test_the_items_hold_what_was_said_of_each_pair(bench, tmp_path):
    with chatting(preferring("answer a")) as server:
        evaluate([bench], tmp_path / "out", config(at(server)), model="llm_judge")
    first, second = rows(tmp_path / "out" / "items.jsonl")
    assert [(one["better"], one["worse"], one["outcome"]) for one in first["outcomes"]] == [
        ("a", "b", "win"), ("a", "c", "win"), ("b", "c", "unparsed")
    ]  # fmt: skip
    assert (first["num_correct"], first["num_unscored"], first["exact_match"]) == (2, 1, False)
    assert (second["num_correct"], second["num_pairs"], second["exact_match"]) == (2, 2, True)
    assert second["scores"] == {"c": 0.0, "a": 1.0, "b": 0.0}


def test_a_judge_that_always_says_the_first_is_wrong_half_or_right(bench, tmp_path):
    chat = record(tmp_path / "r.jsonl", {"text": "[[A]]"})
    summary = evaluate([bench], tmp_path / "out", config(chat), model="llm_judge").summary
    assert summary.outcomes.tie == summary.tied.num_pairs == 5
    assert [summary.policies[name].accuracy.value for name in ("wrong", "half", "right")] == [0.0, 0.5, 1.0]
    assert summary.judges["recorded"].inconsistent.value == 1.0
    assert summary.judges["recorded"].first_preferred.value == 1.0


@pytest.mark.parametrize(("text", "reason"), [("rubbish", "unparsed"), ("I'm sorry, I can't.", "refused")])
def test_rubbish_has_no_headline(bench, tmp_path, text, reason):
    chat = record(tmp_path / "r.jsonl", {"text": text})
    summary = evaluate([bench], tmp_path / "out", config(chat), model="llm_judge").summary
    assert getattr(summary.outcomes, reason) == 5
    assert summary.accuracy.value is None
    assert summary.exact_match.value is None
    assert summary.baselines["longer"].difference.value is None
    assert [summary.policies[name].accuracy.value for name in ("wrong", "right")] == [0.0, 1.0]
    evaluate([bench], tmp_path / "again", config(chat), model="llm_judge")
    with pytest.raises(EvidenceError, match="no headline to compare"):
        compare([tmp_path / "out", tmp_path / "again"], tmp_path / "compared")


def test_requests_that_failed_leave_the_run_open(bench, tmp_path):
    is_broken = True

    def answer(question):
        material = question["messages"][-1]["content"].split("=====", 1)[1]
        return (500, b"") if is_broken and "one" in material else "[[A]]"

    with chatting(answer) as server:
        with pytest.raises(FailuresError, match="3 of 5 pairs have no verdict because requests failed"):
            evaluate([bench], tmp_path / "out", config(at(server)), model="llm_judge")
        allowed = config(at(server), allow_unscored=True)
        summary = evaluate([bench], tmp_path / "bounds", allowed, model="llm_judge").summary
        assert (summary.outcomes.failed, summary.accuracy.value) == (3, None)
        is_broken = False
        before = len(server.questions)
        summary = evaluate([bench], tmp_path / "out", config(at(server)), model="llm_judge").summary
        assert len(server.questions) == before + 6
    assert summary.outcomes.failed == 0


def test_ratings_are_compared_by_the_same_sum(bench, tmp_path):
    lines = [
        {"contains": ["answer a"], "text": "[[9]]"},
        {"contains": ["answer b"], "text": "[[5]]"},
        {"text": "[[5]]"},
    ]
    chat = record(tmp_path / "r.jsonl", *lines)
    summary = evaluate([bench], tmp_path / "out", config(chat, task="ratings"), model="llm_judge").summary
    # b and c have equal ratings: that pair is a tie.
    assert (summary.outcomes.win, summary.outcomes.tie) == (4, 1)
    assert summary.accuracy.value == pytest.approx(5 / 6)
    assert summary.judges["recorded"].ratings == {"5": 4, "9": 2}


def test_the_best_of_more_than_four_cannot_be_asked_for(tmp_path):
    write_cases(tmp_path / "b.jsonl", [case("p", "abcde", ranking=(("a",), tuple("bcde")))])
    chat = record(tmp_path / "r.jsonl", {"text": "[[A]]"})
    with pytest.raises(EvidenceError, match="more than 4 responses"):
        evaluate([tmp_path / "b.jsonl"], tmp_path / "out", config(chat, task="best"), model="llm_judge")


def rm_bench_case(id):
    sides = [("right", STYLES), ("wrong", STYLES)]
    responses = tuple(
        Response(id=f"{side}-{style}", text=f"{side} in {style}", meta={"style": style})
        for side, own in sides
        for style in own
    )
    ranking = tuple(tuple(f"{side}-{style}" for style in own) for side, own in sides)
    return msgspec.structs.replace(
        case(id, "", text=id, subset="chat", category=("chat",)), responses=responses, ranking=ranking
    )


def test_rm_bench_takes_verdicts_on_its_nine_pairs(tmp_path):
    # A judge that goes by looks alone: markdown over all, and else it names neither.
    write_cases(tmp_path / "b.jsonl", [rm_bench_case("p")])
    chosen = STYLES[-1]
    with chatting(preferring(f"in {chosen}")) as server:
        own = msgspec.structs.replace(config(at(server)), bench_kind="rm_bench")
        summary = evaluate([tmp_path / "b.jsonl"], tmp_path / "out", own, model="llm_judge").summary
    # Right where the better one is in that style and the worse is not: two of nine; the two turned ones are losses.
    assert (summary.outcomes.win, summary.outcomes.loss, summary.outcomes.num_pairs) == (2, 2, 9)
    assert summary.sections["chat"].value == pytest.approx(2 / 9)


def test_a_bench_of_numbers_refuses_verdicts_before_anything_is_asked(tmp_path):
    write_cases(tmp_path / "b.jsonl", [case("p", "abcd", subset="Focus", ranking=(("a",), tuple("bcd")))])
    with chatting() as server:
        own = msgspec.structs.replace(config(at(server)), bench_kind="rewardbench2")
        with pytest.raises(EvidenceError, match="needs a score for each response"):
            evaluate([tmp_path / "b.jsonl"], tmp_path / "out", own, model="llm_judge")
        assert server.questions == []
        best = msgspec.structs.replace(config(at(server), task="best"), bench_kind="rewardbench2")
        evaluate([tmp_path / "b.jsonl"], tmp_path / "best", best, model="llm_judge")
