"""The stages of recipes in which people work: one import, a wait that goes on, and an export known by its hash."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import msgspec
import pytest
from sqlalchemy import func, select, update

import warm_process
from steelyard.core.errors import ConfigError, EvidenceError, FileError, OutputError, WaitingError
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.hashing import file_hash
from steelyard.io.kept import read_kept, write_kept
from steelyard.io.progress import worded_by
from steelyard.io.run_state import read_state
from steelyard.recipes.recipe import build_recipe
from steelyard.recipes.run import plan, run
from steelyard.workbench.accounts.people import NewPerson, add_person
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.pipeline.reviewing import Verdict, decide_batch
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredItem, StoredProject
from workbench_people import NOON, answer_all, cases

RULES = {"gold_share": 0.0, "delivery_share": 0.0, "operations_share": 0.0, "validation": False}
CONFIG = {"project": "bench", "secret": "WORKBENCH_HERE", "rules": RULES}
REJECTION = Verdict(is_accepted=False, reason="look again")


@pytest.fixture
def place(address, tmp_path, monkeypatch):
    """A folder with three cases, and the workbench of the environment variable ``WORKBENCH_HERE``."""
    monkeypatch.setenv("WORKBENCH_HERE", address)
    write_cases(tmp_path / "cases.jsonl", cases(3))
    database = Database(address)
    yield tmp_path, database
    database.close()


def recipe_of(folder, *, file="cases.jsonl", **changes):
    config = {**CONFIG, **changes}
    stages = {
        "asked": {"verb": "annotate", "cases": file, "config": config},
        "answers": {"verb": "annotated", "project": "asked/project.json"},
        "ranked": {"verb": "resolve", "cases": "answers/cases.jsonl", "config": {"quality": False}},
    }
    return build_recipe({"stages": stages}, folder / "recipe.toml")


def wait(recipe, out):
    with pytest.raises(WaitingError) as waiting:
        run(recipe, out)
    return str(waiting.value)


def work(database):
    """Let two people answer everything; both rank the responses by their names."""

    def hire(session):
        project = session.scalars(select(StoredProject)).one()
        return project.id, [
            add_person(session, NewPerson(f"person {number}", "annotator"), by=None, at=NOON).id for number in range(2)
        ]

    project, people = database.write(hire)
    answer_all(database, project, people)
    return project


def num_items(database):
    with database.reading() as session:
        return session.scalar(select(func.count(StoredItem.id)))


def states(recipe, out):
    return {stage.step.name: (stage.state, stage.why) for stage in plan(recipe, out)}


def test_a_recipe_waits_for_people_and_goes_on_when_they_have_finished(place):
    folder, database = place
    recipe, out = recipe_of(folder), folder / "out"
    said = wait(recipe, out)
    # Two answers to the one triple of each of three items.
    assert "3 of 3 items of the project 'bench' wait for people, with 6 answers to come" in said
    assert "workbench serve" in said
    assert read_state(out / "asked").state == "waiting"
    asked, answers, _ = plan(recipe, out)
    assert (asked.state, asked.num_waiting) == ("waiting", 3)
    assert asked.why.startswith("for people: ")
    assert "3 of 3 items" in asked.why
    assert "workbench serve" in asked.do
    assert (answers.state, answers.num_waiting, answers.do) == ("to run", 0, "")
    wait(recipe, out)
    assert num_items(database) == 3, "the same cases are imported once"
    work(database)
    completed = run(recipe, out)
    assert [stage.name for stage in completed] == ["asked", "answers", "ranked"]
    ranked = list(read_cases(out / "ranked" / "cases.jsonl"))
    assert [case.prompt.id for case in ranked] == ["q0", "q1", "q2"]
    assert all(case.ranking == (("r0",), ("r1",), ("r2",)) for case in ranked)
    assert all(stage.was_finished for stage in run(recipe, out))


def test_the_input_of_the_answers_is_the_export_and_not_the_database(place):
    folder, database = place
    recipe, out = recipe_of(folder), folder / "out"
    wait(recipe, out)
    project = work(database)
    run(recipe, out)
    record = json.loads((out / "answers" / "run.json").read_bytes())
    assert record["inputs"]["export"]["sha256"] == file_hash(out / "answers" / "cases.jsonl")

    # Another account changes the database and no answer.
    database.write(lambda session: add_person(session, NewPerson("late", "researcher"), by=None, at=NOON))
    assert states(recipe, out)["answers"] == ("finished", "")

    def reopen(session):
        row = session.get_one(StoredProject, project)
        batch = session.scalars(select(StoredItem.batch)).first()
        person = add_person(session, NewPerson("boss", "researcher"), by=None, at=NOON).id
        decide_batch(session, row, batch, REJECTION, layer="research", person=person, at=NOON)

    database.write(reopen)
    state, why = states(recipe, out)["answers"]
    assert (state, why) == ("differs", "another content of export: people have changed a decision")
    with pytest.raises(OutputError, match="another export"):
        run(recipe, out)
    with pytest.raises(WaitingError, match="3 items in annotation"):
        run(recipe, out, redo_from="answers")


def test_a_renamed_project_is_found_by_its_number(place):
    folder, database = place
    recipe, out = recipe_of(folder), folder / "out"
    wait(recipe, out)
    database.write(lambda session: session.execute(update(StoredProject).values(name="renamed")))
    assert "3 of 3 items of the project 'renamed'" in wait(recipe, out)
    work(database)
    run(recipe, out)
    assert num_items(database) == 3


def test_a_kill_after_the_import_and_another_folder_recognise_the_cases(place):
    folder, database = place
    recipe = recipe_of(folder)
    wait(recipe, folder / "out")
    (folder / "out" / "asked" / "project.json").unlink()
    wait(recipe, folder / "out")
    wait(recipe, folder / "beside")
    assert num_items(database) == 3


def test_two_runs_at_once_import_the_cases_once(place):
    folder, database = place
    barrier = Barrier(2)

    def start(name):
        barrier.wait()
        return wait(recipe_of(folder), folder / name)

    with ThreadPoolExecutor(2) as pool:
        problems = list(pool.map(start, ["one", "two"]))
    assert all("3 of 3 items" in problem for problem in problems)
    assert num_items(database) == 3


def test_stages_that_need_no_people_go_on_while_others_wait(place):
    folder, database = place
    content = {
        "asked": {"verb": "annotate", "cases": "cases.jsonl", "config": {**CONFIG, "project": "a"}},
        "again": {"verb": "annotate", "cases": "cases.jsonl", "config": {**CONFIG, "project": "b"}},
        "answers": {"verb": "annotated", "project": "asked/project.json"},
        "described": {"verb": "describe", "cases": "cases.jsonl"},
    }
    recipe = build_recipe({"stages": content}, folder / "recipe.toml")
    wait(recipe, folder / "out")
    assert (folder / "out" / "described" / "run.json").is_file()
    assert not (folder / "out" / "answers").exists()
    assert num_items(database) == 6, "both projects have their cases"


@pytest.mark.slow
def test_each_of_two_waits_is_worded_as_the_interface_words_remedies(place, capsys):
    folder, _ = place
    stages = {
        name: {"verb": "annotate", "cases": "cases.jsonl", "config": {**CONFIG, "project": name}}
        for name in ("one", "two")
    }
    recipe = build_recipe({"stages": stages}, folder / "recipe.toml")
    with worded_by(lambda remedy: f"<{type(remedy).__name__}>"):
        wait(recipe, folder / "out")
    (first,) = (line for line in capsys.readouterr().err.split("waiting: ")[1:])
    assert "'one' wait for people" in first
    assert ": <Command>, and run the same command again" in first


def test_simulated_people_that_are_killed_begin_anew(tmp_path):
    write_cases(tmp_path / "cases.jsonl", cases(1))
    config = {"project": "bench", "people": "simulated", "rules": RULES}
    asked = {"verb": "annotate", "cases": "cases.jsonl", "config": config}
    answers = {"verb": "annotated", "project": "asked/project.json"}
    recipe = build_recipe({"stages": {"asked": asked, "answers": answers}}, tmp_path / "recipe.toml")
    script = f"""
import os, signal
from steelyard.recipes.recipe import build_recipe
from steelyard.recipes.run import run
from steelyard.workbench.stages import annotate
annotate.work_until_finished = lambda simulation: os.kill(os.getpid(), signal.SIGKILL)
from pathlib import Path
folder = Path({str(tmp_path)!r})
run(build_recipe({{"stages": {{"asked": {asked!r}}}}}, folder / "recipe.toml"), folder / "out")
"""
    assert warm_process.Process(["-c", script]).wait().returncode == -signal.SIGKILL
    assert not (tmp_path / "out" / "asked" / "workbench.db").exists()
    assert states(recipe, tmp_path / "out")["asked"] == ("to go on", "interrupted")
    completed = run(recipe, tmp_path / "out")
    assert completed[0].run.summary.states == {"finished": 1}
    assert not list((tmp_path / "out" / "asked").glob("*unfinished*"))
    exported = list(read_cases(tmp_path / "out" / "answers" / "cases.jsonl"))
    assert exported[0].meta["simulated"] is True
    assert all(judgment.meta["simulated"] is True for judgment in exported[0].judgments)


def test_other_cases_are_refused_or_added_by_a_setting(place):
    folder, database = place
    wait(recipe_of(folder), folder / "out")
    write_cases(folder / "more.jsonl", cases(5))
    with pytest.raises(ConfigError, match="2 cases of the file are not in it, and 0 items of it are not in the file"):
        run(recipe_of(folder, file="more.jsonl"), folder / "second")
    assert num_items(database) == 3
    wait(recipe_of(folder, file="more.jsonl", add=True), folder / "second")
    assert num_items(database) == 5
    with pytest.raises(ConfigError, match="0 cases of the file are not in it, and 2 items of it are not in the file"):
        run(recipe_of(folder), folder / "third")


def test_other_texts_under_known_ids_are_refused(place):
    folder, database = place
    wait(recipe_of(folder), folder / "out")
    changed = cases(3)
    changed[1] = msgspec.structs.replace(changed[1], responses=changed[2].responses)
    write_cases(folder / "changed.jsonl", changed)
    for add in (False, True):
        with pytest.raises(
            EvidenceError, match="prompt 'q1' differs from the one that the people of 'bench' answer to"
        ):
            run(recipe_of(folder, file="changed.jsonl", add=add), folder / f"changed {add}")
    assert num_items(database) == 3


def test_a_project_of_other_settings_or_of_simulated_people_is_refused(place):
    folder, database = place

    def make(session):
        project = add_project(session, "bench", ProjectSettings(), by=None, at=NOON)
        import_cases(session, project, cases(3), batch="b", by=None, at=NOON)
        add_project(session, "played", ProjectSettings(), by=None, at=NOON, is_simulated=True)

    database.write(make)
    with pytest.raises(ConfigError, match=r"other settings: rules.delivery_share 0.3 there, 0.0 here"):
        run(recipe_of(folder), folder / "out")
    assert not (folder / "out" / "asked").exists(), "nothing half-written is left"
    with pytest.raises(ConfigError, match="the people of the project 'played' are simulated"):
        run(recipe_of(folder, project="played"), folder / "out")


def test_another_database_at_the_address_is_named(place, monkeypatch):
    folder, _ = place
    recipe, out = recipe_of(folder), folder / "out"
    wait(recipe, out)
    other = folder / "other.db"
    monkeypatch.setenv("WORKBENCH_HERE", f"sqlite:///{other}")
    with pytest.raises(FileError, match="there is no such file"):
        run(recipe, out)
    empty = Database(f"sqlite:///{other}")
    empty.migrate()
    with pytest.raises(FileError, match="the database has no project 'bench' with the number 1"):
        run(recipe, out)
    with empty.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    empty.close()
    with pytest.raises(FileError, match="by a newer program"):
        run(recipe, out)
    monkeypatch.delenv("WORKBENCH_HERE")
    with pytest.raises(ConfigError, match="the environment variable WORKBENCH_HERE is not set"):
        run(recipe, out)


def test_an_absent_database_of_finished_answers_is_said_in_the_plan(place, monkeypatch):
    folder, database = place
    recipe, out = recipe_of(folder), folder / "out"
    wait(recipe, out)
    work(database)
    run(recipe, out)
    monkeypatch.setenv("WORKBENCH_HERE", f"sqlite:///{folder / 'gone.db'}")
    assert states(recipe, out)["answers"] == ("differs", "there is no such file")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"project": " "}, "the project has no name"),
        ({"secret": None, "database": "postgresql://me:pass@host/x"}, "would be written into the records"),
        ({"database": "sqlite:///b.db"}, "two addresses"),
        ({"people": "simulated"}, "a database of their own"),
        ({"tasks": {"kind": "pairwise", "too_few": "skip"}, "project": "alone"}, "no case of the file gets a task"),
    ],
)
def test_settings_that_cannot_be_are_refused(place, changes, problem):
    folder, _ = place
    write_cases(folder / "cases.jsonl", cases(2, 1))
    with pytest.raises((ConfigError, EvidenceError), match=problem):
        run(recipe_of(folder, **changes), folder / "out")
    assert not (folder / "out" / "asked").exists()


def test_prompts_that_people_drop_leave_the_prompts_that_stay(place):
    folder, database = place
    recipe = recipe_of(folder)
    wait(recipe, folder / "out")
    database.write(
        lambda session: session.execute(update(StoredItem).values(state="finished").where(StoredItem.prompt != "q1"))
    )
    database.write(
        lambda session: session.execute(update(StoredItem).values(state="dropped").where(StoredItem.prompt == "q1"))
    )
    write_kept(folder / "kept.json", ["q0", "q1", "q9"], {"q2": ["damaged"]})
    content = {
        "stages": {
            "asked": {"verb": "annotate", "cases": "cases.jsonl", "config": CONFIG},
            "answers": {"verb": "annotated", "project": "asked/project.json", "kept_prompts": "kept.json"},
        }
    }
    completed = run(build_recipe(content, folder / "recipe.toml"), folder / "out")
    record = completed[1].run
    assert record.counts.dropped == {"dropped by people": 1}
    kept = read_kept(folder / "out" / "answers" / "kept.json")
    assert kept.prompts == ("q0", "q9")
    assert kept.left_out == {"q1": ("dropped by people",), "q2": ("damaged",)}
    write_kept(folder / "kept.json", ["q1"], {})
    with pytest.raises(EvidenceError, match="people refuse every prompt"):
        run(build_recipe(content, folder / "recipe.toml"), folder / "out", redo_from="answers")
    write_kept(folder / "kept.json", ["x1"], {})
    with pytest.raises(EvidenceError, match="people saw none of the prompts of this file"):
        run(build_recipe(content, folder / "recipe.toml"), folder / "out", redo_from="answers")


def test_settings_are_refused_before_an_earlier_stage_runs(place, monkeypatch):
    folder, _ = place
    stages = {
        "merged": {"verb": "merge", "files": ["cases.jsonl"]},
        "asked": {"verb": "annotate", "cases": "merged/cases.jsonl", "config": {**CONFIG, "project": ""}},
    }
    with pytest.raises(ConfigError, match="the project has no name"):
        run(build_recipe({"stages": stages}, folder / "recipe.toml"), folder / "out")
    stages["asked"]["config"] = CONFIG
    monkeypatch.delenv("WORKBENCH_HERE")
    with pytest.raises(ConfigError, match="the environment variable WORKBENCH_HERE is not set"):
        run(build_recipe({"stages": stages}, folder / "recipe.toml"), folder / "out")
    assert not (folder / "out").exists()
