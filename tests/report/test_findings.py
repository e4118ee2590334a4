from pathlib import Path

from steelyard.core.types import Counts, InputFinding, Run
from steelyard.evaluation.evaluations import JOINED_RUNS, joined_findings
from steelyard.report.findings import findings_section
from steelyard.report.page import COMMA
from steelyard.report.sources import FinishedRun


def source(name, *findings, stage="evaluate"):
    counts = Counts(num_in=9, num_used=9)
    return FinishedRun(name, Path(name), Run(stage=stage, config={}, counts=counts, summary={}, findings=findings))


def repeated(count, *runs):
    details = {JOINED_RUNS: ", ".join(runs)} if runs else {}
    return InputFinding(check="repeated_prompts", count=count, total=9, details=details)


def stated(*sources):
    return [(each.values["name"], each.values["count"]) for each in findings_section(sources).sentences]


def test_a_finding_of_several_runs_is_stated_once_with_their_names():
    one, two = stated(source("a", repeated(2)), source("b", repeated(3)), source("c", repeated(2)))
    assert one == (COMMA.join("ac"), "2")
    assert two == ("b", "3")


def test_a_leaderboard_repeats_no_finding_of_evaluations_on_the_page():
    board = source("board", repeated(2, "x", "y"), stage="leaderboard")
    assert len(stated(board, source("a", repeated(2)), source("b", repeated(2)))) == 1
    # One of its two evaluations is not on the page, so that nothing else states its finding.
    assert [name for name, _ in stated(board, source("a", repeated(2)))] == ["a", "board (x, y)"]
    assert [name for name, _ in stated(board)] == ["board (x, y)"]


def without_hashes(file):
    return InputFinding(check="scores_without_hashes", count=2, total=9, details={"file": file})


def test_a_finding_in_the_files_of_many_runs_is_one_sentence():
    runs = [source(f"m{number}", without_hashes(f"m{number}.jsonl")) for number in range(50)]
    ((name, _),) = stated(*runs)
    assert name == COMMA.join(["m0", "m1", "m2", "m3", "… (50)"])
    (finding,) = joined_findings({each.name: each.run for each in runs})
    board = source("board", finding, stage="leaderboard")
    assert len(stated(board, *runs)) == 1, "its evaluations state it"
    assert stated(board)[0][0] == "board (m0, m1, m2, m3, … (50))"
    assert [name for name, _ in stated(source("a", without_hashes("x"), without_hashes("y")))] == ["a (x)", "a (y)"]


def test_no_finding_is_an_empty_section():
    section = findings_section([source("a")])
    assert (section.sentences, section.evidence) == ((), ())
