"""Pages of alignment and review in a browser's view: what they show, what they hide, and what forms do."""

import re
import time

import msgspec
import pytest

from quick_client import QuickClient
from steelyard.annotation.answers import TaskAnswer, contradictions
from steelyard.core.errors import ConfigError
from steelyard.core.types import Message, Response
from steelyard.workbench.accounts.people import log_in
from steelyard.workbench.accounts.permissions import COOKIE
from steelyard.workbench.storage.tables import StoredGuideline
from steelyard.workbench.views.adjudication_forms import EnteredForm, ranked_answer
from strategies import case
from workbench_crew import Crew, in_order
from workbench_site import begun

PASSWORD = "a long password"


@pytest.fixture
def site(new_sqlite):
    """A crew on SQLite whose two first people differ on an item, and its application."""
    crew = Crew(new_sqlite(), responses="abc", passwords=PASSWORD, delivery_share=1.0)
    first, second = crew.people["annotator"][:2]
    crew.annotate(
        lambda person, responses: in_order(responses, order="abc" if person == first else "cba"), [first, second]
    )
    return crew, begun(crew.database)


def browser(site, name):
    crew, app = site
    client = QuickClient(app, follow_redirects=True)
    cookie = crew.database.write(lambda session: log_in(session, name, PASSWORD, address="x", at=time.time()))
    client.cookies.set(COOKIE, cookie)
    token = re.search(r'name="csrf-token" content="(\w+)"', client.get("/account").text)[1]
    client.headers["x-csrf-token"] = token
    return client


def disputed_site(database, answer, **fields):
    """A crew whose two first people differ on an item of three responses, and its application.

    ``answer``: what is added to the answer of the first.
    """
    crew = Crew(database, responses="abc", passwords=PASSWORD, delivery_share=1.0, **fields)
    first, second = crew.people["annotator"][:2]

    def choose(person, responses):
        order = in_order(responses, order="abc" if person == first else "cba")
        return msgspec.structs.replace(order, **answer) if person == first else order

    crew.annotate(choose, [first, second])
    return crew, begun(crew.database)


def form(places=("1", "2", "3"), scores=("5", "3", "1")):
    return {"place": list(places), "score": list(scores), "discard": ["", "", ""]}


def test_two_people_align_on_their_pages(site):
    crew, _ = site
    one, other = (browser(site, f"annotator {number}") for number in (0, 1))
    item, task = crew.item().id, crew.evidence()[0].task.id
    assert f"/align/{item}" in one.get("/align").text
    one.post(f"/align/{item}/remarks", data={"text": "<b>look</b> at the guideline"})
    text = other.get(f"/align/{item}").text
    assert "The other" in text
    assert "&lt;b&gt;look&lt;/b&gt; at the guideline" in text
    # Neither names of people nor ids of responses, which may name models.
    assert not re.search(r"annotator 0|>[abc]<", text)
    assert all(pair in text for pair in ("A – B", "A – C", "B – C"))
    # The rows of the form follow the letters of the texts above it.
    assert re.findall(r'<tr><th scope="row">(\w)</th>', text) == ["A", "B", "C"]
    assert one.post(f"/align/{item}/tasks/{task}", data=form()).status_code == 200
    assert "proposal" in other.get(f"/align/{item}").text
    ended = other.post(f"/align/{item}/tasks/{task}", data=form())
    assert str(ended.url).endswith("/align")
    assert crew.item().state == "delivery review"
    assert one.get(f"/align/{item}").status_code == 404


def test_responses_of_several_turns_are_read_where_people_align_and_review(new_sqlite):
    def turns(name):
        said = (("assistant", f"first {name}"), ("user", "and?"), ("assistant", f"then {name}"))
        return Response(id=name, messages=tuple(Message(role=role, content=text) for role, text in said))

    marked = {"spans": {"a": ((12, 18, "other", None),)}}
    site = disputed_site(
        new_sqlite(), marked, cases=[msgspec.structs.replace(case("p"), responses=tuple(map(turns, "abc")))]
    )
    crew, _ = site
    item, task = crew.item().id, crew.evidence()[0].task.id
    one, other = (browser(site, f"annotator {number}") for number in (0, 1))
    text = one.get(f"/align/{item}").text
    assert all(f"{word} {name}" in text for name in "abc" for word in ("first", "then"))
    # Each mark counts its place in the whole text: a page that knows only a part of it refuses the proposal.
    for client in (one, other):
        assert client.post(f"/align/{item}/tasks/{task}", data=form()).status_code == 200
    assert crew.item().state == "delivery review"
    assert "then b" in browser(site, "delivery 4").get(f"/review/{item}").text


def test_an_empty_response_is_said_to_be_empty_where_people_align(new_sqlite):
    empty = msgspec.structs.replace(case("p"), responses=tuple(Response(id=name, text=" \n") for name in "abc"))
    crew, _ = site = disputed_site(new_sqlite(), {}, cases=[empty])
    assert browser(site, "annotator 0").get(f"/align/{crew.item().id}").text.count("(empty response)") == 3


def test_what_people_marked_stays_marked_when_they_settle_the_order(new_sqlite):
    crew, _ = site = disputed_site(new_sqlite(), {"spans": {"b": ((0, 6, "factual error", "no source"),)}})
    item, task = crew.item().id, crew.evidence()[0].task.id
    for number in (0, 1):
        browser(site, f"annotator {number}").post(f"/align/{item}/tasks/{task}", data=form())
    assert crew.evidence()[0].settled.spans == {"b": ((0, 6, "factual error", "no source"),)}


def test_the_guideline_stands_where_people_align_and_settle(site):
    crew, _ = site

    def write(session):
        for category, text in (("", "Of **all** categories"), ("other", "Of another")):
            guideline = StoredGuideline(project_id=crew.project, category=category, language="en", version=1, text=text)
            guideline.at = crew.now()
            session.add(guideline)

    one = browser(site, "annotator 0")
    item = crew.item().id
    assert "<summary>Guideline" not in one.get(f"/align/{item}").text
    crew.database.write(write)
    text = one.get(f"/align/{item}").text
    assert "Of <strong>all</strong> categories" in text
    assert "version 1" in text
    assert "Of another" not in text
    one.post(f"/align/{item}/unresolved", data={"reason": "the guideline is silent"})
    assert "Of <strong>all</strong> categories" in browser(site, "delivery 4").get(f"/review/{item}").text


def test_pages_of_an_item_say_why_a_response_left_and_what_became_of_its_tasks(new_sqlite):
    crew = Crew(new_sqlite(), passwords=PASSWORD)
    first, second = crew.people["annotator"][:2]
    crew.annotate(
        lambda person, shown: in_order(shown, discarded="c", order="abcde" if person == first else "edcba"),
        [first, second],
    )
    assert crew.item().state == "aligning"
    site = crew, begun(crew.database)
    text = browser(site, "annotator 0").get(f"/align/{crew.item().id}").text
    assert text.count("Discarded: Garbled") == 1
    # Of the five triples of a, b, c, d and e three show c; the two that stay compare all but b with d.
    assert "tasks that ended: 3, new ones: 1" in text


def test_a_second_click_does_nothing_twice_and_says_so(site):
    crew, _ = site
    one, other = (browser(site, f"annotator {number}") for number in (0, 1))
    item, task = crew.item().id, crew.evidence()[0].task.id
    for _ in range(2):
        assert one.post(f"/align/{item}/remarks", data={"text": "look"}).status_code == 200
    other.post(f"/align/{item}/remarks", data={"text": "look"})
    one.post(f"/align/{item}/remarks", data={"text": "look"})
    assert len(crew.events("remarked")) == 3
    for client in (one, one, other):
        assert client.post(f"/align/{item}/tasks/{task}", data=form()).status_code == 200
    # The item has moved on by the first click: the second one is told so, and is no page that does not exist.
    for path, sent in ((f"tasks/{task}", form()), ("unresolved", {"reason": "we differ"}), ("remarks", {"text": "x"})):
        late = other.post(f"/align/{item}/{path}", data=sent)
        assert late.status_code == 409
        assert "this was done already" in late.text
    assert browser(site, "annotator 2").post(f"/align/{item}/remarks", data={"text": "x"}).status_code == 404
    assert [event.detail["to"] for event in crew.events("settled")] == ["delivery review"]


def test_a_form_that_contradicts_itself_is_said_on_the_page(site):
    crew, _ = site
    client = browser(site, "annotator 0")
    address = f"/align/{crew.item().id}/tasks/{crew.evidence()[0].task.id}"
    for wrong in (form(scores=("1", "3", "5")), form(scores=("", "3", "5")), form(places=("1", "2", "9"))):
        answer = client.post(address, data=wrong)
        assert answer.status_code == 400
        assert 'role="alert"' in answer.text
        assert "The other" in answer.text
    assert crew.events("proposed") == []


def test_others_do_not_see_the_item_and_a_layer_reviews_it_without_names(site):
    crew, _ = site
    item = crew.item().id
    assert browser(site, "annotator 2").get(f"/align/{item}").status_code == 404
    one = browser(site, "annotator 0")
    one.post(f"/align/{item}/unresolved", data={"reason": "we differ"})
    delivery = browser(site, "delivery 4")
    assert f"/review/{item}" in delivery.get("/review").text
    text = delivery.get(f"/review/{item}").text
    assert "Annotator 1" in text
    assert "we differ" in text
    assert "annotator 0" not in text
    delivery.post(f"/review/{item}/tasks/{crew.evidence()[0].task.id}", data=form())
    assert crew.item().state == "delivery review"
    # Who settled the item leaves its review to the colleague.
    assert delivery.get(f"/review/{item}").status_code == 404
    other = browser(site, "delivery 5")
    assert other.post(f"/review/{item}/decision", data={"verdict": "reject", "reason": " "}).status_code == 400
    assert 'name="round" value="1"' in other.get(f"/review/{item}").text
    other.post(f"/review/{item}/decision", data={"verdict": "reject", "reason": "again"})
    assert (crew.item().state, crew.item().round) == ("annotating", 2)
    # A form that was open in the meantime: first the item has left the queue, then it came again with other answers.
    accepted = {"verdict": "accept", "round": "1"}
    late = other.post(f"/review/{item}/decision", data=accepted)
    assert (late.status_code, "Somebody else was faster" in late.text) == (409, True)
    crew.annotate(lambda person, responses: in_order(responses))
    assert crew.item().state == "delivery review"
    assert other.post(f"/review/{item}/decision", data=accepted).status_code == 409
    assert crew.item().state == "delivery review"
    other.post(f"/review/{item}/decision", data=accepted | {"round": "2"})
    assert crew.item().state != "delivery review"
    assert other.post(f"/review/{crew.item(0).id + 999}/decision", data=accepted).status_code == 404


def sent(score, place, discard, remark=""):
    return EnteredForm({"score": score, "place": place, "discard": discard, "remark": [remark]})


def test_a_form_is_an_answer_without_gaps():
    entered = ranked_answer("xyz", sent(["4", "", "4"], ["2", "", "1"], ["", "garbled", ""], " fine "))
    assert entered.ranking == (("z",), ("x",))
    assert entered.discarded == {"y": "garbled"}
    assert entered.remark == "fine"
    assert contradictions(entered, "xyz") == ()
    tied = ranked_answer("xy", sent(["4", "4"], ["2", "2"], ["", ""]))
    assert tied.ranking == (("x", "y"),)
    assert contradictions(tied, "xy") == ()
    assert isinstance(tied, TaskAnswer)
    for wrong in (["4"], ["4", "6"], ["4", "-1"], ["4", "³"], ["4", ""]):
        with pytest.raises(ConfigError):
            ranked_answer("xy", sent(wrong, ["1", "2"], ["", ""]))
