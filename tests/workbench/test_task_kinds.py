"""Every kind of tasks from import to export, by simulated people, on both databases; and its questions in words."""

import json
from collections import Counter

import pytest
from sqlalchemy import func, select

from steelyard.annotation.pipeline import PipelineRules
from steelyard.annotation.task_kinds import kind_named, kind_names
from steelyard.core.errors import ConfigError
from steelyard.io.cases import encode_case
from steelyard.workbench.pipeline.case_export import export_cases
from steelyard.workbench.pipeline.projects import ProjectSettings
from steelyard.workbench.pipeline.question_words import catalogues_of, question_in_words
from steelyard.workbench.results.answer_records import answer_records, gold_records
from steelyard.workbench.simulated_people import Habits
from steelyard.workbench.simulated_projects import import_batch, start_project
from steelyard.workbench.simulation import work_until_finished
from steelyard.workbench.storage.tables import StoredAnswer, StoredItem, StoredProject, StoredTask
from steelyard.workbench.views.pages import LANGUAGES
from task_kind_cases import cases_for, rules_for, simulated
from workbench_people import cases, make_project

CATALOGUES = catalogues_of(ProjectSettings())


@pytest.mark.parametrize("name", kind_names())
def test_a_project_of_a_kind_is_finished_and_exported(database, name):
    simulation = start_project(
        database,
        cases_for(name),
        seed=3,
        begun_at=0.0,
        num_annotators=4,
        rules=PipelineRules(gold_share=0.2),
        tasks=rules_for(name),
        habits=Habits(stubborn_share=0.5),
    )
    import_batch(simulation, cases_for(name), "b", has_reference=name == "native_check")
    states = work_until_finished(simulation)
    assert set(states) <= {"finished", "dropped"}
    assert states["finished"] >= 3
    with database.reading() as session:
        assert set(session.scalars(select(StoredTask.kind))) == {name}
        per_task = session.execute(
            select(func.count(StoredAnswer.id))
            .join(StoredTask, StoredAnswer.task_id == StoredTask.id)
            .where(StoredAnswer.stage == "annotation", StoredTask.is_gold.is_(False), StoredTask.is_retired.is_(False))
            .group_by(StoredTask.id)
        )
        assert Counter(number for (number,) in per_task).keys() == {2}
        project = session.get_one(StoredProject, simulation.crew.project)
        exported = list(export_cases(session, project, evidence="both"))
        batches = {(item.prompt, item.batch) for item in session.scalars(select(StoredItem))}
        numbers = session.scalars(select(StoredAnswer.id).order_by(StoredAnswer.id)).all()
        answers, gold = list(answer_records(session, project, block=7)), list(gold_records(session, project, block=2))
    assert [each.id for each in answers] == numbers
    assert {(each.prompt, each.batch) for each in answers} == batches
    assert {each.kind for each in answers} == {name}
    assert all(each.simulated and each.person.startswith("P-") and each.seconds > 0 for each in answers if each.shown)
    assert all(sorted(each.shown) == sorted(each.responses) for each in answers if each.shown is not None)
    # The truth of a gold task is the answer that its origin names.
    settled = {each.id: each for each in answers}
    assert all(settled[each.origin.answer].content == each.truth for each in gold)
    assert all(settled[each.origin.answer].task == each.origin.task != each.task for each in gold)
    assert 0 < len(exported) <= states["finished"]
    for case in exported:
        evidence = [*case.judgments, *case.ratings] or [case]
        assert all(each.meta["batch"] == "b" and each.response in each.meta["shown"] for each in case.ratings)
        assert all(each.batch == "b" for each in case.judgments)
        assert all((each.meta or {}).get("simulated") or "prompt_review" in case.meta for each in evidence)
        # A case file line, whatever is in it.
        assert json.loads(encode_case(case))["prompt"]["id"] == case.prompt.id


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", kind_names())
def test_every_question_and_choice_has_words_in_both_languages(name, language):
    shown, _ = simulated(name, CATALOGUES)
    for question in kind_named(name).questions(tuple(shown), CATALOGUES):
        words = question_in_words(question, language)
        assert words.label != question.name
        assert words.ask != question.name
        assert "{" not in words.ask
        for each in (*words.choices, *words.severities):
            assert each.label != each.value or language == "en"
        keys = [each.key for each in words.choices if each.key]
        assert len(keys) == len(set(keys))


def test_cases_with_two_responses_become_pairs_and_the_others_triples(database):
    project, _ = make_project(database, 2, 2)
    with database.reading() as session:
        assert set(session.scalars(select(StoredTask.kind).where(StoredTask.project_id == project))) == {"pairwise"}


def test_too_few_responses_refuse_the_import_or_are_skipped_as_the_error_says(database):
    with pytest.raises(ConfigError, match="gets no task") as refused:
        make_project(database, 2, 1)
    assert "tasks.too_few=skip" in refused.value.do
    project, _ = make_project(database, 2, 1, too_few="skip")
    with database.reading() as session:
        assert session.scalar(select(func.count()).where(StoredTask.project_id == project)) == 0
    assert len(cases(2, 1)) == 2
