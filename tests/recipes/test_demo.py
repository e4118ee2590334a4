import pytest

import steelyard as sy
from resolved_cases import resolve_cases
from steelyard.core.errors import ConfigError, EvidenceError, OutputError
from steelyard.core.types import Judgment
from steelyard.io.cases import read_cases
from steelyard.recipes.demo import PairShare, demo, read_key, right_pairs, right_verdicts
from strategies import case

SMALL = {
    "simulated": {"num_prompts": 48, "test_share": 0.34, "llm_share": 0.5},
    "backbone": {"hidden_size": 32, "num_layers": 1, "vocabulary": 600},
    "human_model": {"epochs": 1},
    "model": {"epochs": 1},
    "evaluated": {"num_resamples": 50},
    "by_kind": {"num_resamples": 50},
    "human_by_kind": {"num_resamples": 50},
    "compared": {"num_resamples": 50},
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    return out, demo(out, SMALL)


def test_demo_writes_the_report_page(done):
    out, result = done
    assert list(result.runs)[-1] == "report"
    assert result.page == out / "report" / "report.html"
    assert "imulated" in result.page.read_text("utf-8")
    assert result.runs["report"].summary.simulated is True


def test_no_test_prompt_is_trained_on(done):
    out, _ = done
    trained, tested = (
        list(read_cases(out / "combined" / "cases.jsonl")),
        list(read_cases(out / "simulated" / "test.jsonl")),
    )
    assert not {one.prompt.id for one in trained} & {one.prompt.id for one in tested}
    texts = {response.text for one in trained for response in one.responses if response.meta["made_by"] != "evasive"}
    assert not texts & {response.text for one in tested for response in one.responses}


def test_rankings_follow_from_verdicts(done):
    out, _ = done
    ranked = list(read_cases(out / "human" / "cases.jsonl"))
    assert [one.ranking for one in ranked] == [one.ranking for one in resolve_cases(ranked)[0]]
    assert all(judgment.judge.startswith("simulated-") for one in ranked for judgment in one.judgments)


def test_llm_verdicts_are_resolved_separately(done):
    _, result = done
    made, own = result.runs["simulated"].summary, result.runs["llm"].summary.conflicts
    assert set(own.by_kind) == {"llm"}
    counted = own.overall.num_judgments + own.overall.num_none
    assert counted == made.num_judgments["llm"] == 10 * made.num_prompts["llm"]


def test_evaluation_by_kind_has_baselines(done):
    _, result = done
    kinds = result.runs["by_kind"].summary
    assert {"longer", "random", "ngram"} <= set(kinds.baselines)
    made = set(result.runs["simulated"].summary.num_responses["test"])
    assert set(kinds.by_category) == made - {"good_answer"} | {"code_switched (unseen)"}


def test_finished_stages_are_skipped_and_changed_settings_refused(done):
    out, result = done
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.name != "overview.json" and path != out}
    assert demo(out, SMALL).runs == result.runs
    assert {path: path.stat().st_mtime_ns for path in before} == before
    with pytest.raises(OutputError, match="another run"):
        demo(out, SMALL, seed=1)


def test_the_llm_s_verdicts_are_supervised_and_debiased(done):
    _, result = done
    right, supervised = result.right_by_key, result.runs["supervised"]
    assert right.llm.total == supervised.summary.num_strict
    assert right.supervised.total == supervised.summary.num_strict_kept
    sides = result.runs["debiased"].summary.overall.after
    assert sides.num_more == sides.num_less
    people, llm = (result.runs[name].counts.num_in for name in ("human", "llm"))
    assert result.runs["combined"].summary.num_cases == people + llm


def test_agreement_with_the_key_counts_pairs_and_strict_verdicts():
    key = read_key([case(responses="abc", ranking=(("b",), ("a",), ("c",)))])
    # The ranking orders a over b, a over c; the key says b > a > c: one of the two is right.
    assert right_pairs([case(responses="abc", ranking=(("a",), ("b", "c")))], key) == PairShare(1, 2)
    # b over a and c over a: one is right; a tie and an unparsed verdict do not count.
    judgments = tuple(
        Judgment(left=left, right=right, verdict=verdict, judge="j", kind="llm")
        for left, right, verdict in (("a", "b", "right"), ("c", "a", "left"), ("a", "c", "tie"), ("b", "c", "none"))
    )
    assert right_verdicts([case(responses="abc", judgments=judgments)], key) == PairShare(1, 2)


def test_python_gives_each_stage_as_its_result(done):
    out, result = done
    pipeline = sy.demo(out=out, settings=SMALL)
    assert list(pipeline) == list(result.runs)
    assert pipeline["report"].html == result.page.read_text("utf-8")
    assert pipeline["evaluated"].accuracy == result.runs["evaluated"].summary.accuracy
    assert sy.score(pipeline["model"], prompt="?", responses=["a", "b"]) == sy.score(
        out / "model", prompt="?", responses=["a", "b"]
    )
    with pytest.raises(EvidenceError, match="did you mean 'evaluated'"):
        pipeline["evaluatd"]
    with pytest.raises(ConfigError, match="add real=True"):
        sy.demo(model="base")
