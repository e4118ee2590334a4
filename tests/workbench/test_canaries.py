"""No id of a response and no name behind it ever leaves the server for an annotator; refusals are in words of the page.

Every id, author, judge, source and path of the data, and every other person, has a name with a canary in it.
"""

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec
import pytest
from fastapi.routing import APIRoute
from sqlalchemy import JSON, String, select, update

from steelyard.annotation.agreement import disputed_points
from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.task_kinds import kind_named, kind_names
from steelyard.core.types import Case, Judgment, Rating
from steelyard.workbench.accounts.people import ROLES
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.pipeline.question_words import catalogues_of
from steelyard.workbench.pipeline.queues import next_assignments
from steelyard.workbench.qualification.material import import_qualification
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredItem,
    StoredPerson,
    StoredTask,
    WorkbenchTable,
)
from steelyard.workbench.views.pages import words_of
from task_kind_cases import cases_for, look_at, rules_for
from workbench_people import NO_GOLD, NOON, cases_with_reference, membership_of
from workbench_routes import HOLDERS, ROUTES, filled, routes_of

CANARY, CHINESE = re.compile("canary", re.IGNORECASE), re.compile("[\u4e00-\u9fff]")
IDS = re.compile(r"(?<![\w-])([rq]\d+)(?![\w-])")
"""The ids of the cases that tests are made of."""
SENTENCE = re.compile(r'(?:class="[^"]*reason-lines"[^>]*>|role="alert"[^>]*>|<h1>)(.*?)</', re.DOTALL)
ENGLISH = re.compile(r"\b(?!steelyard )[a-z]+ [a-z]+ [a-z]+")
"""Three words in English, but for a command."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
LAST = {"/account/password", "/account/language"}
"""Routes that end the session or change its language: what they are for is not done in a walk."""
VALUES = ("", "99999999999999999999", "x" * 6000, "\u0000")
FOLDER = "/srv/canary/gpt-4-0613.jsonl"


def put_canaries(database, reader="annotator"):
    """Rename what the data name, and everybody but the reader, as a case file and a team might name them."""
    tables = WorkbenchTable.metadata.sorted_tables
    with database.engine.begin() as connection:
        for table in tables:
            for column in (each.name for each in table.columns if isinstance(each.type, String | JSON)):
                rows = connection.exec_driver_sql(f"SELECT id, {column} FROM {table.name}").all()
                for number, text in rows:
                    renamed = IDS.sub(r"canary-gpt-4-\1", str(text))
                    if renamed != str(text):
                        change = f"UPDATE {table.name} SET {column} = ? WHERE id = ?"
                        connection.exec_driver_sql(change, (renamed, number))
        connection.execute(
            update(StoredPerson)
            .where(StoredPerson.name != reader)
            .values(name="canary." + StoredPerson.name, display_name="Canary " + StoredPerson.name)
        )
    database.write(lambda session: [name_makers(item) for item in session.scalars(select(StoredItem))])


def name_makers(item):
    """Give the case of an item authors, a judge, a rater, a source and paths."""
    case = msgspec.json.decode(item.case_json, type=Case)
    replace, meta = msgspec.structs.replace, {"file": FOLDER, "annotator": "Canary Zhang"}
    responses = tuple(replace(each, author="Canary-7B-Chat", meta=meta) for each in case.responses)
    ids = [each.id for each in responses]
    judgment = [
        Judgment(left=first, right=second, verdict="left", judge="canary-judge", kind="llm")
        for first, second in pairwise(ids)
    ]
    rating = [Rating(response=each, rater="canary-rater", kind="human", dimension="d", value=1.0) for each in ids]
    prompt = replace(case.prompt, source=FOLDER, subset="canary-subset", meta=meta)
    made = replace(
        case, prompt=prompt, responses=responses, judgments=tuple(judgment), ratings=tuple(rating), meta=meta
    )
    item.case_json = msgspec.json.encode(made).decode()


def leaks(answer):
    """What of an answer has a canary: its text, its headers, its cookies."""
    parts = (answer.text, str(answer.headers), str(dict(answer.cookies)), str(answer.url))
    return [part[max(0, found.start() - 80) : found.end() + 40] for part in parts if (found := CANARY.search(part))]


def refusals(answer):
    """The sentences of an answer that says why something was not done."""
    if answer.status_code < 400 or not answer.text:
        return []
    if answer.headers["content-type"] == "application/json":
        return [answer.json()["error"]]
    return [re.sub("<[^>]*>", "", each) for each in SENTENCE.findall(answer.text)]


def speak(visit, language):
    """Let everybody read pages in a language."""
    visit.database.write(lambda session: session.execute(update(StoredPerson).values(language=language)))


def requests_to(method, path, route):
    """Yield what is sent to a route: nothing, what it is for, garbage, and fields with each wrong value."""
    row = ROUTES.get((method, path))
    yield {}
    if method == "GET":
        fields = route.dependant.query_params if isinstance(route, APIRoute) else ()
        yield from ({"params": {each.alias: value for each in fields}} for value in VALUES if fields)
        return
    if row is not None and path not in LAST:
        yield dict(row.sent)
    for body in (b"{", b'{"scores": {"A": "x"}}', b"\xff\xfe"):
        yield {"content": body, "headers": {"content-type": "application/json"}}
    yield {"content": b"--x", "headers": {"content-type": "multipart/form-data"}}
    names = [each.alias for each in route.dependant.body_params] if isinstance(route, APIRoute) else []
    yield from ({"data": dict.fromkeys((*names, "score", "place", "discard", "question-0"), value)} for value in VALUES)


def walk(visit, role):
    """Yield every answer to somebody of a role, with its request, over all routes and methods."""
    headers = {"x-csrf-token": visit.csrf(role), "accept-language": "zh"}
    browser, program = visit.browser(role), visit.program(visit.site.tokens[role])
    # The session lasts until the end of the walk.
    for method, path, route in [each for each in routes_of(visit.app.routes) if each[1] != "/logout"]:
        row = ROUTES.get((method, path))
        is_allowed = row is None or role in HOLDERS[row.permission]
        kind = {"accept": "application/json"} if path.startswith("/annotate/") else {}
        for is_foreign in (False, True) if "{" in path and is_allowed else (False,):
            address = filled(path, visit.site, role, is_foreign=is_foreign)
            for sent in requests_to(method, path, route) if method else ():
                query = "" if row is None or "params" in sent else row.query
                named = {**headers, **kind, **sent.get("headers", {})}
                yield method, address, browser.request(method, address + query, **{**sent, "headers": named})
                if not is_allowed:
                    break
        yield "token", address, program.request(method or "GET", address, headers=kind)
        for other in METHODS:
            yield other, address, browser.request(other, address, headers={**headers, **kind})


WALKS = [("annotator", "en"), *(pytest.param(role, "zh", marks=pytest.mark.slow) for role in ROLES)]


@pytest.mark.slow
@pytest.mark.parametrize(("role", "language"), WALKS, ids=lambda value: value)
def test_no_canary_leaves_by_any_route_and_refusals_are_in_words(visit, role, language):
    put_canaries(visit.database, role)
    speak(visit, language)
    counts = Counter()
    for method, address, answer in walk(visit, role):
        counts[answer.status_code] += 1
        # Whoever judges an item is blind, also a researcher who reviews it.
        assert not (role == "annotator" or address.startswith("/review")) or leaks(answer) == [], (method, address)
        is_read = language == "zh" and method != "token" and not address.startswith(("/api/", "/static", "/vendored"))
        for sentence in refusals(answer) if is_read else ():
            assert CHINESE.search(sentence), (method, address, sentence)
            assert not ENGLISH.search(sentence), (method, address, sentence)
    # The walk does what routes are for, and is refused in each way.
    assert counts[200] > 20
    assert {303, 400, 403, 404, 405, 422} <= counts.keys()
    if role == "administrator":
        # Who manages the project reads the names that annotators must not see.
        assert leaks(visit.browser(role).get(f"/manage/projects/{visit.site.project}/items"))
        assert leaks(visit.browser(role).get("/manage/people"))


class Blind:
    """A project of a kind: tasks to answer, an item to align, and a round of qualification, for the annotator."""

    def __init__(self, visit, name):
        self.visit, self.kind = visit, kind_named(name)
        rules = msgspec.structs.replace(rules_for(name), **({"baseline": "model 1"} if name == "baseline" else {}))
        self.settings = ProjectSettings(rules=NO_GOLD, tasks=rules)
        self.project, self.item, self.task, self.form = visit.database.write(lambda session: self._make(session, name))

    def _make(self, session, name):
        people = self.visit.site.people
        project = add_project(session, name, self.settings, by=None, at=NOON)
        import_cases(session, project, cases_for(name, 24), batch="b", by=None, at=NOON)
        if name == "triple":
            import_qualification(session, project, cases_with_reference(2), by=None, at=NOON)
        rows = select(StoredItem, StoredTask).join(StoredTask).where(StoredItem.project_id == project.id)
        item, task = session.execute(rows.order_by(StoredItem.id.desc()).limit(1)).one()
        case = msgspec.json.decode(item.case_json, type=Case)
        good = [self.kind.simulate(look_at(case, task.responses, seed=seed), self.catalogues) for seed in range(50)]
        first = good[0]
        different = (each for each in good if disputed_points(task.responses, (first, each), self.kind))
        second = next(different, TaskAnswer(cannot_judge="no idea"))
        for person, content in ((people["annotator"], first), (people["other"], second)):
            stored = msgspec.to_builtins(content)
            session.add(StoredAnswer(task_id=task.id, person_id=person, content=stored, seconds=1.0, at=NOON))
        item.state, task.is_open, task.num_answered, task.num_reserved = "aligning", False, 2, 2
        return project.id, item.id, task.id, len(self.kind.questions(task.responses, self.catalogues))

    @property
    def catalogues(self):
        return catalogues_of(self.settings)

    def take(self):
        """Reserve the next task; returns its number and a whole answer with letters, as the page would send it."""

        def work(session):
            membership = membership_of(session, self.project, self.visit.site.people["annotator"])
            (row,) = next_assignments(session, membership, number=1, at=time.time())
            case = msgspec.json.decode(
                session.get_one(StoredItem, session.get_one(StoredTask, row.task_id).item_id).case_json, type=Case
            )
            answer = self.kind.simulate(look_at(case, row.shown), self.catalogues)
            text = msgspec.json.encode(answer).decode()
            for letter, response in zip("ABCDEFG", row.shown, strict=False):
                text = text.replace(f'"{response}"', f'"{letter}"')
            return row.id, msgspec.json.decode(text), list("ABCDEFG"[: len(row.shown)])

        return self.visit.database.write(work)


def wrong_answers(good: Mapping, letters: Sequence[str]):
    """Yield answers that differ from a whole one in one part: what is missing, unknown, too much or contradicts."""
    a = [*letters, "Z"][0]
    yield {}
    for part, whole in good.items():
        yield {key: value for key, value in good.items() if key != part}
        for key in whole if isinstance(whole, dict) else ():
            yield {**good, part: {name: value for name, value in whole.items() if name != key}}
            yield from ({**good, part: {**whole, key: value}} for value in (-1, 99, "", "nonsense", []))
    yield {**good, "entries": {**good.get("entries", {}), "revised_text": "x" * 60_000}}
    ranking = [[letter] for letter in letters]
    for part in (ranking, ranking[::-1], ranking[:1], ranking * 2, [letters], [["Z"]], [["r0"]]):
        yield {**good, "ranking": part}
    scores = dict.fromkeys(letters, 3)
    better = [
        {"first": x, "second": y, "choice": "better"} for x, y in zip(letters, letters[1:] + letters[:1], strict=True)
    ]
    yield {**good, "scores": scores}
    yield {**good, "scores": scores, "comparisons": better, "ranking": ranking}
    yield {**good, "scores": scores, "comparisons": better[:-1] + better[-1:] * 200, "ranking": ranking}
    same = [{"first": x, "second": y, "choice": "same"} for x in letters for y in letters if x < y]
    yield {**good, "scores": scores, "comparisons": same, "ranking": ranking}
    yield {**good, "scores": {letter: 5 - number for number, letter in enumerate(letters)}, "ranking": ranking[::-1]}
    yield {**good, "comparisons": [{"first": a, "second": a, "choice": "same"}]}
    yield {**good, "scores": {"Z": 1}}
    yield {**good, "entries": {"nonsense": "x"}}
    yield from (
        {**good, "discarded": {key: reason}} for key in (a, "Z") for reason in ("garbled", "nonsense", "x" * 3000)
    )
    span = [0, 3, "factual error", None]
    for spans in ([[0, 9999, "x", None]], [[3, 3, "x", None]], [span] * 201, [[0, 1, "nonsense", "nonsense"]]):
        yield from ({**good, "spans": {key: spans}} for key in (a, "Z"))
    yield from ({"cannot_judge": reason} for reason in (" ", "x" * 3000))
    yield {**good, "remark": "x" * 3000}


PROBLEMS = {"misfit", "missing score", "missing comparison", "missing entry", "circle", "score against ranking"}
PROBLEMS |= {"comparison against ranking", "no reason", "discard reason", "too long", "too many marks"}


@pytest.mark.slow
@pytest.mark.parametrize("language", ["zh", "en"])
def test_no_wrong_answer_of_any_kind_is_refused_with_a_canary(visit, language):
    projects = [Blind(visit, name) for name in kind_names()]
    put_canaries(visit.database)
    speak(visit, language)
    browser, csrf = visit.browser("annotator"), visit.csrf("annotator")
    patterns = {
        key.removeprefix("refused "): re.sub(r"\\{\w+\\}", ".*", re.escape(text))
        for key, text in words_of(language).items()
        if key.startswith("refused ")
    }
    problems = set()
    for blind in projects:
        num_refused = 0
        assignment, good, letters = blind.take()
        for wrong in wrong_answers(good, letters):
            answer = sent(browser, csrf, f"/annotate/{assignment}/answer", wrong)
            for each in (answer, sent(browser, csrf, f"/annotate/{assignment}/draft", wrong)):
                assert leaks(each) == [], (blind.kind.name, wrong)
            for sentence in refusals(answer):
                num_refused += 1
                keys = {key for key, text in patterns.items() if re.fullmatch(text, sentence)}
                assert keys <= PROBLEMS, (blind.kind.name, wrong, sentence)
                assert keys, (blind.kind.name, wrong, sentence)
                problems |= keys
            if answer.status_code == 200:
                assignment, good, letters = blind.take()
        assert num_refused > 20, blind.kind.name
    assert problems >= PROBLEMS


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_form_of_any_kind_is_refused_with_a_canary(visit, language):
    projects = [Blind(visit, name) for name in kind_names()]
    put_canaries(visit.database)
    speak(visit, language)
    browser, csrf = visit.browser("annotator"), visit.csrf("annotator")
    assert leaks(browser.get("/align")) == []
    for blind in projects:
        page = f"/align/{blind.item}"
        assert leaks(browser.get(page)) == []
        statuses = set()
        for value in (
            *VALUES,
            "1",
            "9",
            "first",
            "nonsense",
            "garbled",
            ["1", "1", "1"],
            ["5", "3", "1"],
            ["1", "9", ""],
        ):
            names = ("score", "place", "discard", *(f"question-{number}" for number in range(blind.form)))
            for fields in (names, names[:2]):
                form = dict.fromkeys(fields, value)
                answer = browser.post(f"{page}/tasks/{blind.task}", data={**form, "csrf": csrf})
                statuses.add(answer.status_code)
                assert leaks(answer) == [], (blind.kind.name, form)
                if answer.status_code == 400 and language == "zh":
                    assert all(CHINESE.search(each) and not ENGLISH.search(each) for each in refusals(answer)), form
        assert 400 in statuses, blind.kind.name
        assert leaks(browser.get("/align")) == []


def sent(browser, csrf, path, content):
    """Send JSON as the annotators' page does."""
    headers = {"x-csrf-token": csrf, "accept": "application/json"}
    return browser.post(path, content=msgspec.json.encode(content), headers=headers)
