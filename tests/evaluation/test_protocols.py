import pytest

from evaluation_summaries import evaluation_summary
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Input, Run
from steelyard.evaluation.evaluations import check_protocols
from steelyard.evaluation.model_self_tests import SelfTestSummary

PROTOCOL = {"model": "m", "dtype": "float32", "max_length": 2048, "over_length": "refuse", "template_hash": "aa",
            "special_tokens": "template", "strip": True}  # fmt: skip


def run(name="m", *, sha="1" * 64, kind="classifier", state="passed", protocol=None, **config):
    asked = {"bench_kind": "cases", "bench": {}, "pairs": None, "metric_compat": None, "model_kind": kind} | config
    summary = evaluation_summary(
        model=name, self_test=SelfTestSummary(state=state), protocol=PROTOCOL | (protocol or {})
    )
    return Run(stage="evaluate", config=asked, inputs={"bench.1": Input(path="b", sha256=sha)}, summary=summary)


def check(*runs, allowed=()):
    return check_protocols({f"run{number}": one for number, one in enumerate(runs, 1)}, allowed)


def test_equal_protocols_and_other_models_belong_together():
    assert check(run("a"), run("b", protocol={"template_hash": "bb", "special_tokens": "tokenizer"})) == {}
    remote = run("c", kind="implicit", protocol={"dtype": "bfloat16", "max_length": 512})
    assert check(run("a"), remote) == {}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (run("b", sha="2" * 64), "bench file 1: 111111111111… in run1, 222222222222… in run2"),
        (run("b", pairs="judged"), 'pairs: null in run1, "judged" in run2'),
        (run("b", metric_compat="cheems"), "metric_compat: null in run1"),
        (run("b", bench={"weights": "x"}), 'bench: {} in run1, {"weights":"x"} in run2'),
        (run("b", bench_kind="rewardbench"), "bench_kind: "),
        (run("b", state="off"), 'self_test: "on" in run1, "off" in run2'),
        (run("b", protocol={"dtype": "bfloat16"}), 'dtype (family classifier): "float32" in run1, "bfloat16" in run2'),
        (run("b", protocol={"max_length": 512}), "max_length (family classifier): 2048 in run1, 512 in run2"),
        (run("b", protocol={"over_length": "left"}), 'over_length (family classifier): "refuse" in run1'),
        (run("m", protocol={"template_hash": "bb"}), 'template_hash (model m): "aa" in run1, "bb" in run2'),
        (run("m", protocol={"strip": False}), "strip (model m): true in run1, false in run2"),
    ],
)
def test_unlike_protocols_are_refused_with_what_differs(other, said):
    with pytest.raises(EvidenceError) as caught:
        check(run(), other)
    assert said in caught.value.problem


@pytest.mark.parametrize("stated", [None, {"items": 3}])
def test_a_stated_label_error_is_no_part_of_the_protocol_and_older_records_lack_it(stated):
    assert check(run("a", bench={"name": "x"}), run("b", bench={"name": "x", "label_error": stated})) == {}


def test_all_that_differs_is_said_at_once():
    with pytest.raises(EvidenceError) as caught:
        check(run(), run("b", sha="2" * 64, pairs="judged", state="off"))
    assert all(name in caught.value.problem for name in ("bench file 1", "pairs", "self_test"))
    assert '["self_test"]' in caught.value.do


def test_what_may_differ_is_recorded_and_what_was_asked_never_may():
    found = check(run(), run("b", protocol={"dtype": "bfloat16"}), allowed=("dtype",))
    assert found == {"dtype (family classifier)": {'"float32"': ["run1"], '"bfloat16"': ["run2"]}}
    assert check(run(), run("m", protocol={"strip": False}), allowed=("template",)) == {
        "strip (model m)": {"true": ["run1"], "false": ["run2"]}
    }
    with pytest.raises(EvidenceError, match="pairs"):
        check(run(), run("b", pairs="judged", state="off"), allowed=("self_test",))


def test_scores_made_elsewhere_have_no_protocol_to_differ():
    given = Run(
        stage="evaluate",
        config={"bench_kind": "cases", "bench": {}, "pairs": None, "metric_compat": None, "model_kind": None},
        inputs={"bench.1": Input(path="b", sha256="1" * 64)},
        summary=evaluation_summary(model="given", protocol=None, self_test=SelfTestSummary(state="not applicable")),
    )
    assert check(run(), given) == {}


def test_what_is_listed_apart_may_be_of_other_files_but_not_of_another_bench():
    whole, part = run("a"), run("b", sha="2" * 64, state="off", protocol={"dtype": "bfloat16"})
    assert check_protocols({"a": whole, "b": part}, (), apart=("b",)) == {}
    with pytest.raises(EvidenceError, match="bench_kind: "):
        check_protocols({"a": whole, "b": run("b", bench_kind="rewardbench")}, (), apart=("b",))
