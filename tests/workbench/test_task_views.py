"""Views of tasks on both databases: guidelines of the person's language, reasons of an empty queue, own figures."""

import pytest
from msgspec.structs import replace

from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.question_words import rubric_of
from steelyard.workbench.pipeline.queues import next_assignments
from steelyard.workbench.storage.tables import StoredGuideline, StoredPerson, StoredProject, StoredTask
from steelyard.workbench.views.task_views import own_progress, view_tasks
from workbench_people import NOON, answer, answer_all, cases, make_project, membership_of, send, take


def view(database, project, person, *, number=2):
    def work(session):
        membership = membership_of(session, project, person)
        return view_tasks(session, membership, next_assignments(session, membership, number=number, at=NOON), at=NOON)

    return database.write(work)


def figures(database, project, person, *, since=NOON):
    with database.reading() as session:
        return own_progress(session, membership_of(session, project, person), since=since)


def test_a_task_has_the_newest_guideline_of_its_category_and_the_language(database):
    project, (person, other) = make_project(database)
    rows = [("", "en", 9), ("maths", "zh", 3), ("maths", "en", 1), ("maths", "en", 2), ("poems", "en", 8)]

    def write(session):
        for category, language, version in rows:
            text = f"{category} {language} {version}"
            session.add(
                StoredGuideline(
                    project_id=project, category=category, language=language, version=version, text=text, at=NOON
                )
            )
        for task in session.query(StoredTask):
            task.category = "maths"
        session.get_one(StoredPerson, other).language = "fr"

    database.write(write)
    shown = view(database, project, person)
    assert [each.html for each in shown.guidelines.values()] == ["<p>maths en 2</p>\n"]
    assert shown.tasks[0].guideline in shown.guidelines
    # Nobody wrote one in French: the category's newest.
    shown = view(database, project, other)
    assert [each.html for each in shown.guidelines.values()] == ["<p>maths zh 3</p>\n"]


def test_an_empty_queue_says_why(database):
    project, (person, other) = make_project(database, 2)
    assert view(database, project, person).reason is None
    for assignment, shown in take(database, project, person, number=2):
        send(database, assignment, answer(shown))
    assert view(database, project, person).reason == "all had"

    def narrow(session):
        session.get_one(StoredPerson, other).skills = ["poems"]
        for task in session.query(StoredTask):
            task.category = "maths"

    database.write(narrow)
    assert view(database, project, other).reason == "other skills"
    database.write(lambda session: setattr(session.get_one(StoredPerson, other), "skills", []))
    answer_all(database, project, [other])
    assert view(database, project, other).reason == "all taken"


def test_a_project_without_tasks_says_so(database):
    project, (person, _) = make_project(database, 0)
    assert view(database, project, person).reason == "no tasks"


def test_agreement_is_the_share_of_verdicts_in_items_behind_the_gate(database):
    project, people = make_project(database, 2)

    def order(person, shown):
        # The second person swaps the two best: one of the three verdicts differs.
        ranked = sorted(shown)
        return ranked if person == people[0] else [ranked[1], ranked[0], ranked[2]]

    for assignment, shown in take(database, project, people[0], number=2):
        send(database, assignment, answer(shown), at=NOON)
    assert figures(database, project, people[0]).agreement is None
    answer_all(database, project, [people[1]], order=order, at=NOON + 100)
    mine = figures(database, project, people[0], since=NOON + 1)
    assert (mine.today, mine.total) == (0, 2)
    assert mine.agreement == pytest.approx(2 / 3)
    theirs = figures(database, project, people[1], since=NOON + 1)
    assert (theirs.today, theirs.total, theirs.agreement) == (2, 2, pytest.approx(2 / 3))


def test_the_rubric_has_every_score_in_both_languages():
    for language in ("en", "zh"):
        rubric = rubric_of(language)
        assert [each["value"] for each in rubric["scores"]] == [0, 1, 2, 3, 4, 5]
        assert all(
            isinstance(each[word], str) and each[word] for each in rubric["scores"] for word in ("label", "text")
        )
        assert {len(rubric[name]) for name in ("dimensions", "problems", "cannot_judge", "discards")} == {3, 8, 6}


def translations(kind):
    """Return cases of two languages as `translate` writes them for translators and for native speakers."""
    shown = cases(2, 2 if kind == "native_check" else 1)
    for case, language in zip(shown, ("ar", "hi"), strict=True):
        if kind == "native_check":
            prompt = replace(case.prompt, language=language, category=("chat",))
            yield replace(case, prompt=prompt, ranking=(("r0",), ("r1",)))
        else:
            meta = {"answer_language": language, "item": "q"}
            yield replace(case, prompt=replace(case.prompt, language="en", meta=meta))


@pytest.mark.parametrize(("kind", "of_prompt"), [("translation_quality", "en"), ("native_check", "hi")])
def test_people_get_the_translations_into_their_languages_and_see_which_it_is(database, kind, of_prompt):
    project, (person, other) = make_project(database, 0, kind=kind)

    def write(session):
        row = session.get_one(StoredProject, project)
        import_cases(session, row, list(translations(kind)), batch="b2", by=None, at=NOON)
        session.get_one(StoredPerson, person).skills = ["hi"]

    database.write(write)
    (mine,) = view(database, project, person).tasks
    assert (mine.language, mine.answer_language, mine.category) == (
        of_prompt,
        "hi",
        "chat" if kind == "native_check" else "",
    )
    assert {each.answer_language for each in view(database, project, other).tasks} == {"ar", "hi"}


def test_a_translation_whose_case_names_one_language_has_that_language(database):
    project, (person, _) = make_project(database, 0, kind="translation_quality")
    (case,) = cases(1, 1)
    case = replace(case, prompt=replace(case.prompt, language="de"))
    database.write(
        lambda session: import_cases(
            session, session.get_one(StoredProject, project), [case], batch="b2", by=None, at=NOON
        )
    )
    (shown,) = view(database, project, person).tasks
    assert (shown.language, shown.answer_language) == ("", "de")
