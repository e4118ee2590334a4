"""Accuracy of reviewers on planted reviews by layer and person: truths accepted, and wrong answers rejected.

The two rates are stated apart: a reviewer who accepts everything is right on every truth and on no wrong answer.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.pipeline import LAYERS, Layer
from steelyard.core.text import natural_order
from steelyard.core.types import Record
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.linearised import mean_of_sums
from steelyard.workbench.pipeline.review_placement import ROLE_OF
from steelyard.workbench.storage.number_lists import is_among
from steelyard.workbench.storage.tables import StoredPerson, StoredPlantedReview

FEWEST_WRONG = 3
"""Wrong answers from which a reviewer who accepted every one of them is marked."""


class ReviewerAccuracy(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The decisions of a person, of a layer, or of all layers on planted reviews; ``person`` is null for the latter.

    ``right``: truths accepted and wrong answers rejected, of all ``planted``. ``accepts_all``: each of three wrong
    answers or more was accepted.
    """

    layer: Layer | Literal["all"]
    person: int | None
    pseudonym: str
    name: str
    planted: int
    hours: float
    right: Estimate
    truths_accepted: Estimate
    wrong_rejected: Estimate
    accepts_all: bool


class _Decisions(NamedTuple):
    """Numbers of decisions: on truths, those that accepted; on wrong answers, those that rejected; active seconds."""

    truths: int = 0
    accepted: int = 0
    wrong: int = 0
    rejected: int = 0
    seconds: float = 0.0

    def plus(self, other: "_Decisions") -> "_Decisions":
        """Return the sums of both."""
        return _Decisions(
            self.truths + other.truths,
            self.accepted + other.accepted,
            self.wrong + other.wrong,
            self.rejected + other.rejected,
            self.seconds + other.seconds,
        )


def reviewer_accuracy(session: Session, project: int) -> tuple[ReviewerAccuracy, ...]:
    """Return a row for all layers, one for each layer, and one for each of its people; none without a decision."""
    counts = _counts(session, project)
    if not counts:
        return ()
    people = {
        person: (pseudonym, name)
        for person, pseudonym, name in session.execute(
            select(StoredPerson.id, StoredPerson.pseudonym, StoredPerson.display_name).where(
                is_among(StoredPerson.id, {person for _, person in counts})
            )
        )
    }
    rows = [_row("all", None, "", "", _sum(list(counts.values())))]
    for layer in LAYERS:
        of_layer = {person: each for (name, person), each in counts.items() if name == layer}
        if of_layer:
            rows.append(_row(layer, None, "", "", _sum(list(of_layer.values()))))
        in_order = sorted(of_layer, key=lambda person: (natural_order(people[person][1]), person))
        rows += [_row(layer, person, *people[person], of_layer[person]) for person in in_order]
    return tuple(rows)


def rows_shown_to(role: str, rows: Sequence[ReviewerAccuracy]) -> tuple[ReviewerAccuracy, ...]:
    """Return the rows that a person with a role may see: those of the layers before the person's own.

    A row of the same layer would tell after each decision whether the item was planted, and what was right. Others
    than the people of the layers see all rows.
    """
    layer = next((layer for layer, reviewing in ROLE_OF.items() if reviewing == role), None)
    before = ("all", *LAYERS) if layer is None else LAYERS[: LAYERS.index(layer)]
    return tuple(row for row in rows if row.layer in before)


def _counts(session: Session, project: int) -> dict[tuple[str, int], _Decisions]:
    """Return the decisions by layer and person; those on truths that were withdrawn count against nobody."""
    planted = StoredPlantedReview
    is_truth = planted.changed.is_(None)
    statement = (
        select(planted.layer, planted.person_id, is_truth, planted.decision, func.count(), func.sum(planted.seconds))
        .where(
            planted.project_id == project,
            planted.decision.is_not(None),
            planted.person_id.is_not(None),
            planted.is_retired.is_(False),
        )
        .group_by(planted.layer, planted.person_id, is_truth, planted.decision)
    )
    counts: dict[tuple[str, int], _Decisions] = defaultdict(_Decisions)
    for layer, person, truth, decision, number, seconds in session.execute(statement).all():
        assert person is not None, "selected"
        right = number if (decision == "accepted") == bool(truth) else 0
        made = _Decisions(number, right, 0, 0, seconds) if truth else _Decisions(0, 0, number, right, seconds)
        counts[layer, person] = counts[layer, person].plus(made)
    return dict(counts)


def _sum(decisions: list[_Decisions]) -> _Decisions:
    total = _Decisions()
    for each in decisions:
        total = total.plus(each)
    return total


def _row(
    layer: Layer | Literal["all"], person: int | None, pseudonym: str, name: str, made: _Decisions
) -> ReviewerAccuracy:
    right = made.accepted + made.rejected
    return ReviewerAccuracy(
        layer=layer,
        person=person,
        pseudonym=pseudonym,
        name=name,
        planted=made.truths + made.wrong,
        hours=made.seconds / 3600,
        right=_share(made.truths + made.wrong, right),
        truths_accepted=_share(made.truths, made.accepted),
        wrong_rejected=_share(made.wrong, made.rejected),
        accepts_all=person is not None and made.wrong >= FEWEST_WRONG and not made.rejected,
    )


def _share(number: int, successes: int) -> Estimate:
    return mean_of_sums(number, successes, successes, low=0.0, high=1.0)
