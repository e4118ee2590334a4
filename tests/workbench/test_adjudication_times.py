"""The time of alignment, settlement and review: kept by form, never more than passed, and counted in every hour."""

import time

import pytest
from sqlalchemy import select, update

from steelyard.workbench.figures.dashboards import progress_figures
from steelyard.workbench.results.paper_figures import paper_figures
from steelyard.workbench.results.paper_pages import paper_pages
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredAdjudicationTime, StoredAnswer, StoredItem, StoredProject
from workbench_site import Visit, make_site

ORDER = {"score": ["5", "3", "1"], "place": ["1", "2", "3"], "discard": ["", "", ""]}
LAYERS = ("delivery", "operations", "researcher")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def waiting(request):
    """The workbench on either system, whose items have waited for a thousand seconds in their states."""
    begun = time.time() - 1000
    if request.param == "sqlite":
        visit = request.getfixturevalue("visit")
    else:
        address = request.getfixturevalue("empty_postgres")
        site = make_site(address)
        visit = Visit(Database(address), site)
    visit.database.write(lambda session: session.execute(update(StoredItem).values(changed_at=begun)))
    yield visit
    if request.param != "sqlite":
        visit.close()


def post(visit, role, place, form, seconds):
    """Send a form about the item of a role; ``place``: its address behind that of the item."""
    item, _ = visit.site.items[role, not place.startswith("decision")]
    area = "align" if role == "annotator" else "review"
    form = {**form, "csrf": visit.csrf(role), "seconds": str(seconds)}
    return visit.browser(role).post(f"/{area}/{item}/{place}", data=form).status_code


def times(visit):
    """The times that are kept, by stage."""
    rows = select(StoredAdjudicationTime.stage, StoredAdjudicationTime.seconds).order_by(StoredAdjudicationTime.id)
    with visit.database.reading() as session:
        return [tuple(row) for row in session.execute(rows)]


def task_of(visit, role):
    return f"tasks/{visit.site.items[role, True][1]}"


def test_a_proposal_and_a_settlement_keep_the_seconds_of_their_page(waiting):
    assert post(waiting, "annotator", task_of(waiting, "annotator"), ORDER, 40.5) == 303
    assert post(waiting, "delivery", task_of(waiting, "delivery"), ORDER, 30) == 303
    assert times(waiting) == [("alignment", 40.5), ("delivery", 30.0)]
    with waiting.database.reading() as session:
        stages = select(StoredAnswer.stage, StoredAnswer.seconds).where(StoredAnswer.stage != "annotation")
        assert {stage: seconds for stage, seconds in session.execute(stages)} == {"proposal": 40.5, "delivery": 30.0}  # noqa: C416


def test_decisions_remarks_and_passing_on_count_too(waiting):
    assert post(waiting, "operations", "decision", {"verdict": "accept"}, 11) == 303
    assert post(waiting, "researcher", "remarks", {"text": "Why?"}, 12) == 303
    assert post(waiting, "delivery", "unresolved", {"reason": "no way"}, 13) == 303
    assert times(waiting) == [("operations", 11.0), ("research", 12.0), ("delivery", 13.0)]


def test_a_form_that_is_refused_took_its_time(waiting):
    assert post(waiting, "annotator", task_of(waiting, "annotator"), {**ORDER, "score": ["", "", ""]}, 20) == 400
    assert post(waiting, "operations", "decision", {"verdict": "reject"}, 21) == 400
    assert times(waiting) == [("alignment", 20.0), ("operations", 21.0)]


def test_no_more_counts_than_the_server_saw_pass(waiting):
    begun = time.time() - 1000
    for _ in range(4):
        post(waiting, "annotator", "remarks", {"text": f"Why? {time.time()}"}, 900)
    total = sum(seconds for _, seconds in times(waiting))
    assert 900 <= total <= time.time() - begun + 1


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "x"])
def test_seconds_that_no_page_reports_are_refused(waiting, seconds):
    assert post(waiting, "annotator", "remarks", {"text": "Why?"}, seconds) == 422
    assert times(waiting) == []


def test_hours_cost_and_the_paper_count_them(waiting):
    def figures():
        with waiting.database.reading() as session:
            project = session.get_one(StoredProject, waiting.site.project)
            return progress_figures(session, project, at=time.time()), paper_figures(session, project, at=time.time())

    progress, paper = figures()
    before = sum(day.hours for day in progress.days)
    assert paper.alignment_hours == 0
    assert "Of these" not in paper_pages(paper)["paper.en.md"]
    post(waiting, "annotator", task_of(waiting, "annotator"), ORDER, 720)
    for role, seconds in zip(LAYERS, (180, 360, 540), strict=True):
        post(waiting, role, "decision", {"verdict": "accept"}, seconds)
    progress, paper = figures()
    assert sum(day.hours for day in progress.days) == pytest.approx(before + 0.5)
    assert (paper.hours, paper.alignment_hours) == pytest.approx((before + 0.5, 0.2))
    assert [layer.hours for layer in paper.layers] == pytest.approx([0.05, 0.1, 0.15])
    pages = paper_pages(paper)
    sentence = "Of these, alignment took 0.2 h, and settlement and review by the layers 0.3 h."
    assert sentence in pages["paper.en.md"]
    assert "对齐用时 0.2 小时" in pages["paper.zh.tex"]
