"""Answers that are refused: the reason has letters and words of the page, and never the id of a response."""

import re

import msgspec
import pytest

ID = re.compile(r"\br[0-9]\b")
PLACES = {"ranking": [["A"], ["B"], ["C"]]}
WRONG = [
    {},
    {"scores": {"A": 5, "B": 3}, **PLACES},
    {"scores": {"A": 5, "B": 3, "C": 1}, "ranking": [["C"], ["B"], ["A"]]},
    {"scores": {"A": 5, "B": 3, "C": 1}, "ranking": [["A"]]},
    {"scores": {"A": 5, "B": 5, "C": 1}, **PLACES},
    {"scores": {"A": 9, "B": 3, "C": 1}, **PLACES},
    {"scores": {"A": 5, "B": 3, "C": 1}, "discarded": {"A": "x"}, **PLACES},
    {"scores": {"A": 5, "B": 3, "C": 1}, "spans": {"A": [[0, 9999, "x", None]]}, **PLACES},
    {"scores": {"Z": 5}},
    {"comparisons": [{"first": "A", "second": "A", "choice": "same"}], **PLACES},
    {"cannot_judge": " "},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_id_is_in_the_reason_of_a_refused_answer(visit, wrong, language):
    browser, csrf = visit.browser("annotator"), visit.csrf("annotator")
    assert browser.post("/account/language", data={"language": language, "csrf": csrf}).status_code == 303
    headers = {"x-csrf-token": csrf, "accept": "application/json"}
    path = f"/annotate/{visit.site.assignment}/answer"
    refused = browser.post(path, content=msgspec.json.encode(wrong), headers=headers)
    assert refused.status_code == 400
    assert not ID.search(refused.text + str(refused.headers))


@pytest.mark.parametrize(("language", "sentence"), [("en", "contradict their places"), ("zh", "的评分与名次矛盾")])
@pytest.mark.parametrize("role", ["annotator", "delivery", "operations", "researcher"])
def test_forms_name_letters_in_words_of_the_page(visit, role, language, sentence):
    browser, csrf = visit.browser(role), visit.csrf(role)
    assert browser.post("/account/language", data={"language": language, "csrf": csrf}).status_code == 303
    item, task = visit.site.items[role, True]
    form = {"score": ["5", "3", "1"], "place": ["3", "2", "1"], "discard": ["", "", ""], "csrf": csrf}
    area = "align" if role == "annotator" else "review"
    refused = browser.post(f"/{area}/{item}/tasks/{task}", data=form)
    assert refused.status_code == 400
    reason = re.search(r'<span class="reason-lines">(.*?)</span>', refused.text, re.DOTALL)[1]
    assert sentence in reason
    assert re.search(r"[A-C], [A-C]", reason)
    assert not ID.search(reason)
