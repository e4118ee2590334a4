"""How many planted reviews tell careless reviewers from careful ones, and how often the page is right about them.

    python studies/planted_reviews.py rates
    python studies/planted_reviews.py layers
    python studies/planted_reviews.py pages

Decisions are drawn from known rates, or are those of the simulated people of a whole project. Every figure comes from
the functions that the pages call. The times of pages are those of a reviewer's browser without the network.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import typer
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from steelyard.annotation.pipeline import PipelineRules
from steelyard.core.iteration import batched
from steelyard.core.numerics import generator
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.linearised import mean_of_sums
from steelyard.workbench.accounts.people import NewPerson, Role, add_person, log_in
from steelyard.workbench.accounts.permissions import COOKIE
from steelyard.workbench.application import Options, application
from steelyard.workbench.demo import demo_cases
from steelyard.workbench.figures.reviewer_figures import FEWEST_WRONG, ReviewerAccuracy, reviewer_accuracy
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.simulated_people import ReviewerRates, reviewer_rates
from steelyard.workbench.simulated_projects import start_project
from steelyard.workbench.simulation import work_until_finished
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.figure_tables import StoredGateResult
from steelyard.workbench.storage.tables import StoredItem, StoredPlantedReview, StoredProject

APP = typer.Typer(help=__doc__, add_completion=False)
CHANGED_SHARE = 0.5
"""The share of planted reviews with a wrong answer (`planted_reviews`)."""
NUM_BATCHES = 4
CAREFUL = 0.75
"""The share of wrong answers that a careful reviewer sends back: that of the simulated people of the demo."""
CARELESS = {"accepts everything": 0.0, "hardly reads": 0.25, "reads half": 0.4}


class Shares(NamedTuple):
    """Of many pairs of reviewers with a number of planted reviews each: how often the page tells them apart.

    ``apart``: the intervals of the wrong answers sent back do not meet. ``ordered``: the careful reviewer's share is
    higher. ``marked``: the careless one is marked. ``wrongly_marked``: the careful one is. ``covered``: the interval of
    the careful one contains the rate.
    """

    apart: float
    ordered: float
    marked: float
    wrongly_marked: float
    covered: float


def compare(careless: float, number: int, *, num_pairs: int, seed: int) -> Shares:
    """Draw pairs of a careful and a careless reviewer, each with a number of planted reviews."""
    rng = generator(seed, "planted reviews", str(careless), number)
    outcomes = np.zeros((num_pairs, len(Shares._fields)))
    for row in outcomes:
        ends: list[tuple[float, float, float]] = []
        marks: list[bool] = []
        for rate in (CAREFUL, careless):
            wrong = int(rng.binomial(number, CHANGED_SHARE))
            rejected = int(rng.binomial(wrong, rate))
            share = mean_of_sums(wrong, rejected, rejected, low=0.0, high=1.0)
            value, low, high = share.value, share.low, share.high
            # Of no wrong answer nothing is known.
            ends.append((0.5 if value is None else value, 0.0 if low is None else low, 1.0 if high is None else high))
            marks.append(wrong >= FEWEST_WRONG and rejected == 0)
        (value, low, high), (other_value, _, other_high) = ends
        row[:] = other_high < low, other_value < value, marks[1], marks[0], low <= CAREFUL <= high
    return Shares(*outcomes.mean(axis=0).tolist())


@APP.command()
def rates(num_pairs: int = 2000, seed: int = 0) -> None:
    """Print how often reviewers of known rates are told apart, by the number of their planted reviews."""
    columns = ("careless reviewer", "sends back", "planted", "told apart", "in order", "marked", "careful one marked")
    typer.echo(f"| {' | '.join(columns)} | covered |")
    typer.echo("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, rate in CARELESS.items():
        for number in (10, 20, 40, 80, 160):
            shares = compare(rate, number, num_pairs=num_pairs, seed=seed)
            cells = " | ".join(f"{100 * value:.1f}%" for value in shares)
            typer.echo(f"| {name} | {100 * rate:.0f}% | {number} | {cells} |")


@APP.command()
def layers(num_items: int = 200, share: float = 0.2, seeds: tuple[int, int] = (0, 1)) -> None:
    """Let simulated people do a whole project, and print the accuracy of the reviewers of each layer."""
    rules = PipelineRules(delivery_share=1.0, operations_share=1.0, review_gold_share=share, gold_share=0.0)
    typer.echo("| seed | layer | person | planted | truths accepted | true rate | wrong ones sent back | true rate |")
    typer.echo("|--:|---|---|--:|--:|--:|--:|--:|")
    for seed in range(*seeds):
        with TemporaryDirectory() as folder:
            for row, true in _people_of(Path(folder), rules, num_items, seed=seed):
                cells = (
                    _shown(row.truths_accepted),
                    "" if true is None else f"{100 * true.truths_accepted:.1f}%",
                    _shown(row.wrong_rejected),
                    "" if true is None else f"{100 * true.wrong_rejected:.1f}%",
                )
                typer.echo(f"| {seed} | {row.layer} | {row.name} | {row.planted} | {' | '.join(cells)} |")


@APP.command()
def pages(num_planted: int = 5000, num_waiting: int = 200, seed: int = 0) -> None:
    """Print how long a reviewer waits for pages of a project with many planted reviews: the median of five requests.

    All items but those of the last batch are finished and have a planted review, each decided but the last ones.
    """
    with TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{folder}/workbench.db")
        database.migrate()
        database.write(lambda session: _fill(session, num_planted, num_waiting, seed=seed))
        app = application(database, Options(hosts=("testserver",)))
        with database.reading() as session:
            last = session.scalars(select(func.max(StoredPlantedReview.number))).one()
        addresses = (
            "/review",
            f"/review/{last}",
            "/progress/1",
            "/progress/1/people",
            "/progress/1/agreement",
            f"/progress/1/items/{last}",
            "/api/v1/projects/1/items?limit=100",
            "/api/v1/projects/1/items?limit=100&state=finished",
        )
        typer.echo("| page | median, ms | slowest, ms |")
        typer.echo("|---|--:|--:|")
        for role, wanted in (
            ("delivery", addresses),
            ("administrator", ("/progress/1/people", f"/progress/1/items/{last}")),
        ):
            client, password = TestClient(app), f"password of {role}"
            cookie = database.write(
                lambda session, role=role, password=password: log_in(
                    session, role, password, address="x", at=time.time()
                )
            )
            client.cookies.set(COOKIE, cookie)
            for address in wanted:
                times: list[float] = []
                for _ in range(6):
                    begun = time.perf_counter()
                    answer = client.get(address)
                    times.append(1000 * (time.perf_counter() - begun))
                    assert answer.status_code == 200, (address, answer.status_code)
                # The first request fills caches.
                typer.echo(f"| {address} ({role}) | {median(times[1:]):.0f} | {max(times[1:]):.0f} |")
        database.close()


def _fill(session: Session, num_planted: int, num_waiting: int, *, seed: int) -> None:
    """Make a project with finished items that have planted reviews, and as many items that wait as reviews do."""
    rules = PipelineRules(delivery_share=1.0, operations_share=1.0, review_gold_share=0.1)
    project = add_project(session, "project", ProjectSettings(rules=rules, seed=seed), by=None, at=0.0)
    accounts: tuple[tuple[str, Role], ...] = (
        ("delivery", "delivery"), ("other", "delivery"), ("administrator", "administrator")
    )  # fmt: skip
    people = {
        name: add_person(session, NewPerson(name, role, f"password of {name}"), by=None, at=0.0).id
        for name, role in accounts
    }
    responses = tuple(Response(id=letter, text=letter) for letter in "abc")
    messages = (Message(role="user", content="What is it?"),)
    for batch, number in (("finished", num_planted), ("late", num_waiting)):
        prompts = (Prompt(id=f"{batch} {place}", messages=messages) for place in range(number))
        cases = [Case(prompt=prompt, responses=responses) for prompt in prompts]
        import_cases(session, project, cases, batch=batch, by=None, at=1.0)
    session.flush()
    at = 1_700_000_000.0
    late = StoredItem.batch == "late"
    session.execute(update(StoredItem).where(~late).values(state="finished", changed_at=at))
    session.execute(update(StoredItem).where(late).values(state="delivery review", changed_at=at + StoredItem.id))
    items = session.scalars(select(StoredItem.id).where(~late).order_by(StoredItem.id)).all()
    largest = session.scalars(select(func.max(StoredItem.id))).one()
    # Items go on to pass the gate: one that was sent back long ago is not annotated any more.
    gate = {"category": "", "is_passed": True, "num_same": 3, "num_judged": 3, "num_answers": 2, "num_wanted": 2}
    passed_at = at + num_planted - num_waiting
    session.add(
        StoredGateResult(project_id=project.id, item_id=items[0], round=1, at=passed_at, num_compared=1, **gate)
    )
    for place, item in enumerate(items):
        is_open = place >= num_planted - num_waiting
        session.add(
            StoredPlantedReview(
                project_id=project.id,
                item_id=item,
                round=1,
                layer="delivery",
                number=largest + 1 + place,
                batch="late",
                placed_at=at + place,
                remarks=[],
                person_id=None if is_open else people[("delivery", "other")[place % 2]],
                decision=None if is_open else ("accepted", "rejected")[place % 3 == 0],
                at=None if is_open else at + place,
                seconds=0.0 if is_open else 30.0,
            )
        )


def _people_of(
    folder: Path, rules: PipelineRules, num_items: int, *, seed: int
) -> list[tuple[ReviewerAccuracy, ReviewerRates | None]]:
    """Return the accuracy of the reviewers of a simulated project, and of each person the rates that were drawn."""
    cases = demo_cases(folder / "cases", seed=seed, num_prompts=num_items)
    database = Database(f"sqlite:///{folder}/workbench.db")
    database.migrate()
    begun_at = time.time() - 365 * 24 * 3600.0
    simulation = start_project(database, cases, seed=seed, begun_at=begun_at, rules=rules)
    number = simulation.crew.project
    # In batches: items of one are finished while the next ones are annotated.
    for place, batch in enumerate(batched(cases, max(1, len(cases) // NUM_BATCHES))):

        def load(session: Session, batch: Sequence[Case] = batch, place: int = place) -> None:
            project = session.get_one(StoredProject, number)
            import_cases(session, project, batch, batch=f"batch {place}", by=None, at=begun_at)

        database.write(load)
        work_until_finished(simulation)
    with database.reading() as session:
        rows = reviewer_accuracy(session, number)
    database.close()
    return [(row, None if row.person is None else reviewer_rates(simulation, row.person)) for row in rows]


def _shown(share: Estimate) -> str:
    if share.value is None or share.low is None or share.high is None:
        return ""
    return f"{100 * share.value:.1f}% [{100 * share.low:.1f}, {100 * share.high:.1f}] of {share.n}"


if __name__ == "__main__":
    APP()
