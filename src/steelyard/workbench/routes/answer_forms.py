"""The forms that alignment and review receive: what was sent, the time it took, and the answer that it gives."""

from typing import Annotated

from fastapi import Depends, Form, Request
from sqlalchemy.orm import Session
from starlette.exceptions import HTTPException

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.task_kinds import kind_named
from steelyard.workbench.pipeline.disputes import TaskEvidence
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.question_words import catalogues_of
from steelyard.workbench.storage.tables import StoredItem, StoredProject
from steelyard.workbench.views.adjudication_forms import EnteredForm, answer_of_questions, ranked_answer
from steelyard.workbench.views.item_views import form_order

Seconds = Annotated[float, Form(ge=0, allow_inf_nan=False)]
"""The active time since the page was opened, or since the form before."""


async def _sent_form(request: Request) -> EnteredForm:
    form = await request.form()
    names = dict.fromkeys(name for name, _ in form.multi_items())
    return EnteredForm({name: [value for value in form.getlist(name) if isinstance(value, str)] for name in names})


SentForm = Annotated[EnteredForm, Depends(_sent_form)]


def entered_answer(session: Session, tasks: list[TaskEvidence], task: int, form: EnteredForm) -> TaskAnswer:
    """Return the answer of a form to one of the tasks. 404 for another task, ConfigError for what no page sends."""
    evidence = next((each for each in tasks if each.task.id == task), None)
    if evidence is None:
        raise HTTPException(404)
    stored, settings = evidence.task, settings_of(session.get_one(StoredProject, evidence.task.project_id))
    responses = form_order(session.get_one(StoredItem, stored.item_id), stored)
    questions = kind_named(stored.kind).questions(responses, catalogues_of(settings))
    answers = list(evidence.answers.values())
    if not questions:
        return ranked_answer(responses, form, answers)
    return answer_of_questions(questions, responses, form, answers)
