"""The source of an evaluation: the cases of a bench with its settings and baselines, in batches of bounded size."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.core.numerics import Floats
from steelyard.core.protocols import FormulaModel, RewardModel
from steelyard.core.text import num_characters
from steelyard.core.types import Case
from steelyard.evaluation.bench_pairs import check_comparable
from steelyard.evaluation.benches import BenchCases
from steelyard.evaluation.columns import BenchColumns, bench_columns, score_columns
from steelyard.evaluation.config import Config
from steelyard.plugins.reward_models import scored

_CASES_AT_A_TIME = 1024


_CHARACTERS_AT_A_TIME = 2**22


class Source(NamedTuple):
    """The input of an evaluation: the cases of a bench, its settings, and the baselines."""

    cases: BenchCases
    bench: Any
    config: Config
    baselines: dict[str, RewardModel]

    def columns(self, cases: Sequence[Case]) -> BenchColumns:
        """Return the columns of a batch."""
        return bench_columns(
            cases,
            self.config.pairs,
            self.config.exact_rule,
            self.bench.resample_ids,
            counts_unwinnable=self.config.counts_unwinnable(self.bench),
        )

    def check(self) -> None:
        """Raise the errors that would otherwise end the evaluation only after the model has scored all cases.

        These are EvidenceError if no case has a comparable pair, and errors of the baselines, which may read files
        and train when they score their first case.
        """
        num_cases = num_unwinnable = 0
        for batch in _batched(self.cases, lambda case: case):
            num_cases += len(batch)
            columns = self.columns(batch)
            num_unwinnable += columns.unwinnable.shape[1]
            if len(columns.prompt):
                for name, model in self.baselines.items():
                    _scores_of(model, batch[:1], name)
                return
        check_comparable(num_pairs=0, num_cases=num_cases, num_unwinnable=num_unwinnable)


def _scores_of(model: RewardModel, cases: Sequence[Case], name: str) -> Floats:
    """Return the score of every response by a baseline; shape (response,)."""
    if isinstance(model, FormulaModel):
        return np.array([value for case in cases for value in model.values(case)], np.float64)
    return score_columns(scored(model, cases, name=name, quietly=True)).score


def _batched(items: Iterable[Any], case_of: Callable[[Any], Case]) -> Iterator[list[Any]]:
    """Yield lists of items of bounded number and text length, which bounds the memory."""
    batch: list[Any] = []
    num_in_batch = 0
    for item in items:
        batch.append(item)
        num_in_batch += sum(map(num_characters, case_of(item).responses))
        if len(batch) == _CASES_AT_A_TIME or num_in_batch >= _CHARACTERS_AT_A_TIME:
            yield batch
            batch, num_in_batch = [], 0
    if batch:
        yield batch
