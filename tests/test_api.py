import pytest

import steelyard as sy
from chat_server import record
from steelyard.io.cases import write_cases
from steelyard.stages.resolve import Config
from steelyard.stages.resolve import resolve as stage_resolve
from strategies import case, judgment


def test_the_verbs_work_on_values():
    ranked = sy.resolve([case(judgments=["a>b", "b>c", "c>a", "a>d"]), case(id="q", judgments=["a>b"])])
    assert [one.ranking for one in ranked] == [(("a", "b", "c"), ("d",)), (("a",), ("b",))]
    assert sy.resolve([case(judgments=["a>b"])], only=["kind=llm"])[0].ranking is None
    with pytest.raises(sy.errors.RecordError, match="names response 'z'"):
        sy.resolve([case(judgments=["a>z"])])


def test_resolving_by_dawid_skene_gives_the_rankings_of_the_command(tmp_path):
    votes = [("ann", "a>b"), ("bob", "a>b"), ("cid", "b>a"), ("dee", "b>a")]
    agreed = [case(f"p{number}", "ab", [judgment("a>b", judge) for judge, _ in votes[:3]]) for number in range(20)]
    disputed = case("q", "ab", [judgment(short, judge) for judge, short in votes])
    against = [case(f"r{number}", "ab", [judgment("a>b", "ann"), judgment("b>a", "dee")]) for number in range(20)]
    cases = [*agreed, disputed, *against]
    write_cases(tmp_path / "cases.jsonl", cases)
    stage_resolve(tmp_path / "cases.jsonl", tmp_path / "out", Config(aggregate="dawid-skene"))
    written = [resolved.ranking for resolved in sy.read_cases(tmp_path / "out" / "cases.jsonl")]
    assert [resolved.ranking for resolved in sy.resolve(cases, aggregate="dawid-skene")] == written
    assert written[20] == (("a",), ("b",))
    assert sy.resolve([disputed], aggregate="majority")[0].ranking == (("a", "b"),)


def test_a_model_is_scored_and_evaluated_beside_baselines():
    texts = {"a": "long answer", "b": "short"}
    one = sy.Case(
        prompt=case().prompt,
        responses=tuple(sy.Response(id=name, text=text) for name, text in texts.items()),
        ranking=(("a",), ("b",)),
    )
    model = sy.load_model("longer")
    assert sy.score(model, [one])[0].scores == {"a": 11.0, "b": 5.0}
    summary = sy.evaluate(model, [one], baselines=("shorter",))
    assert summary.accuracy.value == 1.0
    assert summary.baselines["shorter"].accuracy.value == 0.0


def test_a_file_goes_through_the_door(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case(judgments=["a>b"])])
    assert len(list(sy.read_cases(tmp_path / "c.jsonl"))) == 1


def test_a_judge_is_asked_about_the_pairs(tmp_path):
    chat = record(tmp_path / "r.jsonl", {"text": "[[A]]"})
    judge = sy.load_model("llm_judge", {"chat": chat})
    one = sy.Case(prompt=case().prompt, responses=case(responses="ab").responses, ranking=(("a",), ("b",)))
    summary = sy.evaluate(judge, [one], baselines=())
    assert (summary.outcomes.tie, summary.policies["half"].accuracy.value) == (1, 0.5)


class Forgetful:
    """A model that has no score for the second response."""

    def __init__(self, reason):
        self.reason = reason

    def score(self, cases):
        for one in cases:
            first, second = (response.id for response in one.responses)
            yield sy.Scores(prompt=one.prompt.id, scores={first: 1.0, second: None}, unscored={second: self.reason})


def test_what_the_command_refuses_is_refused():
    one = sy.Case(prompt=case().prompt, responses=case(responses="ab").responses, ranking=(("a",), ("b",)))
    with pytest.raises(sy.errors.EvidenceError, match=r"1 responses have no score \(failed 1\)"):
        sy.evaluate(Forgetful("failed"), [one], baselines=())
    summary = sy.evaluate(Forgetful("failed"), [one], baselines=(), allow_unscored=True)
    assert summary.unscored.num_pairs == 1
