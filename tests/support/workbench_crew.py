"""A small project of the workbench and its people, for tests: who answers what, in one line each."""

import re
import time
from itertools import combinations

import msgspec
from sqlalchemy import select

from quick_client import QuickClient
from steelyard.annotation.answers import BucketComparison, TaskAnswer
from steelyard.annotation.pipeline import PipelineRules
from steelyard.workbench.accounts.people import NewPerson, add_person, log_in
from steelyard.workbench.accounts.permissions import COOKIE
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.disputes import evidence_of
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project, settings_of
from steelyard.workbench.pipeline.queues import Membership, next_assignments
from steelyard.workbench.pipeline.submissions import lock_assignment, submit
from steelyard.workbench.storage.tables import (
    StoredAssignment,
    StoredEvent,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredTask,
)
from strategies import case

ROLES = ("annotator",) * 4 + ("delivery",) * 2 + ("operations",) * 2 + ("researcher",) * 2


def ranked(tiers, discarded=""):
    """An answer without contradictions, as ``ranked("a>b=c", discarded="d")``: the first tier has 5 points."""
    ranking = tuple(tuple(tier.split("=")) for tier in tiers.split(">")) if tiers else ()
    return TaskAnswer(
        scores={response: 5 - place for place, tier in enumerate(ranking) for response in tier},
        comparisons=tuple(
            BucketComparison(first=first, second=second, choice="same")
            for tier in ranking
            for first, second in combinations(tier, 2)
        ),
        ranking=ranking,
        discarded=dict.fromkeys(discarded, "garbled"),
    )


def in_order(responses, discarded="", order="abcdefghij", kind="triple"):
    """The answer to a task of someone who likes letters in an order, that of the alphabet unless told."""
    left = sorted(set(responses) - set(discarded), key=order.index)
    answer = ranked(">".join(left), "".join(each for each in responses if each in discarded))
    return msgspec.structs.replace(answer, scores={}) if kind == "pairwise" else answer


class Crew:
    """A project of ``cases``, or of ``num_items`` plain items, with people of every role: ids by role in ``people``."""

    def __init__(self, database, *, responses="abcde", num_items=1, seed=0, passwords=None, cases=None, **rules):
        self.database, self.at = database, 1000.0
        settings = ProjectSettings(rules=PipelineRules(**({"gold_share": 0.0} | rules)), seed=seed)
        cases = cases or [case(f"p{number}", responses) for number in range(num_items)]

        def make(session):
            project = add_project(session, "project", settings, by=None, at=0.0)
            people = {}
            for number, role in enumerate(ROLES):
                name = f"{role} {number}"
                person = add_person(session, NewPerson(name, role, passwords), by=None, at=0.0)
                people.setdefault(role, []).append(person.id)
            import_cases(session, project, cases, batch="b", by=None, at=0.0)
            return project.id, people

        self.project, self.people = database.write(make)

    def visit(self, app, name, password):
        """Return the browser of a person who is logged in; it follows no redirection, and sends its session's token."""
        client = QuickClient(app)
        at = time.time()
        cookie = self.database.write(lambda session: log_in(session, name, password, address="x", at=at))
        client.cookies.set(COOKIE, cookie)
        token = re.search(r'name="csrf-token" content="(\w+)"', client.get("/account").text)[1]
        client.headers["x-csrf-token"] = token
        return client

    def now(self):
        """A later time at each call."""
        self.at += 1
        return self.at

    def take(self, person):
        """Return the assignment, task number and responses of a person's next task; null where there are none."""

        def work(session):
            mine = next_assignments(session, self.membership(session, person), number=1, at=self.now())
            if not mine:
                return None
            task = session.get_one(StoredTask, mine[0].task_id)
            return mine[0].id, task.id, tuple(task.responses)

        return self.database.write(work)

    def membership(self, session, person):
        project = session.get_one(StoredProject, self.project)
        return Membership(session.get_one(StoredPerson, person), project, settings_of(project))

    def submit(self, assignment, answer):
        """Submit an answer to an assignment."""

        def work(session):
            person = session.get_one(StoredAssignment, assignment).person_id
            locked = lock_assignment(session, assignment, person=person)
            return submit(session, locked, answer, seconds=10.0, at=self.now())

        return self.database.write(work)

    def annotate(self, choose, people=None):
        """Let people take turns until no task is left; ``choose(person, responses)`` gives their answers."""
        people = people or self.people["annotator"]
        idle = 0
        while idle < len(people):
            idle = 0
            for person in people:
                taken = self.take(person)
                if taken is None:
                    idle += 1
                else:
                    self.submit(taken[0], choose(person, taken[2]))

    def items(self):
        """All items, as they are now."""
        return self.rows(select(StoredItem).order_by(StoredItem.place, StoredItem.id))

    def item(self, number=0):
        """The item of a number from 0, as it is now."""
        return self.items()[number]

    def tasks(self, **wanted):
        """All tasks whose columns have these values."""
        return self.rows(select(StoredTask).filter_by(**wanted).order_by(StoredTask.id))

    def evidence(self, number=0):
        """The tasks of an item with the answers to them."""
        item = self.item(number)
        with self.database.reading() as session:
            evidence = evidence_of(session, [item])[item.id]
            session.expunge_all()
        return evidence

    def events(self, action):
        """The events of the audit log with a name."""
        return self.rows(select(StoredEvent).filter_by(action=action).order_by(StoredEvent.id))

    def rows(self, statement):
        with self.database.reading() as session:
            rows = session.scalars(statement).all()
            # What a session has read is forgotten at its end, but for what has left it.
            session.expunge_all()
        return rows
