"""Tables behind the figures: sums that every answer adds to when it is given, so that no page reads a million answers.

Rows of one person are changed by that person's answers alone, those of two people when the second of them answers. All
of them follow from the answers and the audit log: `counters.recount` makes them again. Fits of a statistical model
stand here too; they take seconds, and are made beside the requests (`fit_keeper`).
"""

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from steelyard.core.types import JsonObject
from steelyard.workbench.storage.tables import WorkbenchTable


class StoredWorkDay(WorkbenchTable):
    """The answers of one person on one day (UTC, counted from 1970): `answer_counts.count_answer`, summed."""

    __tablename__ = "work_days"
    __table_args__ = (UniqueConstraint("project_id", "person_id", "day"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"))
    day: Mapped[int]
    num_answers: Mapped[int] = mapped_column(default=0)
    num_gold: Mapped[int] = mapped_column(default=0)
    num_rework: Mapped[int] = mapped_column(default=0)
    num_cannot_judge: Mapped[int] = mapped_column(default=0)
    num_discarded: Mapped[int] = mapped_column(default=0)
    seconds: Mapped[float] = mapped_column(default=0.0)
    sum_length: Mapped[float] = mapped_column(default=0.0)
    sum_time: Mapped[float] = mapped_column(default=0.0)
    sum_length_squared: Mapped[float] = mapped_column(default=0.0)
    sum_time_squared: Mapped[float] = mapped_column(default=0.0)
    sum_length_time: Mapped[float] = mapped_column(default=0.0)
    num_best: Mapped[int] = mapped_column(default=0)
    num_first_best: Mapped[int] = mapped_column(default=0)
    first_chance: Mapped[float] = mapped_column(default=0.0)
    first_variance: Mapped[float] = mapped_column(default=0.0)
    num_pairs: Mapped[int] = mapped_column(default=0)
    num_tied: Mapped[int] = mapped_column(default=0)
    score_0: Mapped[int] = mapped_column(default=0)
    score_1: Mapped[int] = mapped_column(default=0)
    score_2: Mapped[int] = mapped_column(default=0)
    score_3: Mapped[int] = mapped_column(default=0)
    score_4: Mapped[int] = mapped_column(default=0)
    score_5: Mapped[int] = mapped_column(default=0)


class StoredPairAgreement(WorkbenchTable):
    """Two people's answers to the same tasks of a kind and category, before they saw each other's.

    `answer_counts.count_two_answers`, summed; ``first_id`` is the smaller number. Tasks of all rounds count, those that
    retired later too: what two people said independently does not change.
    """

    __tablename__ = "pair_agreements"
    __table_args__ = (UniqueConstraint("project_id", "kind", "category", "first_id", "second_id"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    kind: Mapped[str] = mapped_column(String(30))
    category: Mapped[str] = mapped_column(String(200))
    first_id: Mapped[int] = mapped_column(ForeignKey("people.id"))
    second_id: Mapped[int] = mapped_column(ForeignKey("people.id"))
    num_tasks: Mapped[int] = mapped_column(default=0)
    num_same: Mapped[int] = mapped_column(default=0)
    num_judged: Mapped[int] = mapped_column(default=0)
    sum_same_squared: Mapped[int] = mapped_column(default=0)
    sum_same_judged: Mapped[int] = mapped_column(default=0)
    sum_judged_squared: Mapped[int] = mapped_column(default=0)
    num_left_left: Mapped[int] = mapped_column(default=0)
    num_left_right: Mapped[int] = mapped_column(default=0)
    num_left_tie: Mapped[int] = mapped_column(default=0)
    num_right_left: Mapped[int] = mapped_column(default=0)
    num_right_right: Mapped[int] = mapped_column(default=0)
    num_right_tie: Mapped[int] = mapped_column(default=0)
    num_tie_left: Mapped[int] = mapped_column(default=0)
    num_tie_right: Mapped[int] = mapped_column(default=0)
    num_tie_tie: Mapped[int] = mapped_column(default=0)
    num_taus: Mapped[int] = mapped_column(default=0)
    sum_tau: Mapped[float] = mapped_column(default=0.0)
    sum_tau_squared: Mapped[float] = mapped_column(default=0.0)


class StoredGateResult(WorkbenchTable):
    """An item at the gate of a round: the verdicts on which its people agreed, and whether it passed.

    ``num_answers`` are all answers of the round so far, ``num_wanted`` those that the tasks which remained asked for.
    ``num_compared``: the tasks with two answers or more. An item without any had nothing to pass: no share counts it.
    An item that comes to the gate again in the same round, after a response was taken out, has its latest result.
    """

    __tablename__ = "gate_results"
    __table_args__ = (
        UniqueConstraint("item_id", "round"),
        Index(
            "ix_gate_results_figures", "project_id", "category", "at", "is_passed", "num_same", "num_judged",
            "num_answers", "num_wanted", "num_compared",
        ),
    )  # fmt: skip

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    round: Mapped[int]
    category: Mapped[str] = mapped_column(String(200))
    at: Mapped[float]
    is_passed: Mapped[bool]
    num_same: Mapped[int]
    num_judged: Mapped[int]
    num_answers: Mapped[int]
    num_wanted: Mapped[int]
    num_compared: Mapped[int]


class StoredGoldResult(WorkbenchTable):
    """An answer to a gold task: the pairs that it has as the truth has them, and those that count.

    ``is_void``: the truth was withdrawn since, with a rejection of its item.
    """

    __tablename__ = "gold_results"
    __table_args__ = (
        UniqueConstraint("task_id", "person_id"),
        Index("ix_gold_results_figures", "project_id", "person_id", "at", "is_void", "num_same", "num_judged"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"))
    task_id: Mapped[int] = mapped_column(ForeignKey("tasks.id"))
    at: Mapped[float]
    num_same: Mapped[int]
    num_judged: Mapped[int]
    is_void: Mapped[bool] = mapped_column(default=False)


class StoredRaterFit(WorkbenchTable):
    """A fit of the people of a project. ``raters``: `RaterParameters` by the number of the person.

    ``num_answers`` were given in the project when it was made, ``num_used`` of them, the latest, to items that two
    people or more had answered: ``num_items``. Fits stay: a decision in the audit log names the one that it stands on.
    """

    __tablename__ = "rater_fits"
    __table_args__ = (Index("ix_rater_fits_project", "project_id", "id"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    at: Mapped[float]
    num_answers: Mapped[int]
    num_used: Mapped[int]
    num_items: Mapped[int]
    raters: Mapped[JsonObject]


class StoredDisagreement(WorkbenchTable):
    """Differences of people in an item that came to the gate: `ExcessDisagreement`, by the fit of that time.

    ``gate_id``: the result at the gate that it was made after. An item of a later round has its latest alone.
    """

    __tablename__ = "disagreements"
    __table_args__ = (
        UniqueConstraint("item_id"),
        Index("ix_disagreements_worst", "project_id", "excess", "item_id"),
        Index(
            "ix_disagreements_figures", "project_id", "category", "excess", "p", "num_compared", "num_different",
            "expected",
        ),
        Index("ix_disagreements_gate", "project_id", "gate_id"),
    )  # fmt: skip

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    gate_id: Mapped[int]
    fit_id: Mapped[int] = mapped_column(ForeignKey("rater_fits.id"))
    category: Mapped[str] = mapped_column(String(200))
    num_compared: Mapped[int]
    num_different: Mapped[int]
    expected: Mapped[float]
    excess: Mapped[float]
    p: Mapped[float]
