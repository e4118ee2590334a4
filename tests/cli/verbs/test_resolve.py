import json

import pytest
from typer.testing import CliRunner

from simulated_panels import panel_cases
from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError
from steelyard.io.cases import read_cases, write_cases
from strategies import case, judgment

CIRCLE = ["a>b", "b>c", "c>a", "a>d"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    llm = [judgment(short, judge="甲 [bold]", kind="llm") for short in CIRCLE]
    human = [judgment("a>b"), judgment("a>b", judge="k"), judgment("b>a", judge="l")]
    write_cases(tmp_path / "cases.jsonl", [case(judgments=llm, category=("数学",)), case(id="q", judgments=human)])
    return tmp_path


def called(*words):
    return CliRunner().invoke(build_app(), ["resolve", "cases.jsonl", "--out", "resolved", *words])


def test_help_example_runs(here):
    result = called("--only", "kind=human", "--only", "kind=llm", "--aggregate", "majority", "--verbose")
    assert result.exit_code == 0
    rows = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert rows[0].startswith("57.1% of judgments contradict others (4 of 7);")
    assert "20.0% of the pairs of answers are ordered." in rows[0]
    # 3 of 4 judgments in the circle, 1 of 3 outvoted; 3 and 1 of ten pairs each are ordered
    shown = " ".join(rows)
    for name, numbers in {
        "All judgments": ("57.1%", "57.1%", "100.0%", "20.0%", 7, 2),
        "LLM": ("75.0%", "75.0%", "100.0%", "30.0%", 4, 1),
        "甲 [bold]": ("75.0%", "75.0%", "100.0%", "30.0%", 4, 1), "l": ("0.0%", "0.0%", "0.0%", "10.0%", 1, 1),
        "数学": ("75.0%", "75.0%", "100.0%", "30.0%", 4, 1),
    }.items():  # fmt: skip
        ratio, strict, prompts, ordered, judgments, number = numbers
        start = f" {name} Conflict ratio {ratio}, Of strict judgments {strict}, "
        assert start in shown
        row = shown[shown.index(start) :]
        assert f"Prompts with a conflict {prompts}, Pairs ordered {ordered}, Judgments {judgments}, " in row
        assert f", prompts {number} " in row
    assert "2 in, 2 used" in result.stdout
    assert [one.ranking for one in read_cases(here / "resolved" / "cases.jsonl")] == [
        (("a", "b", "c"), ("d",)), (("a",), ("b",)),
    ]  # fmt: skip


def test_set_option_changes_the_config(here):
    assert called("--set", "aggregate=majority", "--set", 'only.judge=["k"]').exit_code == 0
    assert [one.ranking for one in read_cases(here / "resolved" / "cases.jsonl")] == [None, (("a",), ("b",))]


def test_json_option_prints_the_run(here):
    found = json.loads(called("--json").stdout)
    assert found == json.loads((here / "resolved" / "run.json").read_text(encoding="utf-8"))
    assert found["summary"]["conflicts"]["overall"]["num_judgments"] == 7


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "jugde=j"], "did you mean 'judge'"),
        (["--aggregate", "mean"], "aggregate is 'mean'"),
        (["--set", "x=1"], "unknown setting 'x'"),
    ],
)
def test_invalid_options_are_refused(words, message):
    error = called(*words).exception
    assert isinstance(error, ConfigError)
    assert message in str(error)


def test_reports_cases_that_keep_their_ranking(here):
    write_cases(here / "cases.jsonl", [case(f"p{index}", "ab", ranking=(("a",), ("b",))) for index in range(3)])
    shown = called().stdout
    assert "No judgment counts here" in shown
    assert "3 cases have no judgment that counts, and keep the rankings that they came with." in shown
    assert "Conflicts" not in shown


def test_reports_pairs_with_even_votes(here):
    judgments = [judgment("a>b", judge="k"), judgment("b>a", judge="l")]
    write_cases(here / "cases.jsonl", [case(judgments=judgments)])
    assert (
        "1 pair of answers has no verdict with the most votes: an even vote is a tie."
        in called("--aggregate", "majority").stdout
    )
    assert "an even vote" not in called("--force").stdout


def test_reports_identical_judgments_that_vote_once(here):
    judgments = [judgment("a>b"), judgment("a>b"), judgment("a>b"), judgment("b>a", judge="k")]
    write_cases(here / "cases.jsonl", [case(judgments=judgments)])
    line = "2 judgments repeat an identical judgment of the same judge: each counts once"
    assert line in " ".join(called("--aggregate", "majority").stdout.split())
    assert line in " ".join(called("--force").stdout.split())


def test_the_judge_that_stands_out_is_named_with_its_change(here):
    write_cases(here / "cases.jsonl", panel_cases(200, (0.9, 0.9, 0.9), seed=3, late={1: 0.1}, batches=10))
    lines = called().stdout.splitlines()
    named = next(line for line in lines if line.startswith("j1 agrees least with the other judges: "))
    assert "points below the median of the others" in named
    assert any(line.startswith("j1 agrees less since batch 6: ") for line in lines)


def test_a_fair_panel_and_judges_without_shared_pairs_name_nobody(here):
    assert "stands out" not in called().stdout
    write_cases(here / "cases.jsonl", panel_cases(30, (0.9, 0.9, 0.9), seed=3))
    result = called("--force")
    assert "No judge stands out: of 3 judges, " in result.stdout


def test_what_a_majority_of_the_judges_would_order_is_one_line(here):
    # Of three pairs one is outvoted 2:1, one is a draw of two, and one has a single judge.
    judgments = [judgment(short, judge=f"j{place}") for place, short in enumerate(["a>b", "a>b", "b>a", "b>c", "c>b"])]
    write_cases(here / "cases.jsonl", [case(responses="abc", judgments=[*judgments, judgment("a>c")])])
    line = "with aggregate=majority the rankings would order {} of the pairs of answers."
    # The vote has a above b and c, which are even: two of three pairs. All verdicts form one circle: none.
    assert line.format("66.7%") in called().stdout
    assert json.loads((here / "resolved/run.json").read_text())["summary"]["share_ordered_by_majority"] == 2 / 3
    voted = called("--aggregate", "majority", "--force").stdout
    assert "66.7% of the pairs of answers are ordered." in voted
    assert "Several judges" not in voted


def test_pairs_of_one_judge_each_have_no_majority(here):
    write_cases(here / "cases.jsonl", [case(judgments=[judgment("a>b"), judgment("b>a"), judgment("b>c", judge="k")])])
    assert "Several judges" not in called().stdout


def test_first_answers_beside_aligned_ones_are_told_with_the_option_that_leaves_them_out(here):
    def stage(short, stage, judge):
        return judgment(
            short, judge=judge, task="1-1" + ("" if stage == "annotation" else f"-{stage}"), meta={"stage": stage}
        )

    judgments = [
        stage("a>b", "annotation", "j"),
        stage("b>a", "annotation", "k"),
        stage("b>a", "alignment", "alignment"),
    ]
    write_cases(here / "cases.jsonl", [case(responses="ab", judgments=judgments)])
    shown = called().stdout
    assert "100.0% of judgments contradict others (3 of 3)" in shown
    assert (
        "2 judgments are first answers to tasks that people aligned or settled later; evidence=aligned reads" in shown
    )
    aligned = called("--only", "evidence=aligned", "--force").stdout
    assert "100.0% of the pairs of answers are ordered." in aligned
    assert "first answers" not in aligned
    assert next(read_cases(here / "resolved/cases.jsonl")).ranking == (("b",), ("a",))
