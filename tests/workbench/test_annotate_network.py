"""The annotator's page behind a network that is slow, breaks off and repeats: nothing is lost or stored twice."""

from itertools import count

import pytest
from sqlalchemy import select

from faulty_network import Fault, FaultyNetwork
from steelyard.workbench.storage.tables import StoredAnswer
from workbench_annotator import CARD, Annotator

pytestmark = pytest.mark.slow

SAVING = "document.querySelector('#saving').textContent"
BANNER = "document.querySelector('#banner')"
KEPT = {"en": "Not sent yet, kept on this computer", "zh": "尚未提交，已保存在本机"}
SAVED = {"en": "Saved at ", "zh": "已于 "}
WAITING = {"en": "sent later: 1", "zh": "1 条答案已保存在本机"}


class Behind:
    """A served workbench as it is reached through a network."""

    def __init__(self, network):
        self.origin = network.origin


@pytest.fixture(scope="module")
def network(served):
    made = FaultyNetwork(served[1].host, served[1].port)
    yield made
    made.close()


@pytest.fixture
def open_page(served, network, browser):
    """Opens the page of a new person through the network."""

    def make(**more):
        network.faults = lambda method, path: Fault()
        page = Annotator((served[0], Behind(network)), browser, **more)
        # The tasks that are loaded ahead are there.
        browser.wait("performance.getEntriesByType('resource').filter((e) => e.name.includes('/tasks')).length > 1")
        network.requests.clear()
        return page

    yield make
    network.faults = lambda method, path: Fault()


def first_times(number, fault, *, to):
    """Let a fault happen to the first requests to an address that ends so, or has such a part."""
    left = count()
    return lambda method, path: fault if to in path and next(left) < number else Fault()


def check_stored_once(page, number):
    answers = page.answers(number)
    with page.database.reading() as session:
        mine = select(StoredAnswer.assignment_id).where(StoredAnswer.person_id == page.person)
        assert len(set(session.scalars(mine))) == number
    return answers


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("lost", ["request", "answer", "all of the answer"])
def test_an_answer_whose_connection_breaks_off_is_stored_once(open_page, network, browser, lost, language):
    page = open_page(language=language)
    network.faults = first_times(1, Fault(lost=lost), to="/answer")
    page.press("5", "3", "1", "Enter")
    browser.wait(f"{BANNER}.textContent.includes('{WAITING[language]}')")
    assert browser.value(SAVING) == KEPT[language]
    # It recovers by itself.
    browser.wait(f"{BANNER}.hidden && {SAVING}.startsWith('{SAVED[language]}')")
    (answer,) = check_stored_once(page, 1)
    assert answer.ranking[0] == (page_first(answer),)
    assert sum("/answer" in path for _, path in network.requests) == 2


def page_first(answer):
    """The response with the highest score."""
    return max(answer.scores, key=answer.scores.get)


def test_an_answer_that_the_network_sends_twice_is_stored_once(open_page, network, browser):
    page = open_page()
    network.faults = lambda method, path: Fault(is_sent_twice=method == "POST")
    for _ in range(2):
        browser.wait(CARD)
        page.press("5", "3", "1", "Enter")
    check_stored_once(page, 2)
    browser.wait(f"{BANNER}.hidden && {SAVING}.startsWith('Saved at ')")


def test_the_next_task_is_there_before_the_answer_has_arrived(open_page, network, browser):
    page = open_page(num_cases=4)
    # Longer than anybody waits; the page is left before these requests end.
    network.faults = lambda method, path: Fault(seconds=5.0 if "/answer" in path else 0.0)
    shown = "document.querySelector('#task .prompt, #task').textContent"
    before = browser.value(shown)
    page.press("5", "3", "1", "Enter")
    # Enter and this question are handled one after the other, and no answer came in between.
    assert browser.value(f"Boolean({CARD})")
    assert browser.value(shown) != before
    assert browser.value(SAVING) == "Saving…"
    check_stored_once(page, 1)


def test_a_draft_that_did_not_arrive_is_sent_again_by_itself(open_page, network, browser):
    page = open_page()
    network.faults = first_times(2, Fault(lost="request"), to="/draft")
    page.press("2", "4")
    browser.wait(f"{SAVING} === '{KEPT['en']}'")
    browser.wait(f"{SAVING}.startsWith('Saved at ')")
    page.draft(lambda draft: len(draft.get("scores", {})) == 2)
    # What was entered is on no page's mind: the workbench has it, and another browser shows it.
    browser.forget(network.origin)
    page.open()
    pressed = "[...document.querySelectorAll('[aria-pressed=true]')].map((b) => b.textContent).join('')"
    assert browser.value(pressed) == "24"


@pytest.mark.parametrize("fault", [Fault(seconds=0.6), Fault(bytes_a_second=200_000)])
def test_a_slow_network_takes_time_and_nothing_else(open_page, network, browser, fault):
    page = open_page(num_cases=4)
    network.faults = lambda method, path: fault if "/annotate/" in path else Fault()
    for _ in range(3):
        browser.wait(CARD)
        page.press("5", "3", "1", "Enter")
    check_stored_once(page, 3)
    browser.wait(f"{SAVING}.startsWith('Saved at ')")
    assert browser.value(f"{BANNER}.hidden")


def test_whoever_logs_in_again_elsewhere_goes_on_here(open_page, browser):
    page = open_page()
    page.log_in_again()
    page.press("5", "3", "1", "Enter")
    check_stored_once(page, 1)
    browser.wait(f"{SAVING}.startsWith('Saved at ')")
    assert browser.value(f"{BANNER}.hidden")
