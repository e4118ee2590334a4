"""Triples: three responses get scores from 0 to 5, are compared where scores are equal, and are ranked with ties.

Two answers agree on a pair of responses where both say that the first is better, that the second is, or that they are
equal. A pair with a response that only one person discarded is a disagreement; one that both discarded from does not
count (CHEEMS, section 3.2 and appendix D).
"""

from collections.abc import Container, Iterable, Mapping, Sequence

import numpy as np

from steelyard.annotation.answers import (
    Inconsistency,
    Origin,
    TaskAnswer,
    contradictions,
    judgments_of,
    misfits,
    ratings_of,
)
from steelyard.annotation.questions import Point, PointValue, TaskQuestion, order_points
from steelyard.annotation.simulated_annotators import answer_triple
from steelyard.annotation.simulated_entries import SimulatedLook
from steelyard.annotation.task_kinds import Catalogues, Design, TaskRules, any_quality
from steelyard.annotation.triple_designs import Replan, choose_triples, replan
from steelyard.annotation.wrong_answers import reverse_order
from steelyard.core.types import Case, Judgment, Rating

_LEAST = 3


class _Triples:
    """The kind of tasks of CHEEMS. After discards a task may show two responses."""

    name = "triple"
    needs = "3 responses or more"
    is_shuffled = True
    is_by_language = False
    has_discards = True

    def design(self, case: Case, rules: TaskRules, *, seed: int) -> Design | None:
        """Return circular triples up to five responses, else triples that cover every pair; null below three."""
        if len(case.responses) < _LEAST:
            return None
        triples = choose_triples(case, "covering", seed=seed)
        # The circle of three responses is the same triple three times: more answers are for `num_annotators` to say.
        shown = {frozenset(triple): triple for triple in triples}.values()
        return tuple(tuple(case.responses[place].id for place in places) for places in shown)

    def select(self, cases: Iterable[Case], rules: TaskRules, *, seed: int) -> Iterable[Case]:
        """Return all cases."""
        return cases

    def replan(self, design: Sequence[Sequence[str]], discarded: Container[str]) -> Replan:
        """Return the plan over the responses that remain, with new triples for pairs that no task compares."""
        return replan(design, discarded)

    def questions(self, shown: Sequence[str], catalogues: Catalogues) -> tuple[TaskQuestion, ...]:
        """Return none: scores, comparisons and the ranking follow from each other."""
        return ()

    def misfits(self, answer: TaskAnswer, shown: Mapping[str, str], catalogues: Catalogues) -> tuple[str, ...]:
        """Return what no page of ours would send, in words."""
        return misfits(answer, shown)

    def contradictions(self, answer: TaskAnswer, shown: Sequence[str]) -> tuple[Inconsistency, ...]:
        """Return what is missing, and where scores, comparisons and ranking contradict each other."""
        return contradictions(answer, shown)

    def points(self, answer: TaskAnswer, shown: Sequence[str]) -> dict[Point, PointValue]:
        """Return the verdict on every pair of responses."""
        return order_points(answer, shown)

    def is_same(self, point: Point, first: PointValue, second: PointValue) -> bool:
        """Tell whether two verdicts are equal."""
        return first == second

    def judgments(self, answer: TaskAnswer, origin: Origin) -> tuple[Judgment, ...]:
        """Return a judgment for every pair of responses."""
        return judgments_of(answer, origin)

    def ratings(self, answer: TaskAnswer, origin: Origin) -> tuple[Rating, ...]:
        """Return the scores as ratings."""
        return ratings_of(answer, origin)

    def revise(self, case: Case, answer: TaskAnswer, origin: Origin) -> Case | None:
        """Return the case as it is."""
        return case

    def is_clear(self, answer: TaskAnswer) -> bool:
        """Tell whether the answer orders responses and discards none."""
        return len(answer.ranking) > 1 and not answer.discarded and answer.cannot_judge is None

    def falsify(self, answer: TaskAnswer, catalogues: Catalogues, rng: np.random.Generator) -> TaskAnswer | None:
        """Return the answer with its order turned round; null where the scores are too close to be sure."""
        return reverse_order(answer)

    def latent_quality(self, case: Case, response: str, *, seed: int) -> float:
        """Return a quality that is drawn evenly."""
        return any_quality(case, response, seed)

    def simulate(self, look: SimulatedLook, catalogues: Catalogues) -> TaskAnswer:
        """Return the answer of a simulated person who perceives the responses like this."""
        return answer_triple(look.shown, look.perceived, look.noise)


KIND = _Triples()
