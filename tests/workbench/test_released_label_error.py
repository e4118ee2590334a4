"""A release states the label error by people's first answers, which its cases lack, and `evaluate` uses it."""

import re
import tomllib

import pytest
from sqlalchemy import select, update

from steelyard.core.errors import ConfigError
from steelyard.stages.compare import compare
from steelyard.stages.evaluate import Config, evaluate
from steelyard.stages.leaderboard import leaderboard
from steelyard.workbench.results.releases import files_of, make_release, release_file
from steelyard.workbench.storage.release_tables import StoredRelease
from steelyard.workbench.storage.tables import StoredAnswer, StoredItem
from workbench_people import NOON, answer_all, make_project
from workbench_site import made_once

NUM_CASES, NUM_DISPUTED = 25, 5
VALUE = r'"label" = \{ "macro" = \{ "value" = [\d.]+'


@pytest.fixture
def folder(database, tmp_path):
    """The folder of a release."""
    made_once(database, make_triples)
    made = tmp_path / "bench"
    made.mkdir()
    with database.reading() as session:
        (release,) = session.scalars(select(StoredRelease)).all()
        for path in files_of(release):
            (made / path).write_bytes(b"".join(release_file(session, release, path)))
    return made


def make_triples(database):
    """Release triples, of which the second person reversed some, and both then agreed on the first one's order."""
    project, people = make_project(database, num_cases=NUM_CASES)
    seen = dict.fromkeys(people, 0)

    def order(person, shown):
        seen[person] += 1
        return sorted(shown, reverse=person == people[1] and seen[person] <= NUM_DISPUTED)

    answer_all(database, project, people, order=order)

    def settle(session):
        answers = session.scalars(select(StoredAnswer)).all()
        by_task = {(each.task_id, each.person_id): each for each in answers}
        for (task, person), answer in by_task.items():
            if person == people[0] and answer.content != by_task[task, people[1]].content:
                session.add(
                    StoredAnswer(
                        task_id=task, person_id=person, stage="alignment", content=answer.content, seconds=0.0, at=NOON
                    )
                )
        session.execute(update(StoredItem).values(state="finished"))

    database.write(settle)
    make_release(database, project, "1.0", evidence="aligned", by=None, at=NOON)


def evaluated(folder, out, model="longer", **bench):
    return evaluate([folder], out, Config(num_resamples=50, baselines=(), bench=bench), model=model)


def test_a_release_states_the_error_of_its_labels(folder):
    stated = tomllib.loads((folder / "bench.toml").read_text())["label_error"]
    assert (stated["method"], stated["items"]) == ("people", NUM_CASES)
    assert stated["files"] == tomllib.loads((folder / "bench.toml").read_text())["files"]
    # Two people contradict each other on 15 of 75 pairs: e = (1 - sqrt(0.6)) / 2, and twice d / 2 with coin tosses.
    assert stated["label"]["micro"]["value"] == pytest.approx(0.1127, abs=0.01)
    assert stated["most"]["micro"]["value"] == pytest.approx(0.2, abs=0.02)
    assert stated["label"]["micro"]["low"] < 0.1127 < stated["label"]["micro"]["high"]
    exact = stated["exact_match"]["micro"]
    assert 0.4 < exact["low"] < exact["value"] < exact["high"] < 1
    assert exact["n"] == NUM_CASES


def test_an_evaluation_of_it_has_the_ceiling_without_another_option(folder, tmp_path):
    runs = {model: evaluated(folder, tmp_path / model, model) for model in ("longer", "random")}
    found = runs["longer"].summary.measures.label_error
    stated = tomllib.loads((folder / "bench.toml").read_text())["label_error"]["label"]
    assert (found.num_stated, found.num_settled_alone, found.why) == (NUM_CASES, 3 * NUM_DISPUTED, None)
    assert found.perfect.macro.value == pytest.approx(1 - stated["macro"]["value"])
    assert found.distance.micro.value == pytest.approx(
        found.perfect.micro.value - runs["longer"].summary.accuracy_micro.value
    )
    assert found.distance.micro.low < found.distance.micro.value < found.distance.micro.high
    board = leaderboard([tmp_path / name for name in runs], out=tmp_path / "board")
    assert board.summary.ceiling.accuracy == found.perfect.macro
    compared = compare([tmp_path / name for name in runs], tmp_path / "compared")
    assert compared.summary.ceiling == board.summary.ceiling
    assert board.summary.ceiling.exact_match == found.exact_match.macro
    distance = found.exact_match.micro.value - runs["longer"].summary.exact_match_micro.value
    assert found.exact_distance.micro.value == pytest.approx(distance)


def test_a_file_without_it_reads_as_before(folder, tmp_path):
    text = (folder / "bench.toml").read_text()
    (folder / "bench.toml").write_text(text[: text.index("[label_error]")])
    found = evaluated(folder, tmp_path / "out").summary.measures.label_error
    assert (found.label, found.num_stated) == (None, 0)


def test_it_is_not_used_for_other_cases(folder, tmp_path):
    lines = (folder / "cases.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "cases.jsonl").write_bytes(b"".join(lines[1:]))
    run = evaluated(folder, tmp_path / "out", files={})
    assert run.summary.measures.label_error.label is None
    (finding,) = [each for each in run.findings if each.check == "label_error_of_other_cases"]
    assert (finding.count, finding.total) == (NUM_CASES - 1, NUM_CASES)


def test_it_is_not_used_for_changed_cases_of_the_same_number(folder, tmp_path):
    text = (folder / "cases.jsonl").read_text()
    (folder / "cases.jsonl").write_text(text.replace("Question 0?", "Question 0!"))
    assert text != (folder / "cases.jsonl").read_text()
    run = evaluated(folder, tmp_path / "out", files={})
    assert run.summary.measures.label_error.label is None
    assert "label_error_of_other_cases" in {each.check for each in run.findings}


@pytest.mark.parametrize(
    ("pattern", "replacement", "key"),
    [
        (r'"items" = 25', '"items" = 0', "label_error.items"),
        (r'"method" = "people"', 'method = "guess"', "label_error.method"),
        (VALUE, "label = { macro = { value = 1.5", "label_error.label.macro.value"),
        (VALUE, "label = { macro = { value = 0.9", "label_error.label.macro"),
        (VALUE, "label = { macro = { value = nan", "label_error.label.macro"),
        (r'"items" = 25', '"items" = 25\nerror = 3', "error"),
        (r'"most" = .*', "", "most"),
    ],
    ids=["none", "method", "range", "interval", "nan", "unknown", "absent"],
)
def test_a_broken_one_is_an_error_with_file_and_key(folder, tmp_path, pattern, replacement, key):
    text, number = re.subn(pattern, replacement, (folder / "bench.toml").read_text())
    assert number == 1
    (folder / "bench.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        evaluated(folder, tmp_path / "out")
    assert str(folder / "bench.toml") in str(caught.value)
    assert key in str(caught.value)
    assert not (tmp_path / "out").exists()
