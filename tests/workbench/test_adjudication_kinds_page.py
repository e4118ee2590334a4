"""Alignment and review of kinds of tasks other than triples, in Chromium: only the questions that apply are shown."""

import msgspec
import pytest
from sqlalchemy import func, select

from browser import CHROMIUM
from steelyard.annotation.answers import TaskAnswer
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.storage.tables import StoredAdjudicationTime, StoredAnswer, StoredItem, StoredTask
from task_kind_cases import cases_for, rules_for
from workbench_people import NO_GOLD, NOON, content_of
from workbench_server import Login

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.xdist_group("chromium"),
]
KEEP = {"decision": "keep", "category": "code", "difficulty": "easy", "scenario": "study"}
ASKED = "[...document.querySelectorAll('[data-question]:not([hidden])')].map((each) => each.dataset.question)"


class Dispute:
    """An item of a kind in a state, to whose task two people gave answers; people log in to settle it."""

    def __init__(self, served, browser, kind, first, second, *, state):
        self.database, self.server = served
        self.browser = browser
        self.logins = [Login(self.database, f"{kind} {number}") for number in (1, 2)]
        answers = (TaskAnswer(**first), TaskAnswer(**second))
        self.item, self.task = self.database.write(lambda session: self._make(session, kind, answers, state))

    def _make(self, session, kind, answers, state):
        tasks = msgspec.structs.replace(rules_for(kind), categories=("code", "law"))
        project = add_project(session, kind, ProjectSettings(rules=NO_GOLD, tasks=tasks), by=None, at=NOON)
        import_cases(session, project, cases_for(kind, 1), batch="b", by=None, at=NOON)
        item, task = session.execute(
            select(StoredItem, StoredTask).join(StoredTask).where(StoredItem.project_id == project.id).limit(1)
        ).one()
        for login, answer in zip(self.logins, answers, strict=True):
            content = msgspec.to_builtins(answer)
            session.add(StoredAnswer(task_id=task.id, person_id=login.person, content=content, seconds=1.0, at=NOON))
        item.state, task.is_open, task.num_answered, task.num_reserved = state, False, 2, 2
        return item.id, task.id

    def visit(self, login, page):
        """Open the page of the item as somebody, and read it long enough to be counted."""
        self.browser.open("about:blank")
        self.browser.complaints.clear()
        self.browser.set_cookie(self.server.origin, "steelyard_workbench", login.cookie)
        self.browser.open(f"{self.server.origin}/{page}/{self.item}")
        self.browser.value("new Promise((done) => setTimeout(done, 200))")

    def enter(self, question, value):
        """Choose or write the entry of a question."""
        field = f"document.querySelector('[data-question={question}] :is(select, input, textarea)')"
        self.browser.value(f"{field}.value = {value!r}; {field}.dispatchEvent(new Event('input', {{bubbles: true}}))")

    def press(self, selector):
        """Press a button that sends a form, and wait for the page after it."""
        self.browser.value("window.isLeft = true")
        self.browser.value(f"document.querySelector({selector!r}).click()")
        self.browser.wait("!window.isLeft && document.readyState === 'complete'")

    def state(self):
        with self.database.reading() as session:
            return session.get_one(StoredItem, self.item).state

    def seconds(self):
        """Return the sum of the active time that the pages of the item reported."""
        times = select(func.sum(StoredAdjudicationTime.seconds)).where(StoredAdjudicationTime.item_id == self.item)
        with self.database.reading() as session:
            return session.scalar(times)

    def settled(self, stage):
        """Return the answer of a stage to the task."""
        wanted = select(StoredAnswer).where(StoredAnswer.task_id == self.task, StoredAnswer.stage == stage)
        with self.database.reading() as session:
            return content_of(session.scalars(wanted).one())


def test_two_people_align_on_a_prompt_that_both_revise(served, browser):
    other = {"entries": {"decision": "drop", "drop_reason": "unclear"}}
    dispute = Dispute(served, browser, "prompt_review", {"entries": KEEP}, other, state="aligning")
    first, second = dispute.logins
    dispute.visit(first, "align")
    assert browser.value(ASKED) == ["decision", "category", "difficulty", "scenario"]
    dispute.enter("decision", "drop")
    assert browser.value(ASKED) == ["decision", "drop_reason"]
    dispute.enter("decision", "revise")
    assert browser.value(ASKED) == ["decision", "revised_text", "category", "difficulty", "scenario"]
    dispute.enter("revised_text", "Why is the sky blue?")
    dispute.press("form:has([data-question]) button.main")
    dispute.visit(second, "align")
    assert browser.value(ASKED) == ["decision", "drop_reason"]
    for question, value in (KEEP | {"decision": "revise", "revised_text": "Why is the sky blue?"}).items():
        dispute.enter(question, value)
    dispute.press("form:has([data-question]) button.main")
    assert dispute.settled("alignment").entries["revised_text"] == "Why is the sky blue?"
    assert dispute.seconds() > 0
    assert dispute.state() != "aligning"
    assert browser.complaints == []


def test_a_layer_settles_a_translation_and_reviews_a_check_of_natives(served, browser):
    delivery = Login(served[0], "delivery of kinds", "delivery")
    marks = ({"spans": {"r0": [(0, 3, "Accuracy/Omission", "major")]}, "scores": {"r0": 40}}, {"scores": {"r0": 90}})
    dispute = Dispute(served, browser, "translation_quality", *marks, state="with delivery")
    dispute.visit(delivery, "review")
    assert browser.value(ASKED) == ["errors", "quality"]
    dispute.enter("errors", "0")
    dispute.enter("quality", "45")
    dispute.press("form:has([data-question]) button.main")
    settled = dispute.settled("delivery")
    assert (settled.scores, settled.spans) == ({"r0": 45}, {"r0": ((0, 3, "Accuracy/Omission", "major"),)})
    entries = {"fluency": "partly", "suited": "yes"}
    same = {"ranking": (("r0",), ("r1",)), "entries": entries}
    review = Dispute(served, browser, "native_check", same, same, state="delivery review")
    review.visit(delivery, "review")
    shown = browser.value("document.querySelector('.opinions').innerText")
    assert "in part" in shown
    assert "partly" not in shown
    review.press("form[action$=decision] button.main")
    assert review.state() != "delivery review"
    assert review.seconds() > 0
    assert browser.complaints == []
