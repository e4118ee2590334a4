import msgspec
import pytest

from steelyard.files.cases import write_cases
from steelyard.methods.ranking.evidence import Only
from steelyard.stages.resolve import Config, resolve
from steelyard.stages.resolve.quality import with_intervals
from strategies import case, judgment


def authored(one):
    responses = tuple(
        msgspec.structs.replace(response, author=f"model {response.id}", text="字" * (3 + index * 5))
        for index, response in enumerate(one.responses)
    )
    return msgspec.structs.replace(one, responses=responses)


def many(number=600):
    """Two people and an LLM on a and b of each prompt; bob disagrees with ann on every fifth; the LLM likes b."""
    for index in range(number):
        ann, bob = (
            "a>b" if index % 2 else "b>a",
            "b>a" if index % 2 and not index % 5 else "a>b" if index % 2 else "b>a",
        )
        judgments = [
            judgment(ann, judge="ann", shown=("a", "b")),
            judgment(bob, judge="bob", shown=("b", "a")),
            judgment("b>a", judge="llm", kind="llm", shown=("a", "b", "c")),
            judgment("b>c", judge="llm", kind="llm", shown=("a", "b", "c")),
        ]
        language = "zh" if index % 3 else "de"
        yield authored(case(id=f"p{index}", responses="abc", judgments=judgments, language=language))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("given") / "cases.jsonl"
    write_cases(path, many())
    return path


@pytest.fixture(scope="module")
def summary(file, tmp_path_factory):
    return resolve(file, tmp_path_factory.mktemp("out") / "run", workers=1).summary


def test_the_sections_of_the_summary_by_hand(summary):
    judges, agreement = summary["judges"]["by_judge"], summary["agreement"]
    assert set(judges) == {"ann", "bob", "llm"}
    assert set(summary["judges"]["by_kind"]) == {"human", "llm"}
    assert (judges["ann"]["num_judgments"], judges["llm"]["num_judgments"]) == (600, 1200)
    # ann prefers a, shown first, in half of the prompts; bob is shown b first: a in half, less one in ten.
    assert judges["ann"]["position"]["earlier"]["value"] == 0.5
    assert judges["bob"]["position"]["earlier"]["value"] == pytest.approx(0.5 + 0.1)
    # b is longer than a (8 to 3 characters: 0.625 of the longer), c longer than b.
    assert judges["ann"]["length"]["longer"]["value"] == 0.5
    assert judges["llm"]["length"]["longer"]["value"] == 0.5  # b over a, b over c
    first = next(one for one in agreement["judges"] if one["judges"] == ["ann", "bob"])
    assert first["agreement"]["value"] == pytest.approx(0.9)
    assert first["agreement"]["low"] < 0.9 < first["agreement"]["high"]
    assert summary["authors"]["strengths"][0]["author"] == "model b"
    assert summary["authors"]["num_verdicts"] == 2400


def test_the_ratios_with_intervals_are_those_of_the_report(summary):
    conflicts = summary["conflicts"]
    for by in ("by_judge", "by_kind", "by_language", "by_category"):
        for record in conflicts[by].values():
            assert record["ratio_low"] <= record["ratio"] <= record["ratio_high"]
    assert conflicts["overall"]["ratio_low"] < conflicts["overall"]["ratio"] < conflicts["overall"]["ratio_high"]
    for by in ("by_judge", "by_kind"):
        for name, record in conflicts[by].items():
            assert summary["judges"][by][name]["conflict_ratio"]["value"] == pytest.approx(record["ratio"])


def test_processes_change_nothing(file, summary, tmp_path):
    assert resolve(file, tmp_path / "two", workers=2).summary == summary


def test_without_quality_only_the_conflicts_are_told(file, summary, tmp_path):
    run = resolve(file, tmp_path / "off", Config(quality=False), workers=1)
    assert set(run.summary) == {"conflicts", "unranked_responses"}
    assert "ratio_low" not in run.summary["conflicts"]["overall"]
    assert run.summary["conflicts"]["overall"]["ratio"] == summary["conflicts"]["overall"]["ratio"]


def test_the_seed_moves_the_intervals_and_nothing_else(file, summary, tmp_path):
    run = resolve(file, tmp_path / "seed", Config(seed=1), workers=1)
    one, other = (of["judges"]["by_judge"]["bob"]["position"]["earlier"] for of in (run.summary, summary))
    assert (one["value"], one["n"]) == (other["value"], other["n"])
    assert one != other


def test_only_admitted_judgments_are_measured(file, tmp_path):
    run = resolve(file, tmp_path / "only", Config(only=Only(kind=("llm",))), workers=1)
    assert set(run.summary["judges"]["by_judge"]) == {"llm"}
    assert run.summary["agreement"]["judges"] == []
    assert run.summary["judges"]["by_judge"]["llm"]["position"]["places"][0]["num_shown"] == 3


def test_a_group_without_an_interval_stays_as_it_is():
    record = {"ratio": None, "ratio_of_strict": None}
    found = with_intervals({"overall": record, "by_judge": {"m": record}}, {})
    assert found == {"overall": record, "by_judge": {"m": record}}
