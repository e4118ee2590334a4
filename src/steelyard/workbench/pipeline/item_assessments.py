"""The assessment of items that came to the gate: how much more their people differ than their noise explains.

Each item once for a round, with the fit of that time, beside the requests (`fit_keeper`).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.excess_disagreement import ExcessDisagreement, disagreement_of
from steelyard.annotation.plackett_luce import RankingAnswer, Raters
from steelyard.workbench.pipeline.rater_fits import StoredPanel, latest_panel, ranked_tiers
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.figure_tables import StoredDisagreement, StoredGateResult
from steelyard.workbench.storage.tables import StoredAnswer, StoredItem, StoredTask

_BLOCK = 100


def assess_items(database: Database, project: int) -> None:
    """Assess the items that came to the gate since the last time, in blocks: 2 milliseconds for ten answers."""
    after = 0
    while True:
        with database.reading() as session:
            panel = _usable_panel(session, project)
            gates = [] if panel is None else _new_gates(session, project, after)
            answers = _answers_of(session, [item for _, item, _ in gates])
        if panel is None or not gates:
            return
        after = gates[-1][0]
        made = {gate: assessment for gate in gates if (assessment := _assessed(gate[1], answers, panel)) is not None}
        if made:
            _store(database, project, made, panel.note.fit)


def has_waiting(session: Session, project: int) -> bool:
    """Tell whether items came to the gate since the last assessment of a project whose fit can assess them."""
    return _usable_panel(session, project) is not None and bool(_new_gates(session, project, 0, most=1))


def _usable_panel(session: Session, project: int) -> StoredPanel | None:
    """Return the latest fit; null without people, or where they answer several tasks of an item (`hard_items`)."""
    panel = latest_panel(session, project)
    return panel if panel is not None and panel.raters and not panel.has_repeats else None


def _store(database: Database, project: int, made: Mapping[Any, ExcessDisagreement], fit: int) -> None:
    """Keep the assessments of gates: rows of the number of the gate, the item and its category."""

    def store(session: Session) -> None:
        items = [item for _, item, _ in made]
        session.execute(delete(StoredDisagreement).where(StoredDisagreement.item_id.in_(items)))
        session.add_all(
            StoredDisagreement(
                project_id=project, item_id=item, gate_id=gate, fit_id=fit, category=category, **assessment._asdict()
            )
            for (gate, item, category), assessment in made.items()
        )

    database.write(store)


def _new_gates(session: Session, project: int, after: int, *, most: int = _BLOCK) -> list[tuple[int, int, str]]:
    """Return number, item and category of the oldest results at the gate that no assessment follows."""
    row, gate = StoredDisagreement, StoredGateResult
    last = session.scalar(select(func.max(row.gate_id)).where(row.project_id == project)) or 0
    new = select(gate.id, gate.item_id, gate.category).where(gate.project_id == project, gate.id > max(after, last))
    # An item that came to the gate twice meanwhile is assessed once, at the last.
    latest = {
        item: (number, item, category) for number, item, category in session.execute(new.order_by(gate.id).limit(most))
    }
    return list(latest.values())


def _answers_of(session: Session, items: Sequence[int]) -> dict[int, list[tuple[int, TaskAnswer]]]:
    """Return the people's answers to the tasks of the items' present rounds."""
    rows = session.execute(
        select(StoredTask.item_id, StoredAnswer.person_id, StoredAnswer.content)
        .join(StoredItem, StoredTask.item_id == StoredItem.id)
        .join(StoredAnswer, StoredAnswer.task_id == StoredTask.id)
        .where(
            StoredTask.item_id.in_(items),
            StoredTask.round == StoredItem.round,
            StoredTask.is_retired.is_(False),
            StoredTask.is_gold.is_(False),
            StoredAnswer.stage == "annotation",
        )
        .order_by(StoredAnswer.id)
    )
    answers: dict[int, list[tuple[int, TaskAnswer]]] = defaultdict(list)
    for item, person, content in rows:
        answers[item].append((person, msgspec.convert(content, TaskAnswer)))
    return answers


def _assessed(
    item: int, answers: Mapping[int, Sequence[tuple[int, TaskAnswer]]], panel: StoredPanel
) -> ExcessDisagreement | None:
    people = list(dict.fromkeys(person for person, _ in answers.get(item, ())))
    places: dict[str, int] = {}
    rankings = [
        RankingAnswer(0, people.index(person), tiers)
        for person, answer in answers.get(item, ())
        if (tiers := ranked_tiers(answer, places))
    ]
    return disagreement_of(rankings, known_raters(panel, people), seed=item)


def known_raters(panel: StoredPanel, people: Sequence[int]) -> Raters:
    """Return the parameters of people; those of an average person for one whom the fit does not know."""
    known = list(panel.raters.values())
    mean = np.mean([(each.discrimination, each.tie) for each in known], axis=0)
    chosen = [panel.raters.get(person) for person in people]
    values = np.array([mean if each is None else (each.discrimination, each.tie) for each in chosen]).reshape(-1, 2)
    # All raters of a fit have one rater-item variance. Without it, repeated answers of one person would make it sure.
    return Raters(values[:, 0], values[:, 1], known[0].rater_item_variance)


def count_waiting(session: Session, project: int) -> int:
    """Return the number of results at the gate since the last assessment."""
    row, gate = StoredDisagreement, StoredGateResult
    last = session.scalar(select(func.max(row.gate_id)).where(row.project_id == project)) or 0
    return session.scalar(select(func.count()).where(gate.project_id == project, gate.id > last)) or 0
