"""Labels of people within the file of a judge: made with the tool's own verbs, and used as the judge's nowhere."""

import shutil

import numpy as np
import pytest
from msgspec.structs import replace

from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case, Judgment, Message, Prompt, Response
from steelyard.io.cases import read_cases, write_cases
from steelyard.ranking.judgment_table import Only
from steelyard.stages.evaluate import Config, evaluate
from steelyard.stages.merge import merge
from steelyard.stages.resolve import Config as ResolveConfig
from steelyard.stages.resolve import resolve

CONFIG = Config(num_resamples=200)
NUM_PROMPTS, NUM_LABELLED = 300, 90


def case(index, *, kind, first_wins, repeats=1):
    verdict = "left" if first_wins else "right"
    judgments = [Judgment(left="a", right="b", verdict=verdict, judge=f"{kind}-{n}", kind=kind) for n in range(repeats)]
    return Case(
        prompt=Prompt(id=f"p{index}", messages=(Message(role="user", content=f"question {index}"),), language="en"),
        responses=(Response(id="a", text=f"a long answer to {index}"), Response(id="b", text=f"short {index}")),
        judgments=tuple(judgments),
    )


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """People's labels of the first prompts, three people each; a judge of all that is right in 3 of 4."""
    random = np.random.default_rng(3)
    truth = random.random(NUM_PROMPTS) < 0.8
    judge = np.where(random.random(NUM_PROMPTS) < 0.75, truth, ~truth)
    people = [case(index, kind="human", first_wins=truth[index], repeats=3) for index in range(NUM_LABELLED)]
    by_judge = [case(index, kind="llm", first_wins=judge[index]) for index in range(NUM_PROMPTS)]
    folder = tmp_path_factory.mktemp("labelled")
    write_cases(folder / "people.jsonl", people)
    write_cases(folder / "judge.jsonl", by_judge)
    resolve(folder / "people.jsonl", folder / "human")
    resolve(folder / "judge.jsonl", folder / "alone")
    merge([folder / "people.jsonl", folder / "judge.jsonl"], folder / "merged")
    return folder


@pytest.fixture
def files(labelled, tmp_path):
    """A copy that the test may change."""
    return shutil.copytree(labelled, tmp_path / "files")


def evaluated(files, judged, out, human="human", config=CONFIG):
    inputs = {"human": files / human / "cases.jsonl", "judged": files / judged / "cases.jsonl"}
    run = evaluate([], files / out, config, model="longer", **inputs)
    assert run.summary.prediction_powered is not None
    return run.summary.prediction_powered, run.findings


@pytest.mark.parametrize("aggregate", ["majority", "none", "dawid-skene"])
def test_labels_of_people_in_the_file_of_a_judge_are_not_the_judges(files, aggregate):
    resolve(files / "merged" / "cases.jsonl", files / "resolved", ResolveConfig(aggregate=aggregate))
    alone, _ = evaluated(files, "alone", "first")
    mixed, findings = evaluated(files, "resolved", "second")
    assert mixed.accuracy == alone.accuracy
    assert mixed.win_rates == alone.win_rates
    (finding,) = findings
    assert finding.check == "labels_of_people"
    # A ranking changes where the judge contradicts people, and only there.
    own = {each.key: each.ranking for each in read_cases(files / "alone" / "cases.jsonl")}
    resolved = read_cases(files / "resolved" / "cases.jsonl")
    assert finding.count == sum(each.ranking != own[each.key] for each in resolved)
    assert finding.total == NUM_PROMPTS


def test_pairs_by_judgments_are_those_of_the_judge(files):
    resolve(files / "merged" / "cases.jsonl", files / "resolved")
    config = replace(CONFIG, pairs="judged")
    alone, _ = evaluated(files, "alone", "first", config=config)
    mixed, _ = evaluated(files, "resolved", "second", config=config)
    assert mixed.accuracy == alone.accuracy


def test_a_ranking_of_people_beside_the_verdicts_of_a_judge_is_replaced(files):
    # `judge` adds its verdicts to the file that people ranked, whose ranking stays.
    human = {each.key: each for each in read_cases(files / "human" / "cases.jsonl")}
    ranked = [
        replace(each, judgments=human[each.key].judgments + each.judgments, ranking=human[each.key].ranking)
        if each.key in human
        else each
        for each in read_cases(files / "alone" / "cases.jsonl")
    ]
    (files / "ranked").mkdir()
    write_cases(files / "ranked" / "cases.jsonl", ranked)
    alone, _ = evaluated(files, "alone", "first")
    mixed, findings = evaluated(files, "ranked", "second")
    assert mixed.accuracy == alone.accuracy
    assert findings[0].count > 0


def test_a_file_resolved_by_the_judges_judgments_alone_stays_as_it_is(files):
    config = ResolveConfig(only=Only(kind=("llm",)), aggregate="dawid-skene")
    resolve(files / "merged" / "cases.jsonl", files / "only", config)
    alone, _ = evaluated(files, "alone", "first")
    only, findings = evaluated(files, "only", "second")
    assert only.accuracy == alone.accuracy
    assert findings == ()


def test_prompts_that_only_people_judged_have_no_label_of_the_judge(files):
    cases = list(read_cases(files / "merged" / "cases.jsonl"))
    silent = [
        replace(each, judgments=tuple(j for j in each.judgments if j.kind == "human")) if index < 20 else each
        for index, each in enumerate(cases)
    ]
    write_cases(files / "silent.jsonl", silent)
    resolve(files / "silent.jsonl", files / "resolved", ResolveConfig(aggregate="majority"))
    judge = [
        replace(each, judgments=()) if index < 20 else each
        for index, each in enumerate(read_cases(files / "judge.jsonl"))
    ]
    write_cases(files / "fewer.jsonl", judge)
    resolve(files / "fewer.jsonl", files / "fewer")
    alone, _ = evaluated(files, "fewer", "first")
    mixed, _ = evaluated(files, "resolved", "second")
    assert mixed.accuracy == alone.accuracy


def test_the_labels_of_people_may_stand_beside_those_of_the_judge(files):
    resolve(files / "merged" / "cases.jsonl", files / "resolved")
    labelled = list(read_cases(files / "resolved" / "cases.jsonl"))[:NUM_LABELLED]
    (files / "both").mkdir()
    write_cases(files / "both" / "cases.jsonl", labelled)
    alone, _ = evaluated(files, "alone", "first")
    mixed, findings = evaluated(files, "resolved", "second", human="both")
    assert mixed.accuracy.human_only == alone.accuracy.human_only
    assert [finding.check for finding in findings] == ["labels_of_people", "labels_of_judges"]


def test_a_judge_that_never_contradicts_people_is_refused(files):
    resolve(files / "merged" / "cases.jsonl", files / "resolved", ResolveConfig(aggregate="majority"))
    bare = [replace(each, judgments=()) for each in read_cases(files / "resolved" / "cases.jsonl")]
    (files / "bare").mkdir()
    write_cases(files / "bare" / "cases.jsonl", bare)
    with pytest.raises(EvidenceError, match=f"contradicts people on none of {NUM_LABELLED} pairs"):
        evaluated(files, "bare", "first")
    with pytest.raises(EvidenceError, match="no label of its own"):
        evaluated(files, "human", "second")


def test_a_judge_without_a_ranking_is_told_to_rank_its_judgments_or_to_read_them_as_a_models(files):
    for name, kind in (("unranked", "llm"), ("as_people", "human")):
        (files / name).mkdir()
        write_cases(files / name / "cases.jsonl", [case(index, kind=kind, first_wins=True) for index in range(100)])
    with pytest.raises(EvidenceError, match=r"do: rank by the judge's own judgments: steelyard resolve \S+unranked"):
        evaluated(files, "unranked", "first")
    with pytest.raises(
        EvidenceError, match="judgments of people on 100 prompts are a model's, read them again: "
    ) as no:
        evaluated(files, "as_people", "second")
    assert "steelyard convert … with judge_kind=llm; or " in str(no.value)
