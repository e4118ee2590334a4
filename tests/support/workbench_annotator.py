"""A person at the annotator's page in Chromium, with a project of the person's own, for tests."""

import copy
import itertools
import time

from sqlalchemy import func, select

from steelyard.annotation.pipeline import PipelineRules
from steelyard.annotation.task_kinds import TaskRules
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.workbench.accounts.people import log_in, public_name
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.storage.tables import StoredAnswer, StoredAssignment, StoredTask
from workbench_people import NOON, content_of
from workbench_server import PASSWORD, Login

names = itertools.count(1)
CARD = "document.querySelector('[data-state=task] .task')"
STEP = "document.querySelector('#step').textContent"
SUBMIT = "document.querySelector('#submit')"
PROMPT = "document.querySelector('.prompt-text').textContent.trim()"
PRESSED = "[...document.querySelectorAll('[aria-pressed=true]')].map((b) => b.textContent).join('')"
BANNER = "document.querySelector('#banner')"


class Annotator:
    """A new person of a new project with the page open. Presses are counted."""

    def __init__(
        self, served, tab, *, num_cases=3, language="en", texts=("First.", "Second.", "Third."), prompt="Why?", **tasks
    ):
        self.database, self.server = served
        self.tasks = TaskRules(**tasks)
        self.tab, self.num_keys = tab, 0
        self.project = self.database.write(lambda session: self._project(session, num_cases, texts, prompt))
        self.name = f"person {next(names)}"
        login = Login(self.database, self.name, language=language)
        self.person = login.person
        with self.database.reading() as session:
            self.owner = f"{public_name(session)}-{self.person}"
        # The page of the person before still sends a draft when it is left.
        tab.open("about:blank")
        tab.complaints.clear()
        tab.forget(self.server.origin)
        tab.set_cookie(self.server.origin, "steelyard_workbench", login.cookie)
        self.open()

    def _project(self, session, num_cases, texts, prompt):
        settings = ProjectSettings(rules=PipelineRules(gold_share=0), tasks=self.tasks)
        # As long a name as a project can have, without a place to break it.
        project = add_project(session, f"project {next(names)}".ljust(200, "x"), settings, by=None, at=NOON)
        cases = [
            Case(
                prompt=Prompt(
                    id=f"q{n}",
                    language="en",
                    category=("Open questions",),
                    messages=(Message(role="user", content=f"{prompt} {n}"),),
                ),
                responses=tuple(Response(id=f"gpt-4-{place}", text=text) for place, text in enumerate(texts)),
            )
            for n in range(num_cases)
        ]
        import_cases(session, project, cases, batch="b", by=None, at=NOON)
        return project.id

    def open(self):
        self.tab.open(f"{self.server.origin}/annotate?project={self.project}")
        self.tab.wait(CARD)

    def beside(self, *, script=None):
        """Return the same person at another window of the same browser. ``script`` runs before those of the page."""
        other = copy.copy(self)
        other.tab, other.num_keys = self.tab.beside(script=script), 0
        other.tab.open(f"{self.server.origin}/annotate?project={self.project}")
        return other

    def log_in_again(self):
        """Log in as in another tab: the cookie of the new session, which this tab has, too."""
        now = time.time()
        cookie = self.database.write(lambda session: log_in(session, self.name, PASSWORD, address="test", at=now))
        self.tab.set_cookie(self.server.origin, "steelyard_workbench", cookie)

    def press(self, *keys, modifiers=0):
        for key in keys:
            self.tab.press(key, modifiers=modifiers)
            self.num_keys += 1

    def shown(self):
        """The ids of the responses of the oldest open task, by letter."""
        with self.database.reading() as session:
            mine = select(StoredAssignment).where(
                StoredAssignment.person_id == self.person, StoredAssignment.state == "open"
            )
            return dict(
                zip(
                    "ABC",
                    session.scalars(mine.order_by(StoredAssignment.assigned_at, StoredAssignment.id)).first().shown,
                    strict=False,
                )
            )

    def all_stored_once(self):
        """Check that no task has more answers than wanted, and none of this person two."""
        wrong = select(func.count()).where(
            StoredTask.project_id == self.project,
            (StoredTask.num_answered > StoredTask.num_reserved) | (StoredTask.num_reserved > StoredTask.num_wanted),
        )
        with self.database.reading() as session:
            assert session.scalar(wrong) == 0
            mine = select(StoredAnswer.task_id).where(StoredAnswer.person_id == self.person)
            tasks = session.scalars(mine).all()
        assert len(tasks) == len(set(tasks))

    def forget_answers(self):
        """Put the answers of the person back into open tasks, as a restored backup does that is older."""

        def undo(session):
            mine = select(StoredAnswer).where(StoredAnswer.person_id == self.person)
            for stored in session.scalars(mine).all():
                session.get_one(StoredTask, stored.task_id).num_answered -= 1
                session.get_one(StoredAssignment, stored.assignment_id).state = "open"
                session.delete(stored)

        self.database.write(undo)

    def answers(self, number):
        """Wait until the workbench has a number of answers; return them, the oldest first."""
        mine = select(StoredAnswer).where(StoredAnswer.person_id == self.person).order_by(StoredAnswer.id)
        end = time.monotonic() + 60
        while True:
            with self.database.reading() as session:
                rows = session.scalars(mine).all()
            if len(rows) >= number or time.monotonic() > end:
                assert len(rows) == number
                return [content_of(row) for row in rows]
            time.sleep(0.05)

    def draft(self, fits):
        """Wait for a draft at the workbench that fits."""
        mine = select(StoredAssignment.draft).where(StoredAssignment.person_id == self.person)
        end = time.monotonic() + 60
        while True:
            with self.database.reading() as session:
                drafts = [draft for draft in session.scalars(mine) if draft]
            if any(fits(draft) for draft in drafts):
                return
            assert time.monotonic() < end, drafts
            time.sleep(0.05)
