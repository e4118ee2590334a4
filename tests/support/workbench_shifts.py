"""A project of the workbench under everything that people do at once and in odd order, as a Hypothesis state machine.

People of all roles act through the workbench's own functions: they take tasks, enter drafts, answer late, from a page
that gave the task back, or twice; they align, settle, review, and send back; settings and accounts change under them.
`TeamMachine` checks after each step what always holds, and at the end that all work is done or waits where it is seen.
"""

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sqlalchemy import select

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.pipeline import SETTLED_BY, Layer, TransitionRefused
from steelyard.core.errors import ConfigError
from steelyard.workbench.accounts.people import change_account, erase_person
from steelyard.workbench.pipeline.alignment import (
    adjudicate,
    all_items_to_align,
    items_to_adjudicate,
    pass_on,
    propose,
    tasks_to_align,
)
from steelyard.workbench.pipeline.changed_settings import change_settings
from steelyard.workbench.pipeline.counters import recount
from steelyard.workbench.pipeline.disputes import ALIGNING, evidence_of
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.queues import give_back, next_assignments, release
from steelyard.workbench.pipeline.reviewing import Verdict, decide, decide_batch, items_to_review
from steelyard.workbench.pipeline.submissions import lock_assignment, save_draft, submit
from steelyard.workbench.pipeline.unassignable import unassignable_work
from steelyard.workbench.storage.audit_log import verify
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredEvent,
    StoredPerson,
    StoredProject,
    StoredReview,
)
from steelyard.workbench.views.task_views import view_tasks
from workbench_crew import Crew, in_order
from workbench_people import sums_of

LAYERS: dict[Layer, str] = {"delivery": "delivery", "operations": "operations", "research": "researcher"}
ENDS = ("finished", "dropped")
MINUTE = 60.0
MOST_ROUNDS = 100
number = st.integers(0, 7)
layers = st.sampled_from(list(LAYERS))
orders = st.sampled_from(["abcd", "abcd", "abcd", "dcba", "bacd"])
discards = st.sampled_from(["", "", "", "d", "c", "cd", "abd"])


class TeamMachine(RuleBasedStateMachine):
    """A team at work on two items; ``new_database`` gives an empty database."""

    new_database = None

    def __init__(self):
        super().__init__()
        self.database = type(self).new_database()
        self.crew = Crew(self.database, responses="abcd", num_items=2, gold_share=0.3)
        self.annotators = list(self.crew.people["annotator"])
        self.pages: list[tuple[int, int]] = []
        """Assignments that some page has shown, with their people."""
        self.stored: dict[int, TaskAnswer] = {}
        """What the workbench said it has stored, by assignment."""
        self.events: list[tuple[int, str]] = []

    def write(self, action, *arguments, **named):
        """Do something that may be refused, as a page would be told. Returns its result; null for a refusal."""
        try:
            return self.database.write(lambda session: action(session, *arguments, **named, at=self.crew.now()))
        except (TransitionRefused, ConfigError):
            return None

    def person(self, number):
        """One of the accounts that began as annotators."""
        return self.annotators[number % len(self.annotators)]

    def is_annotator(self, person):
        with self.database.reading() as session:
            row = session.get_one(StoredPerson, person)
        return row.is_active and row.role == "annotator"

    def able(self, role):
        return [row.id for row in self.crew.rows(select(StoredPerson).filter_by(role=role, is_active=True))]

    @rule(number=number, ahead=st.integers(1, 3))
    def load(self, number, ahead):
        """A page loads tasks; nothing in them names an author or a response."""
        person = self.person(number)
        if not self.is_annotator(person):
            return

        def work(session, at):
            membership = self.crew.membership(session, person)
            mine = next_assignments(session, membership, number=ahead, at=at)
            text = msgspec.json.encode(view_tasks(session, membership, mine, at=at)).decode()
            assert '"author"' not in text
            assert '"is_gold"' not in text
            assert {letter for view in msgspec.json.decode(text)["tasks"] for letter in _letters(view)} <= set("ABCD")
            return [(each.id, person) for each in mine]

        self.pages += [page for page in self.write(work) if page not in self.pages]

    @precondition(lambda self: self.pages)
    @rule(number=st.integers(0, 30), order=orders, discarded=discards, cannot=st.integers(0, 9))
    def answer(self, number, order, discarded, cannot):
        """Somebody answers a task that a page shows, whatever has become of it since."""
        assignment, person = self.pages[-1 - number % len(self.pages)]
        if self.is_annotator(person):
            self._answer(assignment, person, order, discarded, is_given_up=cannot == 0)

    def _answer(self, assignment, person, order="abcd", discarded="", *, is_given_up=False):
        def work(session, at):
            locked = lock_assignment(session, assignment, person=person)
            answer = TaskAnswer(cannot_judge="no idea")
            if not is_given_up:
                answer = in_order(locked.task.responses, discarded, order, locked.task.kind)
            return submit(session, locked, answer, seconds=5.0, at=at), answer

        outcome, answer = self.write(work) or ("refused", None)
        if outcome == "stored":
            assert assignment not in self.stored
            self.stored[assignment] = answer

    @rule(one=orders, other=orders, discarded=discards, by_all=st.booleans())
    def annotate_for_an_hour(self, one, other, discarded, by_all):
        """Everybody answers up to three tasks, every second person with another order, all or half with discards."""
        for number, person in enumerate(self.annotators):
            self.load(number, 3)
            for row in self.crew.rows(select(StoredAssignment).filter_by(state="open", person_id=person)):
                is_other = number % 2
                self._answer(row.id, person, other if is_other else one, discarded if by_all or is_other else "")

    @rule(order=orders, discarded=discards)
    def align_for_an_hour(self, order, discarded):
        """Everybody proposes the same for the first of the own disputed tasks."""
        for number in range(len(self.annotators)):
            self.align(number, order, discarded, 1)

    @rule(layer=layers, rejects=st.sampled_from([1, 1, 0]))
    def review_for_an_hour(self, layer, rejects):
        """Everybody of a layer decides on the first item of the own queue."""
        for number in range(len(self.able(LAYERS[layer]))):
            self.review(layer, number, rejects, is_stale=False)

    @precondition(lambda self: self.pages)
    @rule(number=st.integers(0, 30), what=st.sampled_from(["draft", "hand back", "close page"]))
    def stay_or_leave(self, number, what):
        """Somebody enters something, hands a task back, or closes the page that had loaded it."""
        assignment, person = self.pages[-1 - number % len(self.pages)]

        def work(session, at):
            row = session.get_one(StoredAssignment, assignment)
            if what == "draft":
                save_draft(session, row, TaskAnswer(remark="so far"), seconds=1.0, expires_at=at + 45 * MINUTE)
            elif what == "hand back":
                release(session, row)
            else:
                give_back(session, person, {row.id: row.expires_at})

        if self.is_annotator(person):
            self.write(work)

    @rule(number=number, order=orders, discarded=discards, gives_up=st.integers(0, 4))
    def align(self, number, order, discarded, gives_up):
        """Somebody proposes an answer to a disputed task, or passes the item on."""
        person = self.person(number)
        with self.database.reading() as session:
            queue = [entry.item.id for entry in all_items_to_align(session, person)]
            tasks = tasks_to_align(session, queue[0], person) if queue else None
        if not tasks or not self.is_annotator(person):
            return
        if gives_up == 0:
            self.write(pass_on, queue[0], "no way", state="aligning", person=person)
            return
        task = next(each for each in tasks if each.is_open).task
        self.write(propose, queue[0], task.id, in_order(task.responses, discarded, order, task.kind), person=person)

    @rule(layer=layers, number=number, discarded=discards, passes_on=st.integers(0, 2))
    def adjudicate(self, layer, number, discarded, passes_on):
        """A layer settles what the annotators could not, or passes it on."""
        people = self.able(LAYERS[layer])
        if not people:
            return
        person = people[number % len(people)]
        with self.database.reading() as session:
            items = items_to_adjudicate(session, layer, person)
            tasks = evidence_of(session, items[:1]).get(items[0].id, []) if items else []
        if not items:
            return
        if passes_on == 0 and layer != "research":
            state = next(state for state, each in SETTLED_BY.items() if each == layer)
            self.write(pass_on, items[0].id, "hard", state=state, person=person)
            return
        task = next(each.task for each in tasks if each.is_open)
        self.write(
            adjudicate,
            items[0].id,
            task.id,
            in_order(task.responses, discarded, kind=task.kind),
            layer=layer,
            person=person,
        )

    @rule(layer=layers, number=number, rejects=st.integers(0, 3), is_stale=st.booleans())
    def review(self, layer, number, rejects, is_stale):
        """A layer decides on an item, perhaps with a form of an earlier round."""
        people = self.able(LAYERS[layer])
        if not people:
            return
        person = people[number % len(people)]
        with self.database.reading() as session:
            items = items_to_review(session, layer, person)
        if items:
            verdict = Verdict(rejects > 0, "again", rejects == 3, items[0].round - is_stale)

            def work(session, at):
                decide(session, items[0].id, verdict, layer=layer, person=person, at=at)
                return "decided"

            assert (self.write(work) is None) == is_stale

    @rule(accepts=st.booleans(), number=number)
    def decide_on_batch(self, accepts, number):
        """A whole batch is accepted or sent back, also while people review its items."""

        def work(session, at):
            project, people = session.get_one(StoredProject, self.crew.project), self.crew.people["researcher"]
            person = people[number % len(people)]
            decide_batch(session, project, "b", Verdict(accepts, "all"), layer="research", person=person, at=at)

        if accepts or number == 0:
            self.write(work)

    @rule(wanted=st.integers(1, 3), two_left=st.booleans())
    def change_rules(self, wanted, two_left):
        """Another number of people is asked; two responses are compared or not."""

        def work(session, at):
            project = session.get_one(StoredProject, self.crew.project)
            now = settings_of(project)
            rules = {"num_annotators": wanted, "two_left": "drop" if two_left else "compare"}
            changed = msgspec.structs.replace(now, rules=msgspec.structs.replace(now.rules, **rules))
            change_settings(session, project, changed, by=None, at=at)

        self.write(work)

    @rule(number=st.integers(0, 1), what=st.sampled_from(["close", "open", "delivery", "erase"]))
    def change_person(self, number, what):
        """One of two annotators leaves in the middle, comes back, or becomes a reviewer."""

        def work(session, at):
            row = session.get_one(StoredPerson, self.annotators[number])
            if row.erased_at is not None:
                return
            if what == "erase":
                erase_person(session, row, by=None, at=at)
                return
            role = "delivery" if what == "delivery" else "annotator"
            change_account(session, row, role=role, is_active=what != "close", skills=(), by=None, at=at)

        self.write(work)

    @rule(minutes=st.sampled_from([1, 46, 24 * 60]))
    def wait(self, minutes):
        """Time passes, with pages left open."""
        self.crew.at += minutes * MINUTE

    @invariant()
    def places_and_answers_add_up(self):
        """No task has more answers than it wants, no place is lost, and every stored answer is there."""
        answers = self.crew.rows(select(StoredAnswer).filter_by(stage="annotation"))
        assert {each.assignment_id: msgspec.convert(each.content, TaskAnswer) for each in answers} == self.stored
        held = [each.task_id for each in self.crew.rows(select(StoredAssignment).filter_by(state="open"))]
        states = {item.id: item.state for item in self.crew.items()}
        rounds = {item.id: item.round for item in self.crew.items()}
        num_answered = [each.task_id for each in answers]
        for task in self.crew.tasks():
            assert task.num_answered == num_answered.count(task.id) <= task.num_wanted
            assert task.num_reserved == task.num_answered + held.count(task.id) <= task.num_wanted
            is_asked = states[task.item_id] == "annotating" and task.round == rounds[task.item_id]
            is_live = not task.is_retired and (task.is_gold or is_asked)
            assert task.is_open == (is_live and task.num_reserved < task.num_wanted)

    @invariant()
    def no_item_waits_for_nothing(self):
        """An item in annotation has a task that lacks an answer; one that is to be settled has something open."""
        for item in self.crew.items():
            tasks = self.crew.tasks(item_id=item.id, round=item.round, is_retired=False, is_gold=False)
            lacking = [task for task in tasks if task.num_answered < task.num_wanted]
            assert bool(lacking) == (item.state == "annotating"), (item.state, len(tasks))
            if item.state in ALIGNING:
                with self.database.reading() as session:
                    assert any(each.is_open for each in evidence_of(session, [item])[item.id])

    @invariant()
    def the_log_only_grows(self):
        """What the audit log had it still has, and the path of each item through it has no gap."""
        events = self.crew.rows(select(StoredEvent).order_by(StoredEvent.id))
        assert [(each.id, each.hash) for each in events][: len(self.events)] == self.events
        self.events = [(each.id, each.hash) for each in events]
        for item in self.crew.items():
            moves = [each.detail for each in events if each.subject_id == item.id and "from" in each.detail]
            assert [move["from"] for move in moves] == ["annotating", *(move["to"] for move in moves)][: len(moves)]
            assert (moves[-1]["to"] if moves else "annotating") == item.state

    def teardown(self):
        """All work comes to an end, or waits where it is seen; the log and the sums are whole."""
        self.calm_down()
        waiting = [item for item in self.crew.items() if item.state not in ENDS]
        with self.database.reading() as session:
            project = session.get_one(StoredProject, self.crew.project)
            seen = {prompt for row in unassignable_work(session, project) for prompt in row.examples}
            assert verify(session) is None
        assert {item.prompt for item in waiting} <= seen
        self.nobody_reviewed_the_own()
        self.sums_are_those_of_a_recount()
        self.database.close()

    def calm_down(self):
        """Let everybody work on with the same opinion until nothing moves."""
        before, rounds = None, 0
        while before != (before := len(self.crew.rows(select(StoredEvent.id)))):
            assert (rounds := rounds + 1) <= MOST_ROUNDS, "people go on for ever"
            self.crew.at += 60 * MINUTE
            for number in range(len(self.annotators)):
                self.load(number, 3)
            for row in self.crew.rows(select(StoredAssignment).filter_by(state="open")):
                self._answer(row.id, row.person_id)
            for number in range(len(self.annotators)):
                self.align(number, "abcd", "", 1)
            for layer, role in LAYERS.items():
                for number in range(len(self.able(role))):
                    self.adjudicate(layer, number, "", 1)
                    self.review(layer, number, 1, is_stale=False)

    def nobody_reviewed_the_own(self):
        """Who decided on an item had not annotated or aligned it before."""
        items = {task.id: task.item_id for task in self.crew.tasks()}
        worked = [
            (items[each.task_id], each.person_id, each.at)
            for each in self.crew.rows(select(StoredAnswer))
            if each.stage in ("annotation", "proposal", "alignment")
        ]
        for review in self.crew.rows(select(StoredReview).where(StoredReview.decision.is_not(None))):
            own = [at for item, person, at in worked if (item, person) == (review.item_id, review.person_id)]
            assert all(at > review.at for at in own)

    def sums_are_those_of_a_recount(self):
        """The sums behind all figures are what the answers add up to."""
        before = sums_of(self.database)
        self.database.write(recount)
        after = sums_of(self.database)
        # What the gate saw is counted again from the tasks that remain: some have retired since, with a response.
        assert {name: rows for name, rows in after.items() if name != "gate_results"} == {
            name: rows for name, rows in before.items() if name != "gate_results"
        }


def _letters(view):
    return [response["id"] for response in view["responses"]]
