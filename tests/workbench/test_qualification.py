"""Qualification: no real task before it is passed, the reference after each answer, and what managers decide."""

from itertools import combinations

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import select

from steelyard.annotation.answers import Origin, TaskAnswer
from steelyard.annotation.qualification import QualificationRules, accuracy_of, reference_answer, score_answer
from steelyard.annotation.task_kinds import TaskRules, kind_named, kind_names
from steelyard.core.errors import ConfigError, EvidenceError, Place
from steelyard.core.types import Case, Judgment
from steelyard.workbench.accounts.people import NewPerson, add_person
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.gold_tasks import take_gold
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project, settings_of
from steelyard.workbench.pipeline.question_words import catalogues_of
from steelyard.workbench.qualification.material import import_qualification
from steelyard.workbench.qualification.results import qualification_figures
from steelyard.workbench.qualification.rounds import answer_task, decide_qualification, next_tasks, progress_of
from steelyard.workbench.storage.qualification_tables import StoredQualificationAnswer, StoredQualificationTask
from steelyard.workbench.storage.tables import StoredAssignment, StoredEvent, StoredPerson, StoredProject, StoredTask
from steelyard.workbench.views.pages import refusal_text, words_of
from steelyard.workbench.views.qualification_views import view_feedback
from task_kind_cases import cases_for, simulated
from workbench_people import NO_GOLD, NOON, answer, cases, cases_with_reference, membership_of, send, take

CATALOGUES = catalogues_of(ProjectSettings())


@pytest.fixture
def school(database):
    """A project with a qualification of three tasks out of four, two real cases, and two new annotators."""
    rules = QualificationRules(num_tasks=3, least_accuracy=0.75)

    def make(session):
        settings = ProjectSettings(rules=NO_GOLD, qualification=rules)
        project = add_project(session, "P", settings, by=None, at=NOON)
        import_cases(session, project, cases(2), batch="b", by=None, at=NOON)
        import_qualification(session, project, cases_with_reference(4), by=None, at=NOON)
        people = [add_person(session, NewPerson(name, "annotator"), by=None, at=NOON) for name in ("Ada", "Bo")]
        return project.id, [person.id for person in people]

    return database, *database.write(make)


def walk(database, project, person, order):
    """Answer a round, each task with the same order; returns the ids of its tasks."""

    def work(session):
        row, done = session.get_one(StoredProject, project), []
        while tasks := next_tasks(session, row, person, number=1, at=NOON):
            done.append(tasks[0].id)
            answer_task(session, row, person, tasks[0].id, answer(tasks[0].responses, order), seconds=3.0, at=NOON)
        return done

    return database.write(work)


def test_the_seconds_of_an_answer_are_no_more_than_have_passed(school):
    """A page reports 100 s each time: 40 s after the beginning, 100 s later, and at the same moment."""
    database, project, (ada, _) = school

    def work(session):
        row = session.get_one(StoredProject, project)
        tasks = next_tasks(session, row, ada, number=3, at=NOON)
        for task, at in zip(tasks, (NOON + 40, NOON + 150, NOON + 150), strict=True):
            answer_task(session, row, ada, task.id, answer(task.responses, ["r0", "r1", "r2"]), seconds=100.0, at=at)
        stored = select(StoredQualificationAnswer.seconds).order_by(StoredQualificationAnswer.id)
        return session.scalars(stored).all()

    assert database.write(work) == [40.0, 100.0, 0.0]


def standing(database, project, person):
    with database.reading() as session:
        return progress_of(session, session.get_one(StoredProject, project), person)


def test_no_real_task_before_the_qualification_is_passed(school):
    database, project, (ada, _) = school
    assert take(database, project, ada) == []
    done = walk(database, project, ada, ["r0", "r1", "r2"])
    assert len(set(done)) == 3
    progress = standing(database, project, ada)
    assert (progress.standing, progress.num_done, progress.accuracy.value) == ("passed", 3, 1.0)
    assert progress.accuracy.low < 1
    assert len(take(database, project, ada)) == 1
    with database.reading() as session:
        assert session.get_one(StoredPerson, ada).qualified_at == NOON


def test_who_fails_waits_for_a_manager_and_gets_other_tasks(school):
    database, project, (ada, _) = school
    first = walk(database, project, ada, ["r1", "r0", "r2"])
    # Two of three pairs of each task: 67% of the reference, 75% are asked for.
    progress = standing(database, project, ada)
    assert (progress.standing, progress.accuracy.value) == ("failed", pytest.approx(2 / 3))
    assert walk(database, project, ada, ["r0", "r1", "r2"]) == take(database, project, ada) == []

    def repeat(session, decision="let repeat"):
        decide_qualification(
            session, session.get_one(StoredProject, project), ada, decision, "read again", by=None, at=NOON
        )

    database.write(repeat)
    with pytest.raises(ConfigError, match="has not failed"):
        database.write(repeat)
    second = walk(database, project, ada, ["r0", "r1", "r2"])
    # The task of the pool that the first round left out comes first.
    assert second[0] not in first
    assert standing(database, project, ada).standing == "passed"
    with pytest.raises(ConfigError, match="has passed already"):
        database.write(lambda session: repeat(session, "let pass"))
    with database.reading() as session:
        (row, other) = qualification_figures(session, session.get_one(StoredProject, project)).people
        actions = set(session.scalars(select(StoredEvent.action).where(StoredEvent.subject_id == ada)))
    assert (row.name, row.standing, row.rounds, row.num_done) == ("Ada", "passed", 2, 3)
    assert (other.standing, other.accuracy.value) == ("to do", None)
    assert {
        "qualification begun",
        "qualification failed",
        "qualification: let repeat",
        "qualification passed",
    } <= actions


def test_a_manager_lets_somebody_pass_and_who_has_worked_needs_nothing(school):
    database, project, (ada, bo) = school

    def let_pass(person, reason):
        def work(session):
            row = session.get_one(StoredProject, project)
            decide_qualification(session, row, person, "let pass", reason, by=None, at=NOON)

        database.write(work)

    let_pass(ada, "known")
    [(assignment, shown)] = take(database, project, ada)
    send(database, assignment, answer(shown))
    assert standing(database, project, ada).standing == "passed"
    assert standing(database, project, bo).standing == "to do"
    with pytest.raises(ConfigError, match="0 characters"):
        let_pass(bo, " ")


def test_an_answer_is_marked_once_and_shows_the_reference(school):
    database, project, (ada, bo) = school

    def look(session, language="en", order=("r1", "r0", "r2")):
        membership = membership_of(session, project, ada)
        task = next_tasks(session, membership.project, ada, number=2, at=NOON)[0]
        marked = answer_task(
            session, membership.project, ada, task.id, answer(task.responses, list(order)), seconds=1.0, at=NOON
        )
        return task.id, view_feedback(session, membership, marked, words_of(language), language)

    task, feedback = database.write(look)
    assert (feedback.num_same, len(feedback.points), feedback.reason) == (2, 3, "The first is exact.")
    assert sum(point.is_same for point in feedback.points) == 2
    (wrong,) = [point for point in feedback.points if not point.is_same]
    assert {wrong.answer[2], wrong.reference[2]} == {">", "<"}
    assert feedback.round.num_done == 1

    def again(session, order, person=ada):
        row = session.get_one(StoredProject, project)
        content = answer(("r0", "r1", "r2"), order)
        return answer_task(session, row, person, task, content, seconds=1.0, at=NOON).num_same

    assert database.write(lambda session: again(session, ["r1", "r0", "r2"])) == 2
    with pytest.raises(ConfigError, match="answered already"):
        database.write(lambda session: again(session, ["r0", "r1", "r2"]))
    with pytest.raises(ConfigError, match="not of your qualification"):
        database.write(lambda session: again(session, ["r0", "r1", "r2"], bo))


def test_gold_tasks_that_are_made_public_check_nobody_any_more(school):
    database, project, _ = school

    def make(session):
        for number, task in enumerate(session.scalars(select(StoredTask).order_by(StoredTask.id))):
            task.is_gold, task.gold = True, msgspec.to_builtins(answer(task.responses))
            task.number += 10 * number
        row = session.get_one(StoredProject, project)
        return take_gold(session, row, most=1, by=None, at=NOON), qualification_figures(session, row).available

    assert database.write(make) == (1, 5)
    with database.reading() as session:
        assert sorted(session.scalars(select(StoredTask.is_retired))) == [False, True]


def test_a_case_without_a_reference_is_named_and_nothing_is_imported(school):
    database, project, _ = school
    bad = [*cases_with_reference(1, first=600), *cases(1, first=601)]
    with pytest.raises(EvidenceError, match="'q601' has no reference order"):
        database.write(
            lambda session: import_qualification(
                session, session.get_one(StoredProject, project), bad, by=None, at=NOON
            )
        )
    worse = [*bad, *cases(1, first=602)]
    places = {case.key: Place("mine.jsonl", number) for number, case in enumerate(worse, 1)}
    with pytest.raises(EvidenceError) as refused:
        database.write(
            lambda session: import_qualification(
                session, session.get_one(StoredProject, project), worse, by=None, at=NOON, places=places
            )
        )
    lines = str(refused.value).split("\n")
    assert lines[0] == "2 references are wrong, and nothing was imported"
    assert [line.partition(": ")[0] for line in lines[1:3]] == [f"  mine.jsonl:{n} at ranking" for n in (2, 3)]
    assert refusal_text(refused.value, "zh").count("mine.jsonl") == 2
    with database.reading() as session:
        assert qualification_figures(session, session.get_one(StoredProject, project)).available == 4


def test_an_export_gives_a_task_for_what_people_agree_on_or_settled(school):
    database, project, _ = school

    def exported(number, *stages):
        """Return a case as an export of `both` has it: the judgments of each stage's order of a, b and c."""
        (plain,) = cases(1, first=number)
        names = [response.id for response in plain.responses]
        judgments = [
            Judgment(
                left=names[low], right=names[high], verdict=verdict, judge=judge, kind="human",
                task="1-1" + ("" if stage == "annotation" else f"-{stage}"), meta={"stage": stage},
            )
            for stage, judge, verdict in stages
            for low, high in combinations(range(len(names)), 2)
        ]  # fmt: skip
        return msgspec.structs.replace(plain, judgments=tuple(judgments), meta={"evidence": "both"})

    differ = (("annotation", "j", "left"), ("annotation", "k", "right"))
    read = [
        exported(700, *differ),
        exported(701, *differ, ("alignment", "alignment", "right")),
        exported(702, differ[0]),
    ]
    made = database.write(
        lambda session: import_qualification(session, session.get_one(StoredProject, project), read, by=None, at=NOON)
    )
    assert made == (2, 0, 1)
    with database.reading() as session:
        rows = session.scalars(select(StoredQualificationTask).order_by(StoredQualificationTask.id)).all()[-2:]
        orders = [[tier[0] for tier in row.reference["ranking"]] for row in rows]
    names = [[response.id for response in case.responses] for case in read[1:]]
    assert orders == [names[0][::-1], names[1]]
    with pytest.raises(ConfigError, match="people differ on every task"):
        database.write(
            lambda session: import_qualification(
                session, session.get_one(StoredProject, project), read[:1], by=None, at=NOON
            )
        )


def test_the_same_file_sent_again_makes_no_task_twice(school):
    database, project, _ = school

    def again(session):
        row = session.get_one(StoredProject, project)
        # Four are there; one case is new, and twice in the file.
        made = import_qualification(
            session, row, [*cases_with_reference(5), *cases_with_reference(5)[4:]], by=None, at=NOON
        )
        return made, import_qualification(session, row, cases_with_reference(5), by=None, at=NOON)

    assert database.write(again) == ((1, 5, 0), (0, 5, 0))
    with database.reading() as session:
        assert qualification_figures(session, session.get_one(StoredProject, project)).available == 5
        events = session.scalars(select(StoredEvent.action)).all()
    assert events.count("qualification tasks imported") == 2


@pytest.mark.parametrize("name", kind_names())
def test_what_a_kind_exports_is_read_as_its_reference(name):
    shown, content = simulated(name, CATALOGUES)
    kind = kind_named(name)
    case = next(each for each in cases_for(name) if set(shown) <= {response.id for response in each.responses})
    origin = Origin(judge="p", task="1-1", shown=tuple(shown), batch="b", meta={})
    exported = msgspec.structs.replace(
        kind.revise(case, content, origin) or case,
        ranking=None,
        judgments=kind.judgments(content, origin),
        ratings=kind.ratings(content, origin),
    )
    if content.entries.get("decision") == "drop":
        exported = msgspec.structs.replace(exported, meta={"entries": dict(content.entries)})
    if name == "prompt_review" and "revised_text" in content.entries:
        exported.meta["entries"] = dict(content.entries)
    reference = reference_answer(kind, exported, tuple(shown), CATALOGUES)
    counts = score_answer(kind, tuple(shown), content, reference)
    assert counts.num_judged > 0
    assert counts.num_same == counts.num_judged
    assert score_answer(kind, tuple(shown), TaskAnswer(cannot_judge="tired"), reference).num_same == 0


def test_people_are_tested_in_their_languages_and_get_tasks_in_them(database):
    """A ranking project of two languages; nobody has made a qualification for a third one."""

    def in_languages(cases, *languages):
        return [replace(case, prompt=replace(case.prompt, language=each)) for case in cases for each in languages]

    def make(session):
        settings = ProjectSettings(
            rules=NO_GOLD, tasks=TaskRules(by_language=True), qualification=QualificationRules(num_tasks=2)
        )
        project = add_project(session, "P", settings, by=None, at=NOON)
        import_cases(session, project, in_languages(cases(2), "he", "hi", "ja"), batch="b", by=None, at=NOON)
        import_qualification(session, project, in_languages(cases_with_reference(3), "he", "hi"), by=None, at=NOON)
        names = {"Noa": ("he",), "Ravi": ("hi", "ja"), "Yuki": ("ja",), "Ada": ()}
        people = [NewPerson(name, "annotator", skills=skills) for name, skills in names.items()]
        return project.id, [add_person(session, each, by=None, at=NOON).id for each in people]

    project, (noa, ravi, yuki, ada) = database.write(make)
    tested = {}
    for person in (noa, ravi, yuki, ada):
        tasks = walk(database, project, person, ["r0", "r1", "r2"])
        with database.reading() as session:
            rows = [session.get_one(StoredQualificationTask, each) for each in tasks]
            tested[person] = [msgspec.json.decode(row.case_json, type=Case).prompt.language for row in rows]
    assert (tested[noa], tested[ravi], tested[yuki]) == (["he", "he"], ["hi", "hi"], [])
    assert len(tested[ada]) == 2
    assert standing(database, project, yuki).standing == "no tasks"
    with database.reading() as session:
        figures = qualification_figures(session, session.get_one(StoredProject, project))
        assert {row.name: row.standing for row in figures.people} == {
            "Noa": "passed", "Ravi": "passed", "Yuki": "no tasks", "Ada": "passed"
        }  # fmt: skip
    take(database, project, noa, number=3)
    with database.reading() as session:
        mine = select(StoredTask.category).join(StoredAssignment, StoredAssignment.task_id == StoredTask.id)
        assert set(session.scalars(mine.where(StoredAssignment.person_id == noa))) == {"he"}


def test_the_accuracy_is_the_mean_over_tasks():
    assert accuracy_of([1.0, 0.5, 0.0]).value == pytest.approx(0.5)
    assert accuracy_of([]).value is None


def test_rules_out_of_range_are_refused():
    for rules in ({"num_tasks": -1}, {"num_tasks": 201}, {"least_accuracy": 1.5}):
        with pytest.raises(ConfigError, match="0 to"):
            QualificationRules(**rules)
    assert settings_of(StoredProject(name="p", settings={})).qualification.num_tasks == 0
