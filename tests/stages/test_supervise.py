import json
import math
import os
import signal
from pathlib import Path

import pytest

import tiny
import warm_process
from each_value import each
from steelyard.core.errors import (
    ConfigError,
    EvidenceError,
    FileError,
    ModelError,
    OutputError,
    RecordError,
)
from steelyard.evaluation.supervisor import SupervisionCoverage, check_supervision
from steelyard.evaluation.supervisor import SupervisionFiles as Files
from steelyard.io.cases import encode_case, read_cases, write_cases
from steelyard.io.trained_on import TRAINED_ON_FILE
from steelyard.ranking.judgment_table import Only
from steelyard.stages.score import score
from steelyard.stages.supervise import Config, supervise
from steelyard.stages.train import Config as Training
from steelyard.stages.train import train
from strategies import case
from supervision_files import judged, noisy, read_lines, write

LONGER = Files(model="longer")


@pytest.fixture
def cases(tmp_path):
    return write(
        tmp_path / "llm.jsonl",
        [
            judged("p", llm=("a>b", "a>b", "b<c", "a=c", "a?b"), human=("b>a", "b>a")),
            judged("שאלה", llm=("c>a", "a>b", "b>c"), language="he"),
            judged("nobody", llm=(), human=("a>c",)),
        ],
    )


def test_agree_writes_what_is_kept_and_why_the_rest_is_not(cases, tmp_path):
    run = supervise(cases, tmp_path / "out", Config(min_margin=2.0), **LONGER._asdict())
    kept = list(read_cases(tmp_path / "out" / "cases.jsonl"))
    assert [len(one.judgments) for one in kept] == [4, 1, 1]  # two people's stay beside a>b, a>b
    assert [one.ranking for one in kept] == [(("a",), ("b",)), (("a",), ("b",)), None]
    rows = read_lines(tmp_path / "out" / "manifest.jsonl")
    assert [(row["prompt"], row["left"], row["right"], row["verdict"], row["rule"], row["margin"]) for row in rows] == [
        ("p", "b", "c", "right", "disagrees", -1.0),
        ("p", "a", "c", "tie", "tie", None),
        ("p", "a", "b", "none", "unparsed", None),
        ("שאלה", "c", "a", "left", "disagrees", -3.0),
        ("שאלה", "b", "c", "left", "below min_margin", 1.0),
    ]
    assert {row["judge"] for row in rows} == {"gpt"}
    assert [row["language"] for row in rows] == ["zh", "zh", "zh", "he", "he"]
    assert (run.counts.num_in, run.counts.num_used) == (8, 3)
    assert run.counts.dropped == {"disagrees": 2, "tie": 1, "unparsed": 1, "below min_margin": 1}
    assert run.counts.noted == {"cases": 3, "cases without a supervised judgment": 1, "judgments not supervised": 3}
    assert run.summary.coverage == SupervisionCoverage(judgments=3 / 8, strict=3 / 6, prompts=1.0)
    # Margins that agree: 2, 2, 2 and 1; the candidates begin a twentieth above the smallest.
    # People judged a, b of p, on which the LLM is wrong both times.
    by_threshold = {row.threshold: row for row in run.summary.by_threshold}
    assert {min_margin: row.num_kept for min_margin, row in by_threshold.items()} == {0.0: 4, 2.0: 3}
    assert (by_threshold[2.0].precision.value, by_threshold[2.0].precision.n) == (0.0, 2)
    assert run.summary.supervisor.name == "longer"
    assert supervise(cases, tmp_path / "out", Config(min_margin=2.0), **LONGER._asdict()) == run


def test_cycles_and_weights(cases, tmp_path):
    cut = supervise(cases, tmp_path / "cut", Config(policy="cycles"), **LONGER._asdict())
    # p: a and c are tied, so a>b and c>b agree; the circle of the other prompt loses c>a, with -3.
    assert cut.counts.dropped == {"unparsed": 1, "least supported in a cycle": 1}
    assert [one.ranking for one in read_cases(tmp_path / "cut" / "cases.jsonl")] == [
        (("a", "c"), ("b",)), (("a",), ("b",), ("c",)), None,
    ]  # fmt: skip
    weighted = supervise(cases, tmp_path / "weighted", Config(policy="weight", scale=2.0), **LONGER._asdict())
    assert (weighted.counts.num_used, weighted.counts.dropped) == (8, {})
    pairs = next(read_cases(tmp_path / "weighted" / "cases.jsonl")).pairs
    assert [(pair.better, pair.worse) for pair in pairs] == [("a", "b"), ("c", "b")]
    assert pairs[0].weight == pytest.approx(2 / (1 + 2.718281828459045**-1))
    assert pairs[1].weight == pytest.approx(1 / (1 + 2.718281828459045**0.5))
    assert read_lines(tmp_path / "weighted" / "manifest.jsonl") == []


def test_external_scores_do_as_the_model_does(cases, tmp_path):
    score(cases, tmp_path / "scored", model="longer")
    own = supervise(cases, tmp_path / "own", **LONGER._asdict())
    given = supervise(cases, tmp_path / "given", **Files(scores=tmp_path / "scored" / "scores.jsonl")._asdict())
    assert given.counts == own.counts
    assert given.summary == own.summary
    for name in ("cases.jsonl", "manifest.jsonl"):
        assert (tmp_path / "own" / name).read_bytes() == (tmp_path / "given" / name).read_bytes()


def test_tau_is_calibrated_on_held_out_people(tmp_path):
    llm = write(tmp_path / "llm.jsonl", noisy(300, seed=1, name="l"))
    held_out = write(tmp_path / "held.jsonl", noisy(600, seed=2))
    files = Files(model="longer", calibration_cases=held_out)
    run = supervise(llm, tmp_path / "out", Config(min_precision=0.95), **files._asdict())
    # Margins that agree are 20, where all are right, or 2, where half are: 57 and 20 of 100, so 0.87 in all.
    assert run.summary.min_margin == 20.0
    certificate = run.summary.calibration
    assert (certificate.num_prompts, certificate.num_judgments) == (600, 600)
    assert {point.threshold for point in certificate.points if point.is_certified} == {20.0}
    loose = supervise(llm, tmp_path / "loose", Config(min_precision=0.7), **files._asdict())
    assert loose.summary.min_margin == 0.0
    with pytest.raises(EvidenceError, match=r"no threshold reaches a precision of 0\.999") as error:
        supervise(llm, tmp_path / "none", Config(min_precision=0.999), **files._asdict())
    # Some 340 are kept at 20, all right: 0.98 to that power is 0.001, 0.99 is 0.03; each of three starts has 0.017.
    assert "these cases certify a precision of 0.98 at most, by threshold 20" in str(error.value)
    assert "coverage" in str(error.value)


def test_calibration_scores_go_with_scores(tmp_path):
    llm = write(tmp_path / "llm.jsonl", noisy(100, seed=1, name="l"))
    held_out = write(tmp_path / "held.jsonl", noisy(400, seed=2))
    for name, path in (("a", llm), ("b", held_out)):
        score(path, tmp_path / name, model="longer")
    score(held_out, tmp_path / "c", model="random")
    given = Files(scores=tmp_path / "a" / "scores.jsonl", calibration_cases=held_out)
    config = Config(min_precision=0.8)
    run = supervise(
        llm, tmp_path / "out", config, **given._replace(calibration_scores=tmp_path / "b" / "scores.jsonl")._asdict()
    )
    assert (
        run.summary
        == supervise(llm, tmp_path / "m", config, **Files("longer", calibration_cases=held_out)._asdict()).summary
    )
    with pytest.raises(ModelError, match="scored under different protocols"):
        supervise(
            llm, tmp_path / "x", config, **given._replace(calibration_scores=tmp_path / "c" / "scores.jsonl")._asdict()
        )


def test_a_tau_that_drops_everything_is_refused_with_what_others_keep(cases, tmp_path):
    with pytest.raises(EvidenceError, match=r"threshold 9 drops everything\n.*threshold +kept +coverage") as error:
        supervise(cases, tmp_path / "out", Config(min_margin=9.0), **LONGER._asdict())
    assert "66.7%" in str(error.value)  # min_margin 0 keeps 4 of 6
    assert not (tmp_path / "out" / "run.json").exists()
    with pytest.raises(EvidenceError, match=r"(?s)agrees with none of 1 strict judgments.* lower scores are better"):
        supervise(write(tmp_path / "one.jsonl", [judged("p", llm=("b>a",))]), tmp_path / "out2", **LONGER._asdict())
    with pytest.raises(EvidenceError, match="no strict judgment to supervise"):
        supervise(write(tmp_path / "ties.jsonl", [judged("p", llm=("b=a",))]), tmp_path / "out3", **LONGER._asdict())
    disagreeing = supervise(tmp_path / "one.jsonl", tmp_path / "out4", Config(policy="cycles"), **LONGER._asdict())
    assert disagreeing.counts.num_used == 1


def test_a_judge_that_is_not_there_is_refused_before_anything_is_scored(cases, tmp_path):
    with pytest.raises(
        EvidenceError, match="only judge=gtp admits no judgment\n  allowed: judge: gpt, person 0, person 1"
    ):
        supervise(cases, tmp_path / "out", Config(only=Only(judge=("gtp",))), **LONGER._asdict())
    with pytest.raises(EvidenceError, match="kind=llm kind=model admits no judgment\n  allowed: kind: human"):
        supervise(
            write(tmp_path / "h.jsonl", [judged("p", llm=(), human=("a>b",))]), tmp_path / "out", **LONGER._asdict()
        )
    assert not (tmp_path / "out").exists()


def test_a_broken_case_is_refused_before_anything_is_scored(cases, tmp_path):
    with cases.open("ab") as file:
        file.write(b'{"prompt": 3}\n')
    with pytest.raises(RecordError, match=r"llm\.jsonl:4"):
        supervise(cases, tmp_path / "out", Config(min_margin=2.0), **LONGER._asdict())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("held_out", "error", "said"),
    [
        (b"{}\n", RecordError, r"held_out\.jsonl:1: Object missing required field"),
        (encode_case(judged("h")), EvidenceError, "no pair is judged strictly both by people and"),
        (
            encode_case(judged("h", llm=("a>b",), human=("a>b",))),
            EvidenceError,
            "contradict people in none of 1 verdict ",
        ),
    ],
)
def test_calibration_cases_that_cannot_serve_are_refused_before_anything_is_scored(
    cases, tmp_path, held_out, error, said
):
    (tmp_path / "held_out.jsonl").write_bytes(held_out)
    files = Files("longer", calibration_cases=tmp_path / "held_out.jsonl")
    with pytest.raises(error, match=said):
        supervise(cases, tmp_path / "out", Config(min_precision=0.9), **files._asdict())
    assert not (tmp_path / "out").exists()


def test_scores_that_do_not_fit_and_judgments_across_prompts_are_refused(cases, tmp_path):
    other = write(tmp_path / "other.jsonl", [judged("q")])
    score(other, tmp_path / "scored", model="longer")
    with pytest.raises(RecordError, match="unknown prompt id 'q'"):
        supervise(cases, tmp_path / "out", **Files(scores=tmp_path / "scored" / "scores.jsonl")._asdict())
    line = json.loads(cases.read_text(encoding="utf-8").splitlines()[0])
    line["judgments"][0]["left"] = "of another prompt"
    (tmp_path / "across.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    with pytest.raises(RecordError, match=r"across\.jsonl:1: .*'of another prompt', which the case does not have"):
        supervise(tmp_path / "across.jsonl", tmp_path / "out2", **LONGER._asdict())
    with pytest.raises(FileError, match="no such file"):
        supervise(
            cases,
            tmp_path / "out3",
            Config(min_precision=0.9),
            **Files("longer", calibration_cases=tmp_path / "none")._asdict(),
        )
    assert not any((tmp_path / name).exists() for name in ("out", "out2", "out3"))


def test_a_trained_model_refuses_the_prompts_it_was_trained_on(tmp_path):
    ranked = [
        case(f"t{index}", "ab", text=f"train {index}", ranking=(("a",), ("b",)), language="zh") for index in range(4)
    ]
    file = write(tmp_path / "train.jsonl", ranked)
    train(file, tmp_path / "rm", Training(epochs=1), model=tiny.save_base(tmp_path / "base"))
    fresh = write(tmp_path / "fresh.jsonl", noisy(20, seed=3))
    model = Files(model=str(tmp_path / "rm"))
    run = supervise(fresh, tmp_path / "out", Config(policy="cycles"), **model._asdict())
    assert run.summary.supervisor.trained_on == str(tmp_path / "rm")
    seen = write(tmp_path / "seen.jsonl", [*noisy(3), judged("new").__class__(
        prompt=ranked[0].prompt.__class__(id="other id", messages=ranked[0].prompt.messages, language="zh"),
        responses=judged("x").responses, judgments=judged("x").judgments,
    )])  # fmt: skip
    with pytest.raises(EvidenceError, match=r"trained on 1 of 4 prompts .1 by their text., the first: 'other id'"):
        supervise(seen, tmp_path / "x", **model._asdict())
    with pytest.raises(EvidenceError, match="trained on 1 of 4 prompts"):
        supervise(fresh, tmp_path / "x", Config(min_precision=0.5), **model._replace(calibration_cases=seen)._asdict())
    with pytest.raises(EvidenceError, match="languages that the supervisor rm was not trained on: he"):
        supervise(write(tmp_path / "he.jsonl", noisy(3, language="he")), tmp_path / "x", **model._asdict())
    file.rename(tmp_path / "moved.jsonl")
    # The model keeps hashes of its prompts: their file need not be at hand, nor whole.
    gone = supervise(fresh, tmp_path / "z", Config(policy="cycles"), **model._asdict())
    assert gone.counts == run.counts
    with pytest.raises(EvidenceError, match="trained on 1 of 4 prompts"):
        supervise(seen, tmp_path / "x", **model._asdict())
    (tmp_path / "rm" / TRAINED_ON_FILE).unlink()
    with pytest.raises(ModelError, match="the training cases of the supervisor are no longer at their recorded place"):
        supervise(fresh, tmp_path / "x", **model._asdict())
    with pytest.raises(ModelError, match="was not trained on"):
        supervise(fresh, tmp_path / "x", **model._replace(train_cases=fresh)._asdict())
    moved = model._replace(train_cases=tmp_path / "moved.jsonl")
    assert supervise(fresh, tmp_path / "y", Config(policy="cycles"), **moved._asdict()).counts == run.counts
    score(seen, tmp_path / "scored", model=str(tmp_path / "rm"))
    given = Files(scores=tmp_path / "scored" / "scores.jsonl", train_cases=tmp_path / "moved.jsonl")
    with pytest.raises(EvidenceError, match="trained on 1 of 4 prompts"):
        supervise(seen, tmp_path / "x", **given._asdict())


def test_a_cross_fitted_model_may_judge_its_training_prompts(tmp_path):
    ranked = [
        case(f"p{index}", "ab", text=f"q {index}", ranking=(("a",), ("b",)), language="zh") for index in range(20)
    ]
    file = write(tmp_path / "train.jsonl", ranked)
    llm = [one.__class__(prompt=one.prompt, responses=one.responses, judgments=judged("x").judgments) for one in ranked]
    config = Config(model={"train": str(file), "min_documents": 1})
    run = supervise(write(tmp_path / "llm.jsonl", llm), tmp_path / "out", config, **Files("ngram")._asdict())
    assert run.summary.supervisor.is_cross_fitted
    assert run.counts.num_used == 20  # "answer a" beats "answer b" in every fold
    with pytest.raises(ModelError, match="the model is trained on"):
        supervise(
            tmp_path / "llm.jsonl",
            tmp_path / "x",
            config,
            **Files("ngram", train_cases=tmp_path / "llm.jsonl")._asdict(),
        )


def of_size(path, number):
    return write(path, [judged("other", llm=("a>b",) * number + ("a=b", "b?c"), human=("a>b",))])


def test_as_many_verdicts_are_kept_as_another_file_has(cases, tmp_path):
    # Margins 2, 2, 2, 1, -1 and -3: the fifth is -1. Ties, replies without a verdict and people are no verdicts.
    run = supervise(cases, tmp_path / "out", model="longer", as_many_as=of_size(tmp_path / "5.jsonl", 5))
    assert (run.summary.min_margin, run.summary.num_strict_kept) == (-1.0, 5)
    assert run.counts.dropped == {"disagrees": 1, "tie": 1, "unparsed": 1}
    (dropped,) = [row for row in read_lines(tmp_path / "out" / "manifest.jsonl") if row["rule"] == "disagrees"]
    assert (dropped["left"], dropped["right"], dropped["margin"]) == ("c", "a", -3.0)
    assert run.inputs["as_many_as"].path.endswith("5.jsonl")
    # Three verdicts have the second largest margin: none of them is chosen before the others.
    run = supervise(cases, tmp_path / "two", model="longer", as_many_as=of_size(tmp_path / "2.jsonl", 2))
    assert (run.summary.min_margin, run.summary.num_strict_kept) == (2.0, 3)


def test_the_verdicts_of_the_closest_scores_are_a_control_of_equal_size(cases, tmp_path):
    # The differences in length are 1, 1, 2, 2, 2 and 3, whichever response is preferred.
    config, two = Config(policy="closest"), of_size(tmp_path / "2.jsonl", 2)
    run = supervise(cases, tmp_path / "out", config, model="longer", as_many_as=two)
    assert (run.summary.max_difference, run.summary.min_margin, run.summary.num_strict_kept) == (1.0, None, 2)
    assert run.counts.dropped == {"farther apart": 4, "tie": 1, "unparsed": 1}
    pairs = [pair for each in read_cases(tmp_path / "out" / "cases.jsonl") for pair in each.pairs or ()]
    assert len(pairs) == 2
    run = supervise(cases, tmp_path / "all", config, model="longer", as_many_as=of_size(tmp_path / "6.jsonl", 6))
    assert (run.summary.max_difference, run.summary.num_strict_kept) == (3.0, 6)


@pytest.mark.parametrize("number", [0, 7])
def test_a_size_without_verdicts_or_above_all_is_refused(cases, tmp_path, number):
    message = f"other.jsonl has {number} strict judgments.*\n  allowed: from 1 to 6, the scored ones"
    with pytest.raises(EvidenceError, match=message):
        supervise(cases, tmp_path / "out", model="longer", as_many_as=of_size(tmp_path / "other.jsonl", number))
    assert not (tmp_path / "out" / "cases.jsonl").exists()


def test_settings_that_contradict_are_refused_before_anything_is_made(cases, tmp_path):
    with pytest.raises(ConfigError, match="neither model nor scores"):
        supervise(cases, tmp_path / "out", **Files()._asdict())
    assert not (tmp_path / "out").exists()


DIES = """
import os, signal, sys
from pathlib import Path
from steelyard.evaluation.supervisor import SupervisionFiles as Files
from steelyard.stages.supervise import Config, supervise

def kill(event, args):
    if event == "os.rename" and str(args[1]).endswith(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[3]:
    sys.addaudithook(kill)
supervise(Path(sys.argv[1]), Path(sys.argv[2]), Config(min_margin=2.0), **Files(model="longer")._asdict())
"""


DYING = """
import os, signal
from pathlib import Path
from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Scores

class Config(BaseConfig, frozen=True):
    log: str = ""

class Model:
    def __init__(self, log): self.log = Path(log)
    def score(self, cases):
        for case in cases:
            said = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
            if len(said) in (3, 10):
                self.log.write_text("\\n".join([*said, "died"]) + "\\n", encoding="utf-8")
                os.kill(os.getpid(), signal.SIGKILL)
            self.log.write_text("\\n".join([*said, case.prompt.id]) + "\\n", encoding="utf-8")
            yield Scores(
                prompt=case.prompt.id, language="zh", scores={one.id: float(len(one.text)) for one in case.responses}
            )
    def protocol(self): return {"model": "dying"}

def build(config): return Model(config.log)
"""


@pytest.mark.slow
def test_nothing_is_scored_twice_after_a_kill(tmp_path):
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "dying.py").write_text(DYING, encoding="utf-8")
    write(tmp_path / "llm.jsonl", noisy(6, seed=1, name="l"))
    write(tmp_path / "held.jsonl", noisy(400, seed=2)[:5])
    log = tmp_path / "log.txt"
    words = ["supervise", "llm.jsonl", "--model", "my.dying", "--set", f"model.log={log}", "--out", "out"]
    words += ["--calibration-cases", "held.jsonl", "--min-precision", "0.1", "--confidence", "0.2"]
    code = "from steelyard.cli.main import main; main()"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    runs = [warm_process.run("-c", code, *words, cwd=tmp_path, env=environment) for _ in range(3)]
    assert [run.returncode for run in runs] == [-signal.SIGKILL, -signal.SIGKILL, 0], runs[2].stderr
    said = log.read_text("utf-8").split()
    assert said == ["l0", "l1", "l2", "died", "l3", "l4", "l5", "h0", "h1", "h2", "died", "h3", "h4"]
    assert "6 cases were scored before this run was stopped" in runs[2].stderr
    for name, number in (("scores", 6), ("calibration_scores", 5)):
        assert len(read_lines(tmp_path / "out" / f"{name}.jsonl")) == number
    assert not list((tmp_path / "out").glob("*.part.jsonl"))


@pytest.mark.slow
@pytest.mark.parametrize("dies_before", ["scores.jsonl", "manifest.jsonl", "cases.jsonl", "run.json"])
def test_a_run_that_is_killed_goes_on_to_the_same_result(cases, tmp_path, dies_before):
    whole = supervise(cases, tmp_path / "whole", Config(min_margin=2.0), **LONGER._asdict())
    killed = warm_process.run("-c", DIES, cases, tmp_path / "out", dies_before)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "out" / "run.json").exists()
    again = supervise(cases, tmp_path / "out", Config(min_margin=2.0), **LONGER._asdict())
    assert (again.outputs, again.counts, again.summary) == (whole.outputs, whole.counts, whole.summary)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted([*whole.outputs, "run.json"])
    with pytest.raises(OutputError, match="other inputs or settings"):
        supervise(cases, tmp_path / "out", **LONGER._asdict())


def test_parquet_cases_are_read_too(cases, tmp_path):
    write_cases(tmp_path / "llm.parquet", read_cases(cases))
    run = supervise(tmp_path / "llm.parquet", tmp_path / "out", **LONGER._asdict())
    assert run.counts == supervise(cases, tmp_path / "lines", **LONGER._asdict()).counts


MODEL, SCORES = Files(model="longer"), Files(scores=Path("s"))
CALIBRATED = MODEL._replace(calibration_cases=Path("h"))


@each(
    ("config", "files", "message"),
    [
        (Config(), Files(), "neither model nor scores"),
        (Config(), Files(model="longer", scores=Path("s")), "both model and scores"),
        (Config(min_margin=1.0, min_precision=0.9), CALIBRATED, "min_margin with calibration_cases"),
        (Config(), CALIBRATED, "calibration_cases and min_precision go together"),
        (Config(min_precision=0.9), MODEL, "calibration_cases and min_precision go together"),
        (Config(confidence=0.9), MODEL, "confidence without calibration_cases"),
        (Config(policy="cycles", keep_ties=True), MODEL, "keep_ties with the policy cycles"),
        (Config(policy="cycles", min_margin=1.0), MODEL, "min_margin with the policy cycles"),
        (Config(policy="weight", min_precision=0.9), CALIBRATED, "calibration_cases with the policy weight"),
        (Config(scale=2.0), MODEL, "scale with the policy agree"),
        (Config(min_margin=1.0), MODEL._replace(as_many_as=Path("f")), "as_many_as sets the margin"),
        (Config(policy="weight"), MODEL._replace(as_many_as=Path("f")), "as_many_as sets the margin"),
        (Config(policy="closest"), MODEL, "closest without a number of verdicts"),
        (Config(policy="closest", min_margin=1.0), MODEL._replace(as_many_as=Path("f")), "as_many_as sets the margin"),
        (Config(min_precision=0.9), CALIBRATED._replace(as_many_as=Path("f")), "as_many_as sets the margin"),
        (Config(min_precision=0.9), SCORES._replace(calibration_cases=Path("h")), "no scores of the calibration cases"),
        (Config(), SCORES._replace(calibration_scores=Path("h")), "calibration_scores goes with"),
        (
            Config(min_precision=0.9),
            CALIBRATED._replace(calibration_scores=Path("h")),
            "calibration_scores goes with",
        ),
        (Config(min_margin=-0.1), MODEL, "min_margin is -0.1"),
        (Config(min_margin=math.nan), MODEL, "min_margin is nan"),
        (Config(min_margin=math.inf), MODEL, "min_margin is inf"),
        (Config(min_precision=1.0), CALIBRATED, "min_precision is 1.0"),
        (Config(min_precision=0.9, confidence=0.0), CALIBRATED, "confidence is 0.0"),
        (Config(policy="weight", scale=0.0), MODEL, "scale is 0.0"),
        (Config(model={"seed": 1}), SCORES, r"settings of a model \(seed\) with scores"),
    ],
)
def test_what_contradicts_or_makes_no_sense_is_named(config, files, message):
    with pytest.raises(ConfigError, match=message):
        check_supervision(config, files)


@pytest.mark.parametrize(
    ("config", "files"),
    [
        (Config(min_margin=0.0, keep_ties=True), MODEL),
        (Config(min_precision=0.9, confidence=0.8), CALIBRATED),
        (Config(min_precision=0.9), SCORES._replace(calibration_cases=Path("h"), calibration_scores=Path("t"))),
        (Config(policy="weight", scale=2.0), SCORES),
        (Config(policy="cycles"), MODEL),
    ],
)
def test_what_fits_is_taken(config, files):
    check_supervision(config, files)


def test_the_rule_has_defaults_where_nothing_is_given():
    rule = Config(policy="weight").rule(0.5)
    assert (rule.policy, rule.min_margin, rule.scale, rule.keep_ties) == ("weight", 0.5, 1.0, False)
    assert rule.only.kind == ("llm", "model")
