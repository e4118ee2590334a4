"""Forms of alignment and review for questions: what was sent is the answer, and what no page sends is refused."""

import itertools
import re
import time

import pytest
from sqlalchemy import select

from each_value import each
from quick_client import QuickClient
from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.simulated_annotators import Noise
from steelyard.annotation.task_kinds import kind_named, kind_names
from steelyard.core.errors import ConfigError
from steelyard.core.text import answer_language
from steelyard.workbench.accounts.people import log_in
from steelyard.workbench.accounts.permissions import COOKIE
from steelyard.workbench.pipeline.disputes import evidence_of
from steelyard.workbench.pipeline.projects import ProjectSettings, case_of
from steelyard.workbench.pipeline.question_words import catalogues_of
from steelyard.workbench.simulated_people import Habits
from steelyard.workbench.simulated_projects import PASSWORD, import_batch, start_project
from steelyard.workbench.simulation import annotate
from steelyard.workbench.storage.tables import StoredItem, StoredPerson
from steelyard.workbench.views.adjudication_forms import EnteredForm, answer_of_questions, question_fields
from task_kind_cases import cases_for, rules_for, simulated
from workbench_site import begun

CATALOGUES = catalogues_of(ProjectSettings())
QUESTION_KINDS = [name for name in kind_names() if name != "triple"]


@each("name", QUESTION_KINDS)
@each("seed", range(6))
def test_a_form_that_was_filled_in_with_an_answer_gives_that_answer(name, seed):
    shown, answer = simulated(name, CATALOGUES, seed=seed)
    questions = kind_named(name).questions(tuple(shown), CATALOGUES)
    fields = {field.name: [field.value] for field in question_fields(questions, answer)}
    for field in question_fields(questions, answer):
        if field.question.input == "marks":
            fields[field.name] = ["0"]
    assert answer_of_questions(questions, tuple(shown), EnteredForm(fields), [answer]) == answer


def test_marks_are_taken_from_those_who_answered():
    questions = kind_named("span_marking").questions(("a",), CATALOGUES)
    first = TaskAnswer(spans={"a": ((0, 4, "other", None), (10, 12, "harmful", "why"))})
    second = TaskAnswer(spans={"a": ((2, 6, "other", None),)})

    def taken(value):
        form = EnteredForm({"question-0": [value], "remark": [" so "]})
        return answer_of_questions(questions, ("a",), form, [first, second])

    assert taken("1").spans == second.spans
    assert taken("1").remark == "so"
    assert taken("all").spans == {"a": ((0, 4, "other", None), (2, 6, "other", None), (10, 12, "harmful", "why"))}
    assert taken("common").spans == {"a": ((0, 4, "other", None),)}
    assert taken("none").spans == {}
    for wrong in ("2", "-1", "x", "¹"):
        with pytest.raises(ConfigError):
            taken(wrong)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("pairwise", {"question-0": ["third"]}),
        ("translation_quality", {"question-0": ["none"], "question-1": ["101"]}),
        ("translation_quality", {"question-0": ["none"], "question-1": ["-1"]}),
        ("translation_quality", {"question-0": ["none"], "question-1": ["9" * 5000]}),
    ],
)
def test_what_no_page_sends_is_an_error(name, fields):
    shown, _ = simulated(name, CATALOGUES)
    questions = kind_named(name).questions(tuple(shown), CATALOGUES)
    with pytest.raises(ConfigError):
        answer_of_questions(questions, tuple(shown), EnteredForm(fields), [])


@pytest.mark.parametrize("text", ["85", "٨٥", "८५", "８５"])
def test_points_may_have_the_digits_of_any_script(text):
    shown, _ = simulated("translation_quality", CATALOGUES)
    questions = kind_named("translation_quality").questions(tuple(shown), CATALOGUES)
    form = EnteredForm({"question-0": ["none"], "question-1": [text]})
    assert list(answer_of_questions(questions, tuple(shown), form, []).scores.values()) == [85]


def test_a_discarded_response_of_a_pair_leaves_no_order():
    questions = kind_named("pairwise").questions(("a", "b"), CATALOGUES)
    form = EnteredForm({"question-0": ["first"], "discard": ["", "garbled"]})
    answer = answer_of_questions(questions, ("a", "b"), form, [])
    assert answer == TaskAnswer(discarded={"b": "garbled"})
    assert kind_named("pairwise").contradictions(answer, ("a", "b")) == ()


def test_entries_that_do_not_apply_any_more_are_left_out():
    questions = kind_named("prompt_review").questions((), CATALOGUES)
    names = [question.name for question in questions]
    sent = {"decision": "drop", "revised_text": "x", "drop_reason": "unsafe", "category": "code", "difficulty": "easy"}
    form = EnteredForm({f"question-{place}": [sent.get(name, "")] for place, name in enumerate(names)})
    assert answer_of_questions(questions, (), form, []).entries == {"decision": "drop", "drop_reason": "unsafe"}


class Pages:
    """A project of a kind, whose simulated people have answered, and the pages as one of them sees them."""

    def __init__(self, database, name):
        every = cases_for(name, 12)
        # Half of all looks err, so that somebody differs from somebody.
        noise = Noise(spread=0.6, tie_band=0.065)
        self.database, self.name = database, name
        self.simulation = start_project(
            database, every, seed=1, begun_at=0.0, num_annotators=2, tasks=rules_for(name), habits=Habits(noise=noise)
        )
        import_batch(self.simulation, every, "b", has_reference=name == "native_check")
        annotate(self.simulation)
        self.app = begun(database)

    def client(self, person, language):
        """Return a browser of a person, whose pages are in a language, and the token of its forms."""

        def log(session):
            row = session.get_one(StoredPerson, person)
            row.language = language
            row.password_hash = session.get_one(StoredPerson, self.simulation.crew.annotators[0]).password_hash
            return log_in(session, row.name, PASSWORD, address="x", at=time.time())

        client = QuickClient(self.app)
        client.cookies.set(COOKIE, self.database.write(log))
        return client, re.search(r'name="csrf-token" content="(\w+)"', client.get("/account").text)[1]

    def disputed(self):
        """Return an item that two people have to align, with its first open task."""
        with self.database.reading() as session:
            item = session.scalars(select(StoredItem).where(StoredItem.state == "aligning")).first()
            return item.id, next(each.task.id for each in evidence_of(session, [item])[item.id] if each.is_open)


@pytest.mark.parametrize(("name", "language"), list(zip(QUESTION_KINDS, itertools.cycle(["en", "zh"]), strict=False)))
def test_people_align_on_a_page_with_a_field_for_each_question(database, name, language):
    pages = Pages(database, name)
    item, task = pages.disputed()
    for turn, person in enumerate(pages.simulation.crew.annotators):
        client, csrf = pages.client(person, language)
        shown = client.get(f"/align/{item}")
        assert shown.status_code == 200
        # A translator sees from which language into which one, as on the page of the task.
        named = re.findall(r"data-language>([^<]+)<", shown.text)
        with database.reading() as session:
            prompt = case_of(session.get_one(StoredItem, item)).prompt
        expected = [prompt.language, answer_language(prompt)]
        assert named == [each for each in expected[: 1 + (expected[0] != expected[1])] if each]
        form = shown.text.split(f'action="/align/{item}/tasks/{task}"')[1].split("</form>")[0]
        with database.reading() as session:
            answered = evidence_of(session, [session.get_one(StoredItem, item)])[item]
        mine = next(list(each.answers).index(person) for each in answered if each.task.id == task)
        # A form begins with what its reader said: the marks, too.
        assert set(re.findall(r'<option value="(\d+)" selected>', form)) == (
            {str(mine)} if 'value="common"' in form else set()
        )
        entered = {"csrf": csrf, "remark": ""}
        for field in re.findall(r'<(?:select|input|textarea) name="(question-\d+)"', form):
            # The first choice of each list: both people propose the same.
            values = re.findall(r'<option value="([^"]+)"', form.split(f'name="{field}"')[1].split("</select>")[0])
            entered[field] = (values or ["50"])[0] if "<select" in form.split(f'name="{field}"')[0][-9:] else "50"
        wrong = client.post(f"/align/{item}/tasks/{task}", data={**entered, "question-0": "no page sends this"})
        assert wrong.status_code == 400
        sent = client.post(f"/align/{item}/tasks/{task}", data=entered)
        assert sent.status_code == 303, sent.text
        with database.reading() as session:
            evidence = evidence_of(session, [session.get_one(StoredItem, item)])[item]
            assert all(len(set(each.disputed)) == len(each.disputed) for each in evidence)
            state = next((each for each in evidence if each.task.id == task), None)
            # A baseline or a pair has nothing open either once both agreed.
            assert state is not None
            assert (state.settled is not None) == (turn == 1)
