"""Verbs as functions: they give what the commands give, on paths and on values, and leave nothing behind."""

import gc
import importlib
import json
import tempfile
from pathlib import Path

import msgspec
import pytest

import steelyard as sy
from parallel_cases import parallel_cases
from steelyard.core.errors import OutputError
from steelyard.core.types import Scores
from steelyard.io.cases import write_cases
from steelyard.stages import evaluate as evaluate_stage
from steelyard.stages import resolve as resolve_stage
from strategies import case, judgment


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The folder for temporary files, which a test looks into."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def ranked(number=4):
    return [
        sy.Case(
            prompt=case(f"p{n}", text=f"Question {n}").prompt,
            responses=(sy.Response(id="a", text="long answer"), sy.Response(id="b", text="short")),
            ranking=(("a",), ("b",)),
        )
        for n in range(number)
    ]


def test_cases_are_ranked_and_inconsistent_ones_refused():
    resolved = sy.resolve([case(judgments=["a>b", "b>c", "c>a", "a>d"]), case(id="q", judgments=["a>b"])])
    assert [one.ranking for one in resolved.cases] == [(("a", "b", "c"), ("d",)), (("a",), ("b",))]
    assert sy.resolve(
        [case(judgments=["a>b"], ranking=(("b",), ("a",))), case("q", judgments=[judgment("a>b", kind="llm")])],
        only=["kind=llm"],
    ).cases[0].ranking == (("b",), ("a",))
    with pytest.raises(sy.errors.RecordError, match=r"cases:1: .*names response 'z'"):
        sy.resolve([case(judgments=["a>z"])])
    with pytest.raises(sy.errors.RecordError, match="cases:2: prompt id 'p', language None, is there twice"):
        sy.resolve([case(), case()])


def test_a_function_writes_the_folder_of_the_command(tmp_path):
    cases = [case(f"p{number}", judgments=["a>b", "b>a" if number % 2 else "b>c"]) for number in range(6)]
    write_cases(tmp_path / "cases.jsonl", cases)
    command = resolve_stage.resolve(
        tmp_path / "cases.jsonl", tmp_path / "command", resolve_stage.Config(aggregate="majority")
    )
    for number, source in enumerate(
        (tmp_path / "cases.jsonl", sy.read_cases(tmp_path / "cases.jsonl"), cases, iter(cases))
    ):
        out = tmp_path / f"function-{number}"
        run = sy.resolve(source, aggregate="majority", out=out).run
        assert (run.summary, run.counts, run.outputs) == (command.summary, command.counts, command.outputs)
        assert (out / "cases.jsonl").read_bytes() == (tmp_path / "command" / "cases.jsonl").read_bytes()
        assert Path(run.inputs["cases"].path).read_bytes() == (tmp_path / "cases.jsonl").read_bytes()


def test_without_out_nothing_stays_behind(temporary):
    evaluated = sy.evaluate("longer", ranked())
    compared = sy.compare([evaluated, sy.evaluate("shorter", ranked())])
    assert list(temporary.iterdir())
    assert sy.report([evaluated, compared]).html.startswith("<!doctype html>")
    first = evaluated.folder
    del evaluated
    gc.collect()
    assert first.is_dir(), "the comparison still names it"
    del compared
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_a_failed_call_leaves_nothing_behind(temporary, tmp_path):
    with pytest.raises(sy.errors.EvidenceError) as raised:
        sy.resolve([case(judgments=["a>b"])], only=["judge=nobody"], out=tmp_path / "out")
    assert "cases in memory: only=" in str(raised.value).replace("only judge=nobody", "only=")
    del raised
    gc.collect()
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / "out.inputs").exists()


def test_an_error_speaks_of_keywords(tmp_path):
    sy.resolve([case(judgments=["a>b"])], out=tmp_path / "out")
    with pytest.raises(sy.errors.OutputError, match="name another out, or say force=True to replace it"):
        sy.resolve([case(judgments=["b>a"])], out=tmp_path / "out")
    assert sy.resolve([case(judgments=["b>a"])], out=tmp_path / "out", force=True).cases[0].ranking[0] == ("b",)
    with pytest.raises(sy.errors.ConfigError, match=r"min_precision go together"):
        sy.supervise(ranked(), model="longer", min_precision=0.9)
    with pytest.raises(sy.errors.ConfigError, match="use model=M, or scores=FILE"):
        sy.evaluate(None, ranked())


@pytest.mark.parametrize(
    ("call", "nearest"),
    [
        (lambda: sy.resolve([], agregate="majority"), "aggregate"),
        (lambda: sy.train([], model="m", lr=1e-4), "learning_rate"),
        (lambda: sy.train([], model="m", output_dir="x"), "out"),
        (lambda: sy.evaluate("longer", [], baseline=()), "baselines"),
        (lambda: sy.convert([], prompt_colum="q"), "prompt_column"),
        (lambda: sy.load_model("random", sed=1), "seed"),
    ],
)
def test_an_unknown_keyword_is_answered_with_the_nearest(call, nearest):
    with pytest.raises(sy.errors.ConfigError, match=f"did you mean '{nearest}'"):
        call()


def test_a_wrong_value_is_answered_with_the_allowed_ones():
    with pytest.raises(sy.errors.ConfigError, match="aggregate is 'majorty'\n  allowed: did you mean 'majority'"):
        sy.resolve([case(judgments=["a>b"])], aggregate="majorty")


def test_dawid_skene_gives_the_rankings_of_the_command():
    votes = [("ann", "a>b"), ("bob", "a>b"), ("cid", "b>a"), ("dee", "b>a")]
    agreed = [case(f"p{number}", "ab", [judgment("a>b", judge) for judge, _ in votes[:3]]) for number in range(20)]
    disputed = case("q", "ab", [judgment(short, judge) for judge, short in votes])
    against = [case(f"r{number}", "ab", [judgment("a>b", "ann"), judgment("b>a", "dee")]) for number in range(20)]
    assert sy.resolve([*agreed, disputed, *against], aggregate="dawid-skene").cases[20].ranking == (("a",), ("b",))
    assert sy.resolve([disputed], aggregate="majority").cases[0].ranking == (("a", "b"),)


def test_an_evaluation_is_that_of_the_command(tmp_path):
    write_cases(tmp_path / "bench.jsonl", ranked())
    config = evaluate_stage.Config(baselines=("shorter",))
    command = evaluate_stage.evaluate([tmp_path / "bench.jsonl"], tmp_path / "command", config, model="longer")
    for model in ("longer", sy.load_model("longer")):
        evaluation = sy.evaluate(model, tmp_path / "bench.jsonl", baselines=["shorter"])
        assert evaluation.run.summary == command.summary
    assert [item["num_correct"] for item in evaluation.items] == [1, 1, 1, 1]
    assert (float(evaluation.accuracy), float(evaluation.baselines["shorter"].accuracy)) == (1.0, 0.0)
    assert sy.evaluate("longer", [tmp_path / "bench.jsonl"], baselines=["shorter"]).run.summary == command.summary


class Lengths:
    """A model of a user's own."""

    def __init__(self, unscored=None):
        self.unscored = unscored

    def score(self, cases):
        for one in cases:
            scores = {response.id: float(len(response.text)) for response in one.responses}
            reasons = {} if self.unscored is None else {one.responses[-1].id: self.unscored}
            yield sy.Scores(prompt=one.prompt.id, scores=scores | dict.fromkeys(reasons), unscored=reasons)


def test_a_model_of_ones_own_is_scored_and_evaluated():
    assert float(sy.evaluate(Lengths(), ranked()).accuracy) == 1.0
    scored = sy.score(Lengths(), ranked())
    assert [line.scores for line in scored.scores] == [{"a": 11.0, "b": 5.0}] * 4
    assert scored.summary.protocol == {"class": "Lengths"}
    assert sy.score(Lengths(), prompt="?", responses=["ab", "c"]) == [2.0, 1.0]
    for scores in (scored, scored.scores, scored.folder / "scores.jsonl"):
        assert float(sy.evaluate(None, ranked(), scores=scores).accuracy) == 1.0


def test_a_response_without_a_score_is_refused():
    with pytest.raises(sy.errors.EvidenceError, match=r"4 responses have no score \(failed 4\)"):
        sy.evaluate(Lengths("failed"), ranked())
    evaluation = sy.evaluate(Lengths("failed"), ranked(), allow_unscored=True)
    assert evaluation.summary.unscored.num_pairs == 4
    with pytest.raises(sy.errors.EvidenceError, match="response 2 has no score: too long"):
        sy.score(Lengths("too long"), prompt="?", responses=["ab", "c"])
    with pytest.raises(sy.errors.EvidenceError, match="more than half of the pairs have no score"):
        float(evaluation.accuracy)
    assert evaluation.accuracy.value is None


def test_a_judge_is_asked_about_the_pairs(tmp_path):
    (tmp_path / "replies.jsonl").write_text(json.dumps({"text": "[[A]]"}))
    chat = {"kind": "recorded", "path": tmp_path / "replies.jsonl"}
    for judge, settings in (("llm_judge", {"chat": chat}), (sy.load_model("llm_judge", chat=chat), None)):
        summary = sy.evaluate(judge, ranked(1), baselines=[], model_settings=settings).summary
        assert (summary.outcomes.tie, summary.policies["half"].accuracy.value) == (1, 0.5)
    built = sy.load_model("llm_judge", chat=chat).model
    with pytest.raises(sy.errors.ModelError, match="a judge is given as an object"):
        sy.evaluate(built, ranked(1))


def test_a_kept_comparison_names_folders_that_stay(tmp_path):
    cases = parallel_cases()
    kept = [sy.evaluate(name, cases, out=tmp_path / name) for name in ("longer", "shorter")]
    assert sy.compare(kept, out=tmp_path / "compared").folder == tmp_path / "compared"
    with pytest.raises(sy.errors.EvidenceError, match="give each of these runs an out= of its own"):
        sy.compare([kept[0], sy.evaluate("random", cases)], out=tmp_path / "other")


def test_a_case_that_was_changed_on_disk_is_not_taken_from_there(tmp_path):
    write_cases(tmp_path / "cases.jsonl", [case(judgments=["a>b"])])
    cases = sy.read_cases(tmp_path / "cases.jsonl")
    write_cases(tmp_path / "cases.jsonl", [case(judgments=["b>a", "b>a"])])
    assert sy.resolve(cases).cases[0].ranking[0] == ("a",)


def test_one_case_is_looked_at_with_its_scores():
    evaluated = sy.evaluate("longer", ranked())
    view = sy.inspect(evaluated, "p2")
    assert view.item.analysis.case.prompt.id == "p2"
    assert "11.000" in str(view)
    with pytest.raises(sy.errors.EvidenceError, match="p9"):
        sy.inspect(ranked(), "p9")


def test_a_part_without_a_case_is_empty():
    simulated = sy.simulate(num_prompts=16, llm_share=0.01, seed=1)
    assert simulated.summary.num_prompts["llm"] == 0
    assert simulated["llm"] == sy.Cases()


COUNTED = """\
from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Scores

BUILT = []


class Config(BaseConfig, frozen=True):
    factor: float = 1.0


class Model:
    def __init__(self, factor):
        self.factor = factor

    def score(self, cases):
        for case in cases:
            scores = {response.id: self.factor * len(response.text) for response in case.responses}
            yield Scores(prompt=case.prompt.id, scores=scores, unscored={})

    def protocol(self):
        return {"factor": self.factor}


def build(config):
    BUILT.append(config.factor)
    return Model(config.factor)
"""


def test_a_loaded_model_is_built_once_and_gives_the_results_of_its_name(tmp_path, monkeypatch):
    (tmp_path / "counted_models").mkdir()
    (tmp_path / "counted_models" / "__init__.py").write_text("")
    (tmp_path / "counted_models" / "long.py").write_text(COUNTED)
    monkeypatch.syspath_prepend(str(tmp_path))
    verdicts = (judgment("a>b", "gpt", kind="llm"),)
    judged = [msgspec.structs.replace(one, ranking=None, judgments=verdicts) for one in ranked()]
    loaded = sy.load_model("counted_models.long", factor=2.0)
    values = [
        sy.evaluate(loaded, ranked()).run.summary,
        sy.score(loaded, ranked()).scores,
        sy.supervise(judged, model=loaded, min_margin=0.0, allow_other_languages=True).summary,
    ]
    built = importlib.import_module("counted_models.long").BUILT
    assert built == [2.0]
    named = {"model_settings": {"factor": 2.0}}
    assert values == [
        sy.evaluate("counted_models.long", ranked(), **named).run.summary,
        sy.score("counted_models.long", ranked(), **named).scores,
        sy.supervise(judged, model="counted_models.long", min_margin=0.0, allow_other_languages=True, **named).summary,
    ]
    assert built == [2.0] * 4


class Longer:
    """A model of its own class, with a protocol that tells nothing."""

    def __init__(self, factor):
        self.factor = factor

    def score(self, cases):
        for one in cases:
            scores = {response.id: self.factor * len(response.text) for response in one.responses}
            yield Scores(prompt=one.prompt.id, language=one.prompt.language, scores=scores, unscored={})


def test_the_scores_of_one_object_are_not_taken_for_those_of_another_of_its_class(tmp_path):
    out = tmp_path / "out"
    before = sy.score(Longer(1.0), ranked(), out=out).scores
    assert sy.score(Longer(1.0), ranked(), out=out).scores == before
    with pytest.raises(OutputError):
        sy.score(Longer(-1.0), ranked(), out=out)
    after = sy.score(Longer(-1.0), ranked(), out=out, force=True).scores
    assert [value for line in after for value in line.scores.values()] == [
        -value for line in before for value in line.scores.values()
    ]
