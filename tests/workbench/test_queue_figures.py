"""The queue on the pages of progress and agreement, and in the same figures as JSON."""

import html
import json
import re

import pytest

from steelyard.workbench.figures.queue_figures import queue_figures
from steelyard.workbench.pipeline.queue_sources import read_committee
from steelyard.workbench.pipeline.task_ordering import cases_of, plan_queue, store_queue
from steelyard.workbench.storage.tables import StoredProject
from steelyard.workbench.views.pages import LANGUAGES
from workbench_people import NOON, answer, answer_all, make_project, send, take


def order_by(database, project, path, *, random_share=0.25):
    """Order the open items by scores of which no two are as sure."""
    with database.reading() as session:
        row = session.get_one(StoredProject, project)
        known = cases_of(session, row)
        lines = [
            json.dumps(
                {
                    "prompt": prompt,
                    "scores": {each.id: place * (number + 1.0) for place, each in enumerate(case.responses)},
                }
            )
            for number, ((prompt, _), case) in enumerate(known.items())
        ]
        path.write_text("\n".join(lines) + "\n")
        committee = read_committee([path], [], known, is_complete=True)
        plan = plan_queue(session, row, committee, random_share=random_share)
    database.write(
        lambda session: store_queue(session, session.get_one(StoredProject, project), plan, by=None, at=NOON)
    )
    return plan


def test_scores_without_hashes_are_used_and_said(database, tmp_path, capsys):
    project, _ = make_project(database, 3)
    order_by(database, project, tmp_path / "model.jsonl")
    words = " ".join(capsys.readouterr().err.split())
    assert "check (model.jsonl): the scores of 3 of 3 prompts do not say which texts were scored" in words


def test_a_queue_is_counted_by_decile_and_by_chance(database, tmp_path):
    project, people = make_project(database, 20)
    with database.reading() as session:
        assert queue_figures(session, project) is None
    plan = order_by(database, project, tmp_path / "model.jsonl")
    # Both annotate the first five items, and agree on all but the fifth.
    for place in range(5):
        for person in people:
            ((number, shown),) = take(database, project, person)
            send(database, number, answer(shown, sorted(shown, reverse=place == 4 and person == people[1])))
    first = plan.items[:5]
    with database.reading() as session:
        made = queue_figures(session, project)
    assert [(ordering.items, ordering.sources) for ordering in made.orderings] == [(20, ("model",))]
    assert [(row.decile, row.items) for row in made.deciles] == [(decile, 2) for decile in range(1, 11)]
    assert {row.decile: row.annotated for row in made.deciles if row.annotated} == {
        decile: sum(item.decile == decile for item in first) for decile in {item.decile for item in first}
    }
    assert (made.items, made.annotated, made.by_chance) == (20, 5, plan.num_random)
    assert made.by_chance_annotated == sum(item.is_random for item in first)
    same = {item.is_random: [] for item in first}
    for place, item in enumerate(first):
        same[item.is_random].append(0 if place == 4 else 1)
    for is_random, estimate in ((True, made.agreement_by_chance), (False, made.agreement)):
        of_part = same.get(is_random, [])
        assert estimate.value == (sum(of_part) / len(of_part) if of_part else None)
        assert estimate.n == 3 * len(of_part)


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_say_that_the_items_are_not_a_random_sample(visit, tmp_path, language):
    order_by(visit.database, 1, tmp_path / "model.jsonl")
    answer_all(visit.database, 1, [visit.site.people["annotator"], visit.site.people["other"]], at=NOON)
    researcher = visit.browser("researcher")
    researcher.post("/account/language", data={"language": language, "csrf": visit.csrf("researcher")})
    progress, agreement = (
        html.unescape(re.sub("<[^>]+>", " ", researcher.get(f"/progress/1{page}").text)) for page in ("", "/agreement")
    )
    assert {"en": "Queue by priority", "zh": "优先级队列"}[language] in progress
    assert {"en": "not a random sample", "zh": "不是随机样本"}[language] in agreement
    sent = visit.program(visit.site.tokens["researcher"]).get("/api/v1/projects/1/figures/progress").json()
    assert sent["queue"]["orderings"][0]["sources"] == ["model"]
    assert sent["queue"]["annotated"] == sum(row["annotated"] for row in sent["queue"]["deciles"])
