"""The whole pipeline with simulated people: from cases to a bench that `resolve` and `evaluate` take as it is."""

import itertools
import random
import statistics
import time

import msgspec
import pytest
from sqlalchemy import func, select

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.pipeline import PipelineRules
from steelyard.annotation.task_kinds import TaskRules, kind_names
from steelyard.core.errors import ConfigError, OutputError
from steelyard.io.cases import encode_case, read_cases, write_cases
from steelyard.stages.evaluate import evaluate
from steelyard.stages.resolve import resolve
from steelyard.workbench.accounts.people import ROLES
from steelyard.workbench.demo import demo_cases, open_demo, simulate_to_bench
from steelyard.workbench.pipeline.alignment import all_items_to_align
from steelyard.workbench.pipeline.case_export import BLOCK, export_cases
from steelyard.workbench.pipeline.counters import recount
from steelyard.workbench.pipeline.projects import count_states
from steelyard.workbench.simulated_people import Habits
from steelyard.workbench.simulated_projects import import_batch, start_project
from steelyard.workbench.simulation import work_until_finished
from steelyard.workbench.storage.audit_log import verify
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.figure_tables import (
    StoredGateResult,
    StoredGoldResult,
    StoredPairAgreement,
    StoredWorkDay,
)
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredEvent,
    StoredGuideline,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredReview,
    StoredTask,
)
from workbench_people import NOON, sums_of

pytestmark = pytest.mark.slow

RULES = PipelineRules(gold_share=0.25)
HABITS = Habits(stubborn_share=0.6, passed_on_share=0.5, rejected_share=0.3)


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    """Prompts of the built-in corpus with five responses each."""
    return demo_cases(tmp_path_factory.mktemp("cases"), seed=3, num_prompts=10)


@pytest.fixture
def worked(database, material):
    """A project that 29 simulated people have worked through, in two batches, so that the second one meets gold."""
    random.seed(5)
    simulation = start_project(database, material, seed=3, begun_at=NOON, rules=RULES, habits=HABITS)
    # The work takes days: sums are kept by day.
    simulation = simulation._replace(pace=900.0)
    half = len(material) // 2
    import_batch(simulation, material[:half], "first")
    work_until_finished(simulation)
    import_batch(simulation, material[half:], "second")
    return simulation, work_until_finished(simulation)


def test_from_cases_to_a_bench_with_every_way_taken(database, material, worked, tmp_path):
    simulation, states = worked
    check_ways(database, material, simulation, states)
    check_counts(database)
    check_sums(database)
    check_blocks(database, simulation)
    check_bench(database, material, simulation, tmp_path)


def check_ways(database, material, simulation, states):
    """Every item ends, and gate, alignment, escalation, gold, rejection and all three layers took part."""
    assert states == {"finished": len(material)}
    with database.reading() as session:
        assert verify(session) is None
        actions = dict(session.execute(select(StoredEvent.action, func.count()).group_by(StoredEvent.action)).all())
        stages = dict(session.execute(select(StoredAnswer.stage, func.count()).group_by(StoredAnswer.stage)).all())
        layers = set(session.scalars(select(StoredReview.layer).where(StoredReview.decision == "accepted")))
        gold = session.scalars(select(StoredTask).where(StoredTask.is_gold.is_(True))).all()
    for action in ("disagreed", "proposed", "unresolved", "settled", "rejected", "accepted", "gold tasks made"):
        assert actions[action] > 0, action
    assert {"annotation", "proposal", "alignment"} < set(stages)
    assert {"delivery", "operations", "research"} & set(stages)
    assert layers == {"delivery", "operations", "research"}
    assert sum(task.num_answered for task in gold) > 0
    assert simulation.crew.project == 1


def check_counts(database):
    """Each task has exactly its two answers, nobody had one twice, and nobody reviewed the own work."""
    with database.reading() as session:
        tasks = session.scalars(
            select(StoredTask).where(StoredTask.is_gold.is_(False), StoredTask.is_retired.is_(False))
        ).all()
        answers = session.execute(
            select(StoredAnswer.task_id, StoredAnswer.person_id).where(StoredAnswer.stage == "annotation")
        ).all()
        wrote = set(
            session.execute(
                select(StoredTask.item_id, StoredAnswer.person_id)
                .join(StoredTask, StoredAnswer.task_id == StoredTask.id)
                .where(StoredAnswer.stage.in_(("annotation", "proposal")))
            ).all()
        )
        decided = set(session.execute(select(StoredReview.item_id, StoredReview.person_id)).all())
        twice = session.execute(
            select(StoredAssignment.task_id, StoredAssignment.person_id)
            .group_by(StoredAssignment.task_id, StoredAssignment.person_id)
            .having(func.count() > 1)
        ).all()
    assert {(task.num_wanted, task.num_reserved, task.num_answered) for task in tasks} == {(2, 2, 2)}
    assert len(answers) == len(set(answers))
    assert wrote.isdisjoint(decided)
    assert twice == []


def check_sums(database):
    """The sums that grew with each answer are those of all answers at once, and count what is stored."""
    grown = sums_of(database)
    assert all(grown.values())
    database.write(recount)
    assert sums_of(database) == grown
    with database.reading() as session:
        answers = session.scalar(select(func.count()).where(StoredAnswer.stage == "annotation"))
        ordinary = session.scalar(
            select(func.count())
            .select_from(StoredAnswer)
            .join(StoredTask)
            .where(StoredAnswer.stage == "annotation", StoredTask.is_gold.is_(False))
        )
        # Two people a task, retired ones too: each two answers are one pair of people.
        paired = session.scalar(select(func.sum(StoredPairAgreement.num_tasks)))
        assert session.scalar(select(func.sum(StoredWorkDay.num_answers))) == answers
        assert len(set(session.scalars(select(StoredWorkDay.day)))) > 1
        assert 2 * paired == ordinary
        assert session.scalar(select(func.count()).select_from(StoredGoldResult)) == answers - ordinary
        rounds = sum(session.scalars(select(StoredItem.round)))
        assert session.scalar(select(func.count()).select_from(StoredGateResult)) == rounds


def check_blocks(database, simulation):
    """What is exported is the same to the byte however many items are read at a time."""
    with database.reading() as session:
        project = session.get_one(StoredProject, simulation.crew.project)
        for evidence in ("both", "aligned"):
            whole, one, few = (
                [encode_case(case) for case in export_cases(session, project, evidence=evidence, block=block)]
                for block in (BLOCK, 1, 3)
            )
            assert whole == one == few
            assert len(whole) == session.scalar(select(func.count()).where(StoredItem.state == "finished"))


def check_bench(database, material, simulation, tmp_path):
    """What is exported is resolved and evaluated as it is, and ranks mostly as the people perceive."""
    for evidence in ("both", "aligned"):
        bench = tmp_path / f"{evidence}.jsonl"
        with database.reading() as session:
            project = session.get_one(StoredProject, simulation.crew.project)
            write_cases(bench, export_cases(session, project, evidence=evidence))
        # What simulated people judged says so, and with it every report that counts it.
        assert all(judgment.meta["simulated"] for case in read_cases(bench) for judgment in case.judgments)
        resolved = resolve(bench, tmp_path / f"resolved {evidence}")
        assert resolved.counts.num_used == len(material)
        ranked = tmp_path / f"resolved {evidence}" / "cases.jsonl"
        evaluated = evaluate([ranked], tmp_path / f"evaluated {evidence}", model="longer")
        # A prompt whose people contradict each other throughout has no pair to compare.
        assert evaluated.counts.num_in == len(material)
        assert set(evaluated.counts.dropped) <= {"no comparable pair"}
        assert evaluated.counts.num_used > 0
    # Simulated people see the latent quality: what they settled mostly puts the good answer first.
    latent = {case.prompt.id: {each.id: each.meta["quality"] for each in case.responses} for case in material}
    best = [case.ranking[0] for case in read_cases(ranked)]
    is_right = [
        max(latent[case.prompt.id].values()) in {latent[case.prompt.id][each] for each in first}
        for case, first in zip(read_cases(ranked), best, strict=True)
    ]
    assert sum(is_right) > len(is_right) / 2


def test_one_command_from_cases_to_a_bench(material, tmp_path):
    write_cases(tmp_path / "sampled.jsonl", material[:3])
    states = simulate_to_bench(tmp_path / "sampled.jsonl", tmp_path / "out", seed=1)
    assert sum(states.values()) == 3
    assert len(list(read_cases(tmp_path / "out" / "bench.jsonl"))) == states["finished"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["bench.jsonl", "workbench.db"]
    with pytest.raises(OutputError, match="exists already"):
        simulate_to_bench(tmp_path / "sampled.jsonl", tmp_path / "out")


def test_cases_that_get_no_task_are_left_out_as_the_error_says(material, tmp_path):
    single = msgspec.structs.replace(
        material[0],
        prompt=msgspec.structs.replace(material[0].prompt, id="single"),
        responses=material[0].responses[:1],
        ranking=None,
        pairs=None,
    )
    write_cases(tmp_path / "sampled.jsonl", [*material[1:3], single])
    with pytest.raises(ConfigError, match="with 1 response gets no task"):
        simulate_to_bench(tmp_path / "sampled.jsonl", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    states = simulate_to_bench(tmp_path / "sampled.jsonl", tmp_path / "out", tasks=TaskRules(too_few="skip"))
    assert sum(states.values()) == 2


@pytest.mark.slow
def test_a_demonstration_is_made_once_with_items_in_many_states(tmp_path, monkeypatch, material):
    monkeypatch.setattr("steelyard.workbench.demo.demo_cases", lambda folder, *, seed: material)
    database = open_demo(tmp_path, 0)
    with database.reading() as session:
        states = count_states(session, 1)
        people = session.scalars(select(StoredPerson)).all()
        assert all(person.is_simulated for person in people)
        assert session.get_one(StoredProject, 1).is_simulated
        assert verify(session) is None
        # Nothing in it is from the future, and the visitor meets guidelines and the longest queue of alignment.
        assert session.scalar(select(func.max(StoredEvent.at))) < time.time()
        assert {each.language for each in session.scalars(select(StoredGuideline))} == {"en", "zh"}
        waiting = {person.name: len(all_items_to_align(session, person.id)) for person in people}
        assert waiting["annotator"] == max(waiting.values())
        assert {person.name for person in people if person.password_hash} == set(ROLES)
        assert set(session.scalars(select(StoredTask.kind))) == set(kind_names())
        assert all(session.scalars(select(StoredProject.is_simulated)))
    database.close()
    assert states["finished"] >= len(material) // 3
    assert states["annotating"] >= 1
    assert len(states) >= 4
    assert len([person for person in people if person.role == "annotator"]) == 29
    again = open_demo(tmp_path, 0)
    with again.reading() as session:
        assert count_states(session, 1) == states
        # One is what its people qualify on.
        items = session.scalars(select(StoredItem).where(StoredItem.project_id == 1)).all()
        assert len(items) == len(material) - 1
    again.close()
    assert Database(f"sqlite:///{tmp_path}/workbench.db").migrate()


def test_simulated_people_discard_mark_cannot_judge_and_are_careless(database, material):
    random.seed(5)
    habits = Habits(discarded_share=0.1, marked_share=0.2, unjudged_share=0.1, careless_share=0.5)
    simulation = start_project(database, material, seed=3, begun_at=NOON, rules=RULES, habits=habits, num_annotators=8)
    import_batch(simulation, material, "first")
    states = work_until_finished(simulation)
    assert set(states) <= {"finished", "dropped"}
    with database.reading() as session:
        rows = session.execute(
            select(StoredAnswer.content, StoredAnswer.person_id, StoredAnswer.seconds).where(
                StoredAnswer.stage == "annotation"
            )
        ).all()
    contents = [msgspec.convert(content, TaskAnswer) for content, _, _ in rows]
    assert {"garbled"} == {reason for content in contents for reason in content.discarded.values()}
    assert any(content.spans for content in contents)
    assert 0 < sum(content.cannot_judge is not None for content in contents) < len(contents) / 4
    # Whoever is careless takes a tenth of the time: the medians of people fall into two groups.
    medians = sorted(
        statistics.median(seconds for _, person, seconds in rows if person == each) for each in {row[1] for row in rows}
    )
    assert max(after / before for before, after in itertools.pairwise(medians)) > 3
