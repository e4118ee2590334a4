"""The round of qualification on the annotator's page in Chromium: feedback after each task, then real tasks."""

import pytest

from browser import CHROMIUM
from steelyard.annotation.qualification import QualificationRules
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.qualification.material import import_qualification
from workbench_annotator import CARD, STEP
from workbench_people import NO_GOLD, NOON, cases, cases_with_reference
from workbench_server import Login

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.xdist_group("chromium"),
]
DIALOG = "document.querySelector('#dialog')"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_person_learns_and_begins_with_real_tasks(served, browser, language):
    database, server = served
    rules = QualificationRules(num_tasks=2, least_accuracy=0.0)

    def make(session):
        settings = ProjectSettings(rules=NO_GOLD, qualification=rules)
        project = add_project(session, f"school {language}", settings, by=None, at=NOON)
        import_cases(session, project, cases(2), batch="b", by=None, at=NOON)
        import_qualification(session, project, cases_with_reference(2), by=None, at=NOON)
        return project.id

    project = database.write(make)
    login = Login(database, f"learner {language}", language=language)
    browser.open("about:blank")
    browser.complaints.clear()
    browser.forget(server.origin)
    browser.set_cookie(server.origin, "steelyard_workbench", login.cookie)
    browser.open(f"{server.origin}/annotate?project={project}")
    for number in (1, 2):
        browser.wait(CARD)
        for key in ("5", "3", "1", "Enter"):
            browser.press(key)
        browser.wait(f"{DIALOG}.open")
        shown = browser.value(f"{DIALOG}.innerText")
        assert "The first is exact." in shown
        assert f"{number} " in shown
        assert "undefined" not in shown
        assert "null" not in shown
        browser.press("Enter")
        browser.wait(f"!{DIALOG}.open")
    browser.wait("document.querySelector('#annotator').dataset.state === 'empty'")
    ended = browser.value("document.querySelector('#empty').innerText")
    assert {"en": "You have passed", "zh": "您已通过资格测试"}[language] in ended
    browser.click("#empty button")
    browser.wait(f"{CARD} && {STEP}")
    status, data = server.request("GET", f"/annotate/tasks?project={project}", login)
    assert (status, len(data["tasks"])) == (200, 2)
    assert browser.complaints == []
